/** Broker addresses as an editor sees them, set by a test. */
import type { BrokerAddresses, KnownBroker } from '../../src/editors/addresses.ts'
import type { Connection, Target } from '../../src/pipeline/connection.ts'

export class FakeAddresses implements BrokerAddresses {
  /** Node id → what clients see; one that is missing cannot be served. */
  readonly shown = new Map<number, Target>()
  readonly learned: KnownBroker[] = []
  /** What `learn` returns. */
  binding: ((brokers: readonly KnownBroker[]) => Promise<void> | undefined) | undefined

  constructor(nodes: readonly number[] = [], host = 'proxy.example') {
    for (const node of nodes) this.shown.set(node, { host, port: 30_000 + node })
  }

  advertised(_connection: Connection, nodeId: number): Target | undefined {
    return this.shown.get(nodeId)
  }

  learn(brokers: readonly KnownBroker[]): Promise<void> | undefined {
    this.learned.push(...brokers.map(({ nodeId, host, port }) => ({ nodeId, host, port })))
    return this.binding?.(brokers)
  }
}
