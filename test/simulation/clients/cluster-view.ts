/** What a model client knows of the cluster: brokers, leaders, topic ids, and its connections to them. */
import { fetch } from '../../../src/protocol/generated/01-fetch.ts'
import { metadata } from '../../../src/protocol/generated/03-metadata.ts'
import { findCoordinator } from '../../../src/protocol/generated/10-find-coordinator.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import { ConnectionLost, Wire, type WireOptions } from './wire.ts'

export interface ViewOptions extends WireOptions {
  /** host:port, tried in turn. */
  bootstrap: readonly string[]
  retryBackoffMs: number
}

export interface TopicView {
  id: string
  /** Partition → leader. */
  leaders: Map<number, { nodeId: number; epoch: number }>
}

export class ClusterView {
  readonly topics = new Map<string, TopicView>()
  readonly runtime: Runtime
  readonly options: ViewOptions
  #brokers = new Map<number, { host: string; port: number }>()
  readonly #wires = new Map<string, Wire>()
  #refreshing: Promise<void> | undefined
  #closed = false

  constructor(runtime: Runtime, options: ViewOptions) {
    this.runtime = runtime
    this.options = options
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.runtime.timer(ms, resolve))
  }

  /** Asks for metadata until it has all `topics`; concurrent calls share one request. */
  refresh(topics: readonly string[]): Promise<void> {
    this.#refreshing ??= this.#refresh(topics).finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  count(topic: string): number {
    return this.topics.get(topic)?.leaders.size ?? 0
  }

  leader(topic: string, partition: number): { nodeId: number; epoch: number } | undefined {
    return this.topics.get(topic)?.leaders.get(partition)
  }

  topicNamed(id: string): string | undefined {
    return Array.from(this.topics).find(([, view]) => view.id === id)?.[0]
  }

  /** The connection to a node; `purpose` sets apart those that a family keeps apart (the coordinator's). */
  wire(nodeId: number, purpose = ''): Wire {
    const broker = this.#brokers.get(nodeId)
    if (broker === undefined) throw new ConnectionLost(`node ${nodeId} is not known`)
    return this.#connect(broker.host, broker.port, purpose)
  }

  /** Finds the coordinator of a group (0) or transactional id (1), however often it takes. */
  async coordinator(key: string, keyType: 0 | 1): Promise<number> {
    for (;;) {
      if (this.#closed) throw new ConnectionLost('client closed')
      try {
        const wire = this.#any()
        await wire.ready
        const batched = wire.versionOf(findCoordinator) >= 4
        const answer = await wire.ask(findCoordinator, { keyType, ...(batched ? { coordinatorKeys: [key] } : { key }) })
        const found = answer.coordinators[0] ?? answer
        if (found.errorCode === 0) {
          this.#brokers.set(found.nodeId, { host: found.host, port: found.port })
          return found.nodeId
        }
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
      await this.sleep(this.options.retryBackoffMs)
    }
  }

  close(): void {
    this.#closed = true
    for (const wire of this.#wires.values()) wire.close()
  }

  get closed(): boolean {
    return this.#closed
  }

  async #refresh(topics: readonly string[]): Promise<void> {
    while (!this.#closed) {
      try {
        const wire = this.#any()
        const asked = topics.map((name) => ({ name }))
        const answer = await wire.ask(metadata, { topics: asked, allowAutoTopicCreation: false })
        this.#learn(answer)
        if (answer.topics.every((topic) => topic.errorCode === 0)) return
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
      await this.sleep(this.options.retryBackoffMs)
    }
  }

  #learn(answer: ReturnType<typeof metadata.decodeResponse>): void {
    if (answer.brokers.length > 0) {
      this.#brokers = new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]))
    }
    for (const { name, topicId, partitions, errorCode } of answer.topics) {
      if (errorCode !== 0 || name === null) continue
      const leaders = new Map(
        partitions.map((p) => [p.partitionIndex, { nodeId: p.leaderId, epoch: p.leaderEpoch }] as const),
      )
      this.topics.set(name, { id: topicId, leaders })
    }
  }

  /** Any connection that is open, else a new one to a known broker or a bootstrap server, drawn by chance. */
  #any(): Wire {
    for (const wire of this.#wires.values()) if (!wire.closed) return wire
    const known = Array.from(this.#brokers.values(), ({ host, port }) => `${host}:${port}`)
    const addresses = [...known, ...this.options.bootstrap]
    const [host = '', port = '0'] = (addresses[this.runtime.random(addresses.length)] ?? '').split(':')
    return this.#connect(host, Number(port), '')
  }

  #connect(host: string, port: number, purpose: string): Wire {
    if (this.#closed) throw new ConnectionLost('client closed')
    const key = `${host}:${port}/${purpose}`
    let wire = this.#wires.get(key)
    if (wire === undefined || wire.closed) {
      wire = new Wire(this.runtime, host, port, this.options)
      this.#wires.set(key, wire)
    }
    return wire
  }
}

/** Whether the family asks for topics by id at this connection. */
export function fetchesById(wire: Wire): boolean {
  return wire.versionOf(fetch) >= 13
}
