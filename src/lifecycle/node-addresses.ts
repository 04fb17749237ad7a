/** What clients are told instead of the brokers' own addresses, and the ports that stand behind it. */
import type { Brokers } from '../cluster/brokers.ts'
import type { ListenerConfig } from '../config/schema.ts'
import type { BrokerAddresses, KnownBroker } from '../editors/addresses.ts'
import type { Instances } from '../instances/registry.ts'
import type { Connection, Target } from '../pipeline/connection.ts'
import type { Ports } from './ports.ts'

export class NodeAddresses implements BrokerAddresses {
  private readonly listeners: ReadonlyMap<string, ListenerConfig>
  private readonly instances: Instances
  private readonly brokers: Brokers
  private readonly ports: Ports

  constructor(listeners: readonly ListenerConfig[], instances: Instances, brokers: Brokers, ports: Ports) {
    this.listeners = new Map(listeners.map((listener) => [listener.name, listener]))
    this.instances = instances
    this.brokers = brokers
    this.ports = ports
  }

  advertised(connection: Connection, nodeId: number): Target | undefined {
    const listener = this.listeners.get(connection.listener)
    if (listener === undefined || !this.ports.canServe(listener, nodeId)) return undefined
    const host = this.instances.addressOf(connection) ?? listener.advertise
    return { host, port: listener.advertisePort + nodeId }
  }

  learn(brokers: readonly KnownBroker[]): Promise<void> | undefined {
    const usable = brokers.filter(({ host, port }) => host !== '' && port > 0)
    if (usable.length > 0) this.brokers.learn(usable)
    return this.ports.binding(brokers.map((broker) => broker.nodeId))
  }
}
