/** The composition root: puts the data path together from a configuration, and takes it down again. */
import { Brokers } from '../cluster/brokers.ts'
import type { Config, ListenerConfig } from '../config/schema.ts'
import { ApiVersionsEditor } from '../editors/api-versions/editor.ts'
import { FetchEditor } from '../editors/fetch/editor.ts'
import type { FetchPolicy } from '../editors/fetch/policy.ts'
import { LeaderHintsEditor } from '../editors/leader-hints/editor.ts'
import { AddressEditor } from '../editors/metadata/editor.ts'
import type { LayoutApi } from '../features/layouts/control/api.ts'
import { RangeCommits } from '../features/static-ranges/commits.ts'
import { type RangeView, StaticRanges } from '../features/static-ranges/feature.ts'
import { rangeRecords } from '../features/static-ranges/metrics.ts'
import { GroupBindings } from '../instances/group-bindings.ts'
import { Instances } from '../instances/registry.ts'
import { isLoopbackAddress } from '../instances/token.ts'
import { ChunkPool } from '../net/chunk-pool.ts'
import { Connection, type ConnectionContext, type ConnectionLimits, type Target } from '../pipeline/connection.ts'
import type { Handler } from '../pipeline/handler.ts'
import { compilePlans, type Plans } from '../pipeline/plan.ts'
import { Tap } from '../pipeline/tap.ts'
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { Socket, SocketHandler } from '../runtime/socket.ts'
import { withOtherRules } from '../state/state.ts'
import type { Log } from '../telemetry/log.ts'
import type { Meters } from '../telemetry/meter.ts'
import { drainConnections } from './drain.ts'
import { Layouts, type LayoutsStandIn } from './layouts.ts'
import { NodeAddresses } from './node-addresses.ts'
import { BOOTSTRAP, portOf, Ports } from './ports.ts'

const SWEEP_MS = 1000
/** What a compressed batch may inflate to before it counts as corrupt: a broker takes 13 kB that become 400 MiB. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024

export interface ProxyDeps {
  readonly runtime: Runtime
  readonly log: Log
  readonly meters: Meters
  /** Further handlers, asked after our own, and further Fetch policies: for tests and the simulation. */
  readonly handlers?: readonly Handler[]
  readonly fetchPolicies?: readonly FetchPolicy[]
  readonly layouts?: LayoutsStandIn
}

/** One port that clients connect to. */
export interface NodeAddress {
  readonly listener: string
  readonly mode: string
  /** −1: the bootstrap address. */
  readonly nodeId: number
  readonly bind: string
  readonly advertised: string
  /** Where connections go; undefined while the broker is not known. */
  readonly dial: string | undefined
  readonly state: 'bound' | 'waiting'
}

/** A client instance, as the API shows it. */
export interface ClientView {
  readonly id: string
  readonly source: string
  readonly recognisedBy: string
  readonly clientId: string | null
  readonly software: string
  readonly connections: number
  readonly ambiguous: boolean
  readonly groups: readonly { group: string; member: string; generation: number; instanceId: string | null }[]
}

export interface RunningProxy {
  /**
   * Listeners are bound and the brokers were learned once; false again while draining. Ready with a reason: a part of
   * it does not work, and plain traffic does.
   */
  readiness(): { ready: boolean; reasons: string[] }
  nodes(): NodeAddress[]
  clients(): ClientView[]
  /** Per static key range: what was delivered and withheld. */
  ranges(): RangeView[]
  /** Layouts and gates, for the API; undefined: no topic has `layouts`. */
  readonly layouts: LayoutApi | undefined
  /** Where the frames that pass can be listened to. */
  readonly tap: Tap
  /** What stands behind `layouts`, for tests and the simulation. */
  readonly layoutParts: Layouts | undefined
  /** Connections of clients that are open now. */
  readonly connections: number
  /** Answers long polls early, finishes what is in flight and closes broker by broker, until `deadlineMs` from now. */
  drain(deadlineMs: number): Promise<void>
  /** Closes whatever is left, at once. */
  close(): Promise<void>
}

/**
 * Binds the listeners and begins to serve. The upstream cluster need not be there yet.
 * @throws PortError when a configured port cannot be had; nothing is left listening then
 */
export async function startProxy(config: Config, deps: ProxyDeps): Promise<RunningProxy> {
  const proxy = new Proxy(config, deps)
  await proxy.open()
  return proxy
}

class Proxy implements RunningProxy {
  private readonly config: Config
  private readonly deps: ProxyDeps
  private readonly pool = new ChunkPool()
  private readonly brokers: Brokers
  private readonly instances: Instances
  private readonly ports: Ports
  private readonly plans: Plans
  readonly tap = new Tap()
  readonly layoutParts: Layouts | undefined
  private readonly staticRanges: StaticRanges
  private readonly open_ = new Set<Connection>()
  private readonly contexts = new Map<string, ConnectionContext>()
  private readonly limits: ConnectionLimits
  private sweeper: Timer | undefined
  private sequence = 0
  private draining = false

  constructor(config: Config, deps: ProxyDeps) {
    const { runtime, log, meters } = deps
    this.config = config
    this.deps = deps
    meters.publish({
      name: 'buffered_bytes',
      type: 'gauge',
      help: 'Bytes read from one side and not yet taken by the other, by the side they are for.',
      read: () => Object.entries(this.buffered()).map(([side, value]) => ({ labels: { towards: side }, value })),
    })
    this.limits = { ...config.limits, dialTimeoutMs: config.upstream.dialTimeoutMs }
    this.ports = new Ports(runtime, log, config.listeners, (listener, nodeId, socket) =>
      this.accept(listener, nodeId, socket),
    )
    this.brokers = new Brokers({
      runtime,
      pool: this.pool,
      log,
      bootstrap: config.upstream.bootstrap,
      dialTimeoutMs: config.upstream.dialTimeoutMs,
      refreshMs: config.upstream.metadataRefreshMs,
      onNew: (nodeIds) => void this.ports.binding(nodeIds),
    })
    const loopback = new Set(config.listeners.filter(({ mode }) => mode === 'loopback').map(({ name }) => name))
    this.instances = new Instances({ runtime, isLoopback: (listener) => loopback.has(listener) })
    const addresses = new NodeAddresses(config.listeners, this.instances, this.brokers, this.ports)
    const rules = config.groups.flatMap(({ group, ranges }) => ranges.map((rule) => ({ group, ...rule })))
    this.staticRanges = new StaticRanges(rules)
    const ranged = rules.length > 0
    if (ranged) meters.publish(rangeRecords(this.staticRanges))
    this.layoutParts =
      config.topics.length === 0
        ? undefined
        : new Layouts(config, {
            runtime,
            pool: this.pool,
            log,
            meters,
            brokers: this.brokers,
            addresses,
            addressOf: (connection) => this.instances.addressOf(connection),
            standIn: deps.layouts,
          })
    const policies = [
      ...(this.layoutParts === undefined ? [] : [this.layoutParts.gates, this.layoutParts.feature.consumerPushes]),
      ...(ranged ? [this.staticRanges] : []),
      ...(deps.fetchPolicies ?? []),
    ]
    this.plans = compilePlans([
      new ApiVersionsEditor(),
      new AddressEditor(addresses),
      new LeaderHintsEditor(addresses),
      new GroupBindings(this.instances),
      ...(this.layoutParts?.handlers ?? []),
      ...(ranged ? [new RangeCommits(this.staticRanges)] : []),
      ...(policies.length > 0 ? [new FetchEditor({ policies, addresses, maxInflatedBytes: MAX_INFLATED_BYTES })] : []),
      ...(deps.handlers ?? []),
    ])
  }

  async open(): Promise<void> {
    try {
      await this.ports.open()
    } catch (error) {
      await this.ports.close()
      throw error
    }
    this.brokers.start()
    this.layoutParts?.start()
    this.sweepLater()
  }

  get layouts(): LayoutApi | undefined {
    return this.layoutParts?.api
  }

  get connections(): number {
    return this.open_.size
  }

  /** Bytes taken from one side and not yet taken by the other, over all connections. */
  private buffered(): { client: number; broker: number } {
    const sum = { client: 0, broker: 0 }
    for (const connection of this.open_) {
      sum.client += connection.toClient.pendingBytes
      sum.broker += connection.toUpstream.pendingBytes
    }
    return sum
  }

  readiness(): { ready: boolean; reasons: string[] } {
    const reasons: string[] = []
    if (this.draining) reasons.push('shutting down')
    if (this.brokers.all().length === 0 && this.brokers.problem !== undefined) reasons.push(this.brokers.problem)
    const ready = reasons.length === 0
    const state = this.layoutParts?.state.status()
    if (state !== undefined && state.condition !== 'ready') {
      reasons.push(`topics with layouts wait, plain traffic goes on: ${state.problem ?? 'the state is lost'}`)
    }
    const topics = this.layoutParts?.feature.topics.problem
    if (topics !== undefined) reasons.push(topics)
    const others = state === undefined ? [] : withOtherRules(state).map(({ proxy, host }) => `${proxy} (${host})`)
    if (others.length > 0) reasons.push(`other rules for topics or groups than here: ${others.join(', ')}`)
    return { ready, reasons }
  }

  nodes(): NodeAddress[] {
    return this.ports.all().map(({ listener, nodeId }) => {
      const dial = this.dialAddress(listener, nodeId)
      const port = nodeId === BOOTSTRAP ? listener.bootstrapPort : listener.advertisePort + nodeId
      const host =
        listener.mode === 'loopback' ? (nodeId === BOOTSTRAP ? '127.0.0.1' : '127.x.y.z') : listener.advertise
      return {
        listener: listener.name,
        mode: listener.mode,
        nodeId,
        bind: `${listener.bind}:${portOf(listener, nodeId)}`,
        advertised: `${host}:${port}`,
        dial: dial === undefined ? undefined : `${dial.host}:${dial.port}`,
        state: dial === undefined ? 'waiting' : 'bound',
      }
    })
  }

  clients(): ClientView[] {
    return this.instances.all().map((instance) => ({
      id: instance.id,
      source: instance.source,
      recognisedBy: instance.recognisedBy,
      clientId: instance.clientId,
      software: [instance.softwareName, instance.softwareVersion].filter((part) => part !== '').join('/'),
      connections: instance.connections,
      ambiguous: instance.ambiguous,
      groups: [...instance.memberships.values()].map(({ groupId, memberId, generation, groupInstanceId }) => ({
        group: groupId,
        member: memberId,
        generation,
        instanceId: groupInstanceId,
      })),
    }))
  }

  ranges(): RangeView[] {
    return this.staticRanges.views()
  }

  async drain(deadlineMs: number): Promise<void> {
    this.draining = true
    this.layoutParts?.drain()
    await this.ports.close()
    await drainConnections(this.deps.runtime, this.open_, deadlineMs)
  }

  async close(): Promise<void> {
    this.draining = true
    this.sweeper?.cancel()
    await this.ports.close()
    for (const connection of [...this.open_]) connection.close('shutdown')
    await this.layoutParts?.stop()
    this.brokers.stop()
  }

  private accept(listener: ListenerConfig, nodeId: number, socket: Socket): SocketHandler | undefined {
    const { meters, log } = this.deps
    const refuse = (reason: 'not_loopback' | 'too_many_connections'): undefined => {
      const meter = meters.meter(listener.name, nodeId)
      meter.opened()
      meter.closed(reason)
      log.warn(
        { listener: listener.name, client: `${socket.remoteAddress}:${socket.remotePort}` },
        `refused: ${reason}`,
      )
    }
    if (listener.mode === 'loopback' && !isLoopbackAddress(socket.localAddress)) return refuse('not_loopback')
    if (this.open_.size >= this.config.limits.connections) return refuse('too_many_connections')
    const connection = new Connection(++this.sequence, socket, this.context(listener, nodeId))
    this.open_.add(connection)
    return connection.requests
  }

  /** One for all connections of a port. */
  private context(listener: ListenerConfig, nodeId: number): ConnectionContext {
    const key = `${listener.name}|${nodeId}`
    let context = this.contexts.get(key)
    if (context === undefined) {
      context = {
        runtime: this.deps.runtime,
        pool: this.pool,
        plans: this.plans,
        limits: this.limits,
        meter: this.deps.meters.meter(listener.name, nodeId),
        log: this.deps.log,
        instances: this.instances,
        tap: this.tap,
        listener: listener.name,
        nodeId,
        target: (tried) => this.target(listener, nodeId, tried),
        onClose: (connection) => this.open_.delete(connection),
      }
      this.contexts.set(key, context)
    }
    return context
  }

  /** Where a connection to this port goes. A node is dialled once; bootstrap servers are tried in turn. */
  private target(listener: ListenerConfig, nodeId: number, tried: readonly Target[]) {
    if (nodeId === BOOTSTRAP) return this.brokers.bootstrap(tried)
    if (tried.length > 0) return undefined
    return listener.dial.get(nodeId) ?? this.brokers.lookup(nodeId, this.limits.dialTimeoutMs)
  }

  private dialAddress(listener: ListenerConfig, nodeId: number) {
    if (nodeId === BOOTSTRAP) return this.brokers.bootstrap([])
    return listener.dial.get(nodeId) ?? this.brokers.address(nodeId)
  }

  private sweepLater(): void {
    this.sweeper = this.deps.runtime.timer(SWEEP_MS, () => {
      const now = this.deps.runtime.now()
      for (const connection of this.open_) connection.sweep(now)
      this.sweepLater()
    })
  }
}
