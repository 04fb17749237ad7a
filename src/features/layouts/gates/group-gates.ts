/**
 * The gates in front of Fetch: which records each client may have, by its groups' commits and the topic's layouts.
 *
 * Invariants: nothing is delivered at or above a gate that is shut for one of the client's groups, by the view of the
 * moment in which the answer leaves; where the state may not be acted upon, nothing that may wait is delivered at all
 * (`stateLoss: hold`). A client without a group (it assigns partitions itself and commits nothing) reads in what order it
 * likes: it passes after a while in which its group might still show.
 */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { FetchPolicy, FetchView } from '../../../editors/fetch/policy.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Instance, Membership } from '../../../pipeline/instance.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import type { TopicState } from '../../../state/topic-state.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { GateRule, LayoutTopic, LayoutTopics } from '../topic-rule.ts'
import { GateCounts } from './gate-counts.ts'
import { GatedGroup } from './gated-group.ts'
import { InstanceGates } from './instance-gates.ts'
import { Parents } from './parents.ts'
import { StartCommits } from './start-commits.ts'
import { StartPositions } from './start-positions.ts'
import { Subscriptions } from './subscriptions.ts'
import type { GateView } from './topic-gates.ts'
import { TopicWatch } from './topic-watch.ts'

export interface GroupGatesOptions {
  readonly runtime: Runtime
  readonly log: Log
  readonly state: State
  readonly cluster: Cluster
  readonly topics: LayoutTopics
  /** The first that matches a group counts; none: `block`. */
  readonly rules: readonly GateRule[]
}

/** A gate that is shut for longer is told of in the log. */
const SLOW_MS = 30_000
const SWEEP_MS = 5_000
/** Groups and topics that are not read for so long are forgotten. */
const FORGET_MS = 10 * 60_000

export class GroupGates implements FetchPolicy {
  readonly counts = new GateCounts()
  readonly watch: TopicWatch
  readonly subscriptions = new Subscriptions()
  readonly starts = new StartPositions()
  readonly startCommits: StartCommits
  /** Counts up with whatever may change a limit. */
  version = 0
  private readonly options: GroupGatesOptions
  private readonly parents: Parents
  private readonly groups = new Map<string, GatedGroup>()
  private readonly instances = new WeakMap<Instance, InstanceGates>()
  private readonly listeners: (() => void)[] = []
  private timer: Timer | undefined
  /** Groups and topics, `group/topic`, whose long wait was told of. */
  private readonly told = new Set<string>()

  constructor(options: GroupGatesOptions) {
    const { runtime, log, state, cluster, topics } = options
    this.options = options
    this.startCommits = new StartCommits(this.starts, runtime, log)
    this.parents = new Parents(cluster, runtime, log)
    this.watch = new TopicWatch(state, topics, this.parents, runtime)
    state.onChange(() => {
      this.watch.changed()
      this.changed()
    })
    topics.onNamed(() => this.changed())
    this.sweepLater()
  }

  view(connection: Connection): FetchView | undefined {
    const { instance } = connection
    if (instance === undefined) return undefined
    const { isBlind, restless } = this.watch.look()
    let gates = this.instances.get(instance)
    if (gates === undefined) this.instances.set(instance, (gates = new InstanceGates(instance, this)))
    gates.connection = connection
    if (isBlind || gates.isStarting) return gates
    return restless.length === 0 || gates.isOpen(restless) ? undefined : gates
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  /** Every shut gate of a group that reads here. */
  gatesOf(group: string): GateView[] {
    return this.shut().flatMap(({ id, views }) => (id === group ? views : []))
  }

  /** Groups that read here and wait behind a gate. */
  shutGroups(): string[] {
    return [...new Set(this.shut().flatMap(({ id, views }) => (views.length > 0 ? [id] : [])))]
  }

  /** Per topic: partitions shut to groups that read here, and for how long it was so, in seconds; added up over groups. */
  held(): { topic: string; shut: number; heldSeconds: number }[] {
    const sums = new Map<string, { shut: number; heldSeconds: number }>()
    for (const [topic, seconds] of this.counts.heldBefore) sums.set(topic, { shut: 0, heldSeconds: seconds })
    for (const group of this.groups.values()) {
      for (const gates of group.topics.values()) {
        const sum = sums.get(gates.topic.name) ?? { shut: 0, heldSeconds: 0 }
        sum.shut += gates.isActive ? gates.shutCount : 0
        sum.heldSeconds += gates.heldForMs / 1000
        sums.set(gates.topic.name, sum)
      }
    }
    return [...sums].map(([topic, sum]) => ({ topic, ...sum }))
  }

  find(name: string, topicId: string): LayoutTopic | undefined {
    return this.options.topics.find(name, topicId)
  }

  hasRule(name: string): boolean {
    return this.options.topics.rule(name) !== undefined
  }

  /** Whether a topic that was not found may have a rule all the same: it was not met here yet. */
  mayHaveRule(name: string, topicId: string, connection: Connection | undefined): boolean {
    return this.options.topics.mayBeRuled(name, topicId, connection)
  }

  now(): number {
    return this.options.runtime.now()
  }

  /** The group, if it has been met. */
  known(id: string): GatedGroup | undefined {
    return this.groups.get(id)
  }

  group(id: string): GatedGroup {
    let group = this.groups.get(id)
    if (group !== undefined) return group
    const { runtime, cluster, log, rules } = this.options
    const policy = rules.find((rule) => rule.group.test(id))?.gate ?? 'block'
    group = new GatedGroup(id, policy, {
      runtime,
      cluster,
      log,
      parents: this.parents,
      byPolicy: (by) => this.counts.opened(by),
      stateOf: this.watch.stateOf,
      hasGates: (topic, state) => this.watch.strict(topic, state).some((limit) => limit !== Infinity),
      changed: () => this.changed(),
    })
    this.groups.set(id, group)
    return group
  }

  /** A member of a group that waits spoke to its coordinator on this connection. */
  async commitStarts(
    connection: Connection,
    membership: Membership,
    group: GatedGroup,
    hasEpochs: boolean,
  ): Promise<void> {
    const before = this.startCommits.count
    await this.startCommits.offer(connection, membership, group, hasEpochs, () => this.now())
    if (this.startCommits.count !== before) this.changed()
  }

  changed(): void {
    this.version++
    for (const listener of this.listeners) listener()
  }

  private shut(): { id: string; topic: LayoutTopic; state: TopicState; views: GateView[]; oldestMs: number }[] {
    return [...this.groups.values()].flatMap((group) =>
      [...group.topics.values()].flatMap((gates) => {
        const state = this.watch.lastOf(gates.topic)
        if (state === undefined || !gates.isActive) return []
        const views = gates.views(state)
        return [{ id: group.id, topic: gates.topic, state, views, oldestMs: gates.oldestMs(state) }]
      }),
    )
  }

  stop(): void {
    this.timer?.cancel()
    for (const group of this.groups.values()) group.close()
  }

  private sweepLater(): void {
    this.timer = this.options.runtime.timer(SWEEP_MS, () => {
      this.tell()
      this.forget()
      this.sweepLater()
    })
  }

  /** One line when something has waited for long, and one when it does not any more. */
  private tell(): void {
    const { log } = this.options
    const slow = new Set<string>()
    for (const { id, topic, views, oldestMs } of this.shut()) {
      const name = `${id}/${topic.name}`
      if (oldestMs < SLOW_MS) continue
      slow.add(name)
      if (this.told.has(name)) continue
      this.told.add(name)
      const waits = views.slice(0, 8).map(describe)
      const problem = this.groups.get(id)?.problem
      log.warn(
        { group: id, topic: topic.name, waits, ...(problem === undefined ? {} : { problem }) },
        `records wait behind a gate for ${Math.round(oldestMs / 1000)} s`,
      )
    }
    for (const name of this.told) {
      if (slow.has(name)) continue
      this.told.delete(name)
      const at = name.indexOf('/')
      log.info({ group: name.slice(0, at), topic: name.slice(at + 1) }, 'records do not wait behind a gate any more')
    }
  }

  private forget(): void {
    const now = this.now()
    for (const group of this.groups.values()) {
      for (const [topicId, gates] of group.topics) {
        if (now - gates.lastFetchMs < FORGET_MS) continue
        this.counts.retire(gates.topic.name, gates.heldForMs / 1000)
        group.topics.delete(topicId)
      }
      if (group.topics.size > 0) continue
      group.close()
      this.groups.delete(group.id)
    }
  }
}

function describe({ partition, from, seal, cut, parent, until, committed }: GateView): string {
  const what = cut === undefined ? `layout ${seal}` : `cut ${cut}`
  const records = `partition ${partition} from ${from} on (${what})`
  if (parent === undefined) return `${records}: for the seal`
  return `${records}: for partition ${parent} up to ${until}, committed ${committed ?? 'nothing'}`
}
