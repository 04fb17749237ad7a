/**
 * A small Kafka cluster in memory, on whatever sockets the runtime has: real ones for the demo's last resort and for
 * tests, virtual ones in the simulation. Everything a node knows is the cluster's; a node is a listener.
 */
import type { Runtime } from '../runtime/runtime.ts'
import type { Listener } from '../runtime/socket.ts'
import { Cluster, type ClusterOptions, type Node } from './cluster.ts'
import { BrokerConnection } from './connection.ts'

export interface FakeBrokerOptions extends Partial<ClusterOptions> {
  /** Default: one node, 1. */
  nodeIds?: readonly number[]
  /** Host to listen on and to advertise. Default 127.0.0.1; a function gives each node its own. */
  host?: string | ((nodeId: number) => string)
  /** Where a node's sockets live, if not in the runtime of the whole cluster: each node a host of its own. */
  runtimeOf?: (nodeId: number) => Runtime
  /** Port per node id; default: any free one. */
  port?: (nodeId: number) => number
}

export class FakeBroker {
  readonly cluster: Cluster
  readonly #runtime: Runtime
  readonly #options: FakeBrokerOptions
  readonly #listeners = new Map<number, Listener>()
  readonly #connections = new Map<number, Set<BrokerConnection>>()
  #lastConnection = 0

  private constructor(runtime: Runtime, options: FakeBrokerOptions) {
    this.#runtime = runtime
    this.#options = options
    this.cluster = new Cluster(runtime, options.nodeIds ?? [1], options)
  }

  /** Starts all nodes; rejects as `Runtime.listen` does. */
  static async start(runtime: Runtime, options: FakeBrokerOptions = {}): Promise<FakeBroker> {
    const broker = new FakeBroker(runtime, options)
    for (const node of broker.cluster.nodes) await broker.#listen(node)
    return broker
  }

  /** host:port of every node that is up. */
  get bootstrap(): string[] {
    return this.cluster.nodes.filter((node) => node.up).map(({ host, port }) => `${host}:${port}`)
  }

  /** Takes a node away, with its connections (`reset`: by RST), its leaderships and its groups. */
  async stopNode(nodeId: number, reset = false): Promise<void> {
    const listener = this.#listeners.get(nodeId)
    this.#listeners.delete(nodeId)
    this.cluster.nodeDown(nodeId)
    this.closeConnections(nodeId, reset)
    await listener?.close()
  }

  /** Brings a node back on the port it had. */
  async startNode(nodeId: number): Promise<void> {
    const node = this.cluster.nodes.find((n) => n.id === nodeId)
    if (node === undefined || node.up) return
    await this.#listen(node)
    this.cluster.nodeUp(nodeId)
  }

  closeConnections(nodeId: number, reset = false): void {
    for (const connection of Array.from(this.#connections.get(nodeId) ?? [])) connection.close(reset)
  }

  async stop(): Promise<void> {
    for (const node of this.cluster.nodes) await this.stopNode(node.id)
    this.cluster.close()
  }

  async #listen(node: Node): Promise<void> {
    const { host = '127.0.0.1', port } = this.#options
    const connections = this.#connections.get(node.id) ?? new Set<BrokerConnection>()
    this.#connections.set(node.id, connections)
    const address = typeof host === 'string' ? host : host(node.id)
    const wanted = node.port === 0 ? (port?.(node.id) ?? 0) : node.port
    const runtime = this.#options.runtimeOf?.(node.id) ?? this.#runtime
    const listener = await runtime.listen({ host: address, port: wanted }, (socket) => {
      const id = ++this.#lastConnection
      const connection = new BrokerConnection(this.cluster, node, socket, id, (c) => connections.delete(c))
      connections.add(connection)
      return connection
    })
    this.#listeners.set(node.id, listener)
    node.host = address
    node.port = listener.port
  }
}
