/** What clients are told instead of the brokers' own addresses, and the ports that stand behind it. */
import type { Brokers } from '../cluster/brokers.ts'
import type { ListenerConfig } from '../config/schema.ts'
import type { BrokerAddresses, KnownBroker } from '../editors/addresses.ts'
import type { Instances } from '../instances/registry.ts'
import type { Connection, Target } from '../pipeline/connection.ts'
import type { Ports } from './ports.ts'

const PORT_MAX = 65_535

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
    if (listener === undefined || !this.isBroker(listener, nodeId)) return undefined
    const port = listener.advertisePort + nodeId
    if (port > PORT_MAX || !this.ports.canServe(listener, nodeId)) return undefined
    return { host: this.instances.addressOf(connection) ?? listener.advertise, port }
  }

  /** A node that was never seen as a broker is a controller: nothing here leads to it. */
  private isBroker(listener: ListenerConfig, nodeId: number): boolean {
    return listener.dial.has(nodeId) || this.brokers.address(nodeId) !== undefined
  }

  learn(brokers: readonly KnownBroker[]): Promise<void> | undefined {
    const usable = brokers.filter(
      ({ nodeId, host, port }) => nodeId >= 0 && host !== '' && port > 0 && port <= PORT_MAX,
    )
    if (usable.length > 0) this.brokers.learn(usable)
    return this.ports.binding(usable.map((broker) => broker.nodeId))
  }
}
