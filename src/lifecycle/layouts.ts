/**
 * Layouts as a running proxy has them: our own connections, the state log, the feature and its editors, from the
 * configuration. Without a topic rule there is none of it.
 */
import { hostname } from 'node:os'
import { ClusterClient } from '../cluster/cluster-client.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { KnownBrokers } from '../cluster/broker-links.ts'
import { formatHostPort } from '../config/address.ts'
import type { Config } from '../config/schema.ts'
import type { BrokerAddresses } from '../editors/addresses.ts'
import { CreatePartitionsEditor } from '../editors/create-partitions/editor.ts'
import { GroupEditor } from '../editors/groups/editor.ts'
import { DescribedTopics } from '../editors/metadata/described-topics.ts'
import { TopicEditor } from '../editors/metadata/topic-editor.ts'
import { ProduceEditor } from '../editors/produce/editor.ts'
import { LayoutApi } from '../features/layouts/control/api.ts'
import { PartitionChanges } from '../features/layouts/control/partition-changes.ts'
import { gateMetrics } from '../features/layouts/gates/gate-counts.ts'
import { GroupGates } from '../features/layouts/gates/group-gates.ts'
import { MemberRequests } from '../features/layouts/gates/member-requests.ts'
import { MarkedBalance } from '../features/layouts/shell/marked.ts'
import { LayoutsFeature } from '../features/layouts/shell/feature.ts'
import { Unassigned } from '../features/layouts/shell/unassigned.ts'
import type { LayoutTimes } from '../features/layouts/times.ts'
import type { ChunkPool } from '../net/chunk-pool.ts'
import type { Connection } from '../pipeline/connection.ts'
import type { Handler } from '../pipeline/handler.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { stateMetrics } from '../state/shell/metrics.ts'
import { StateShell } from '../state/shell/state-shell.ts'
import type { State } from '../state/state.ts'
import type { Log } from '../telemetry/log.ts'
import type { Meters } from '../telemetry/meter.ts'
import { rulesDigest } from './rules-digest.ts'

const REQUEST_TIMEOUT_MS = 10_000
/** Clocks of two machines differ by less, and clients need less to go elsewhere. */
const CLOCKS_APART_MS = 10_000
const HOUR_MS = 3_600_000

/** What stands in for the real state and cluster: for tests and the simulation. */
export interface LayoutsStandIn {
  readonly state?: State
  readonly cluster?: Cluster
  readonly times?: Partial<LayoutTimes>
  readonly sessionMs?: number
}

export interface LayoutsDeps {
  readonly runtime: Runtime
  readonly pool: ChunkPool
  readonly log: Log
  readonly meters: Meters
  readonly brokers: KnownBrokers
  readonly addresses: BrokerAddresses
  addressOf(connection: Connection): string | undefined
  readonly standIn?: LayoutsStandIn | undefined
}

export class Layouts {
  readonly feature: LayoutsFeature
  readonly state: State
  readonly cluster: Cluster
  readonly handlers: readonly Handler[]
  readonly api: LayoutApi
  /** What clients may be given of a topic whose layout changes. */
  readonly gates: GroupGates
  private readonly runtime: Runtime
  private readonly client: ClusterClient | undefined
  private readonly shell: StateShell | undefined
  /** How long it takes connections although it is not ready any more. */
  private readonly delayMs: number
  /** Wall-clock time: who was at another proxy before was at two. */
  private leftSinceMs: number | undefined

  constructor(config: Config, deps: LayoutsDeps) {
    const { runtime, log, meters, addresses, standIn } = deps
    this.runtime = runtime
    this.delayMs = config.shutdown.delayMs
    const needsClient = standIn?.state === undefined || standIn.cluster === undefined
    this.client = needsClient ? clusterClient(config, deps) : undefined
    this.cluster = standIn?.cluster ?? theOne(this.client)
    if (standIn?.state === undefined) {
      const host = formatHostPort(config.admin.bind)
      const sessionMs = standIn?.sessionMs
      const bound = sessionMs === undefined ? {} : { sessionMs }
      const rememberMs = rememberedFor(config)
      const isGone = (topicId: string): boolean => this.feature.topics.gone.has(topicId)
      const own = { host, rules: rulesDigest(config), rememberMs, isGone, ...bound }
      this.shell = new StateShell({ runtime, cluster: theOne(this.client), log, ...own })
      for (const source of stateMetrics(this.shell)) meters.publish(source)
    }
    this.state = standIn?.state ?? theOne(this.shell)
    this.feature = new LayoutsFeature({
      rules: config.topics,
      state: this.state,
      cluster: this.cluster,
      runtime,
      log,
      meters,
      addressOf: (connection) => deps.addressOf(connection),
      machine: hostname(),
      ...(standIn?.times === undefined ? {} : { times: standIn.times }),
    })
    this.gates = new GroupGates({
      runtime,
      log,
      state: this.state,
      cluster: this.cluster,
      topics: this.feature.topics,
      rules: config.groups.flatMap(({ group, gate }) => (gate === undefined ? [] : [{ group, gate }])),
    })
    this.feature.consumerPushes.mayRead = ({ memberships }, topic) =>
      [...memberships.values()].some((membership) => this.gates.subscriptions.mayRead(membership, topic))
    for (const source of gateMetrics(this.gates)) meters.publish(source)
    const { topics, writers, ownership, showings } = this.feature
    this.api = new LayoutApi({
      runtime,
      state: this.state,
      cluster: this.cluster,
      control: this.feature.control,
      rules: config.topics,
      meet: ({ name, topicId, partitions }) => void this.feature.topics.meet(name, topicId, partitions.length),
      guards: { guardOf: (topicId) => this.feature.guards.of(topicId)?.facts },
      gates: this.gates,
      unassigned: new Unassigned({
        topics,
        writers,
        ownership,
        showings,
        mayRead: (membership, topic) => this.gates.subscriptions.mayRead(membership, topic),
      }),
    })
    this.handlers = [
      this.feature.ownership,
      new ProduceEditor(this.feature.guards, addresses),
      new TopicEditor(this.feature.showings, runtime),
      new DescribedTopics(this.feature.showings),
      new GroupEditor([this.feature.consumerPushes, new MarkedBalance(this.feature.topics, log)]),
      new CreatePartitionsEditor(new PartitionChanges(this.feature.control)),
      new MemberRequests(this.gates),
      this.feature.consumerPushes,
    ]
  }

  start(): void {
    this.shell?.start()
    this.feature.start()
  }

  /** The connections of clients begin to be ended. */
  drain(): void {
    // Before that it was not ready, and clients may have begun to go elsewhere.
    this.leftSinceMs ??= this.runtime.wallNow() - this.delayMs - CLOCKS_APART_MS
  }

  /** Leaves the fleet; after the last request of a client, when all their connections are closed. */
  async stop(): Promise<void> {
    this.drain()
    const departure = this.feature.guards.departure(this.leftSinceMs ?? 0)
    this.gates.stop()
    this.feature.stop()
    await this.shell?.stop(departure)
    this.client?.close()
  }
}

function clusterClient(config: Config, { runtime, pool, brokers }: LayoutsDeps): ClusterClient {
  const { dialTimeoutMs } = config.upstream
  return new ClusterClient({ runtime, pool, brokers, dialTimeoutMs, requestTimeoutMs: REQUEST_TIMEOUT_MS })
}

/** How long expelled proxies are remembered: twice as long as any topic waits for one, and an hour at least. */
function rememberedFor({ topics }: Config): number {
  return Math.max(HOUR_MS, ...topics.map(({ goneAfterMs }) => 2 * goneAfterMs))
}

function theOne<T>(made: T | undefined): T {
  if (made === undefined) throw new TypeError('made above, where nothing stands in for it')
  return made
}
