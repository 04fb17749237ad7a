/**
 * Makes consumers of a topic that was widened, or that shrinks, refresh their Metadata, and their group be assigned anew, within seconds
 * (consumer-push.ts): refuses one partition of one Fetch, or one Heartbeat, or ends a connection between two frames.
 *
 * Invariants: nothing is refused but once per client and change, and only while the change is so young that clients may
 * not have refreshed by themselves; a client that was shown all partitions is left alone. At rest this is a look at an
 * empty list.
 */
import type { FetchPolicy, FetchView, PartitionPolicy } from '../../../editors/fetch/policy.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { frameOf } from '../../../pipeline/frame.ts'
import type { AssignmentPolicy, MemberShare } from '../../../editors/groups/policy.ts'
import type { Handler, Interest, Verdict } from '../../../pipeline/handler.ts'
import type { Instance } from '../../../pipeline/instance.ts'
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { responseFrame } from '../../../protocol/encode.ts'
import { errorCodes } from '../../../protocol/error-codes.ts'
import { type GroupPeek, peekGroup } from '../../../protocol/peek.ts'
import { currentLayout, isSettled, type TopicState, widestCount } from '../../../state/topic-state.ts'
import { type BeatPush, type Learner, learnerOf, pushAtHeartbeat } from '../consumer-push.ts'
import { isBalanced } from '../marked-balance.ts'
import { withMissing } from '../missing-partitions.ts'
import type { DrainedPartitions } from '../control/drained.ts'
import type { Owned, Ownership } from '../control/ownership.ts'
import { defaultTimes } from '../times.ts'
import type { GuardContext } from './context.ts'
import type { KnownTopic } from './known-topic.ts'
import type { Showings } from './showings.ts'
import type { Topics } from './topics.ts'

const heartbeat = codec(apiKeys.Heartbeat)
/** How long what was found is believed, unless the state changes. */
const LOOK_MS = 250
/** An assignment younger than this may be followed by another one: cooperative members give up first. */
const ASSIGNED_MS = 3_000
/** Between two looks whether a connection that is to end owes nothing any more. */
const END_MS = 20
/** A rebalance takes less, as a rule; an assignment that comes later is left as it is. */
const COMPLETE_MS = 60_000

/** A topic that was widened lately, or shrinks, or did. */
interface Grown {
  readonly topic: KnownTopic
  readonly epoch: number
  /** It shrank, and only groups with records left in what was taken away are to see that. */
  readonly hasShrunk: boolean
  /** When this proxy met the change, on the runtime's clock. */
  readonly sinceMs: number
}

interface Completion {
  readonly grown: Grown
  readonly count: number
  readonly untilMs: number
}

/** What was done to one client because of one change. */
interface Told {
  readonly pushes: Set<'fetch' | BeatPush>
  /** When its Metadata was first seen to be fresh; undefined: it was not. */
  freshMs: number | undefined
}

export interface ConsumerPushesDeps {
  readonly context: GuardContext
  readonly topics: Topics
  readonly ownership: Pick<Ownership, 'of'>
  readonly showings: Pick<Showings, 'memberCount'>
  readonly drained: Pick<DrainedPartitions, 'hasLeft'>
}

export class ConsumerPushes implements FetchPolicy, AssignmentPolicy, Handler {
  readonly name = 'consumer-pushes'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.Heartbeat, side: 'request', depth: 'scan' },
    { apiKey: apiKeys.Heartbeat, side: 'response', depth: 'scan' },
  ]
  /** Whether a member may read a topic, by what it subscribed to. */
  mayRead: (instance: Instance, topic: string) => boolean = () => true
  private readonly deps: ConsumerPushesDeps
  private grown: readonly Grown[] = []
  private lookedAtMs = -Infinity
  /** By client (a connection, where clients cannot be told apart), then topic id and epoch. */
  private readonly told = new WeakMap<Instance | Connection, Map<string, Told>>()

  /** Group → topic → how many partitions its next assignment is to have. */
  private readonly completions = new Map<string, Map<string, Completion>>()

  constructor(deps: ConsumerPushesDeps) {
    this.deps = deps
    deps.context.state.onChange(() => (this.lookedAtMs = -Infinity))
  }

  view(connection: Connection): FetchView | undefined {
    const { instance } = connection
    const grown = this.look()
    if (grown.length === 0 || instance === undefined || instance.memberships.size === 0) return undefined
    const due = grown.filter((each) => this.isDueAtFetch(connection, instance, each))
    if (due.length === 0) return undefined
    return { partition: (name, topicId, _partition, offset) => this.atFetch(connection, due, name, topicId, offset) }
  }

  onRequest(exchange: Exchange): Verdict {
    const { connection } = exchange
    const { instance } = connection
    const grown = this.look()
    if (grown.length === 0 || instance === undefined) return undefined
    const peek = groupIn(exchange)
    if (peek === undefined) return undefined
    for (const each of grown) {
      const push = this.atHeartbeat(connection, instance, peek, each)
      if (push === undefined) continue
      this.note(connection, instance, each, push)
      if (push === 'complete') this.complete(connection, peek.groupId, each)
      if (push === 'close') {
        exchange.setState(this, push)
        return undefined
      }
      const errorCode = push === 'refresh' ? errorCodes.NOT_LEADER_OR_FOLLOWER : errorCodes.REBALANCE_IN_PROGRESS
      connection.context.meter.error(apiKeys.Heartbeat, errorCode)
      return { kind: 'answer', frame: frameOf(responseFrame(0, heartbeat, { errorCode }, exchange.apiVersion)) }
    }
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    if (exchange.state(this) === 'close') this.end(exchange.connection)
    return undefined
  }

  /** With FIN, after what is owed was answered. */
  private end(connection: Connection): void {
    connection.drain()
    if (connection.closed === undefined) this.deps.context.runtime.timer(END_MS, () => this.end(connection))
  }

  watches(): boolean {
    this.forgetOld()
    return this.completions.size > 0
  }

  plan(group: string, assignor: string, shares: readonly MemberShare[]): readonly MemberShare[] {
    this.forgetOld()
    const topics = this.completions.get(group)
    if (topics === undefined) return shares
    this.completions.delete(group)
    // An application's own assignor may promise anything: which partitions go together, or that some go to nobody.
    if (!isBalanced(assignor)) return shares
    const now = this.look()
    return [...topics.values()].reduce(
      (planned, { grown, count }) => (now.includes(grown) ? withMissing(planned, grown.topic.name, count) : planned),
      shares,
    )
  }

  private complete(connection: Connection, group: string, grown: Grown): void {
    const { topic } = grown
    const topics = this.completions.get(group) ?? new Map<string, Completion>()
    const untilMs = this.deps.context.runtime.now() + COMPLETE_MS
    this.completions.set(group, topics.set(topic.name, { grown, count: this.wanted(connection, topic), untilMs }))
  }

  /** Leaders may join elsewhere, or not at all. */
  private forgetOld(): void {
    const now = this.deps.context.runtime.now()
    for (const [group, topics] of this.completions) {
      for (const [topic, { untilMs }] of topics) if (now >= untilMs) topics.delete(topic)
      if (topics.size === 0) this.completions.delete(group)
    }
  }

  private isDueAtFetch(connection: Connection, instance: Instance, grown: Grown): boolean {
    if (this.learner(instance) === 'refreshes-at-join') return false
    if (!this.mayRead(instance, grown.topic.name) || !this.isStale(connection, instance, grown)) return false
    return !this.toldOf(connection, instance, grown).pushes.has('fetch')
  }

  private atFetch(
    connection: Connection,
    due: readonly Grown[],
    name: string,
    topicId: string,
    offset: number,
  ): PartitionPolicy | undefined {
    const grown = due.find(({ topic }) => (name === '' ? topic.topicId === topicId : topic.name === name))
    const { instance } = connection
    // Below zero the question is about an answer, which passes.
    if (grown === undefined || instance === undefined || offset < 0) return undefined
    if (this.toldOf(connection, instance, grown).pushes.has('fetch')) return undefined
    this.note(connection, instance, grown, 'fetch')
    return { refuse: errorCodes.NOT_LEADER_OR_FOLLOWER }
  }

  private atHeartbeat(
    connection: Connection,
    instance: Instance,
    { groupId, memberId }: GroupPeek,
    grown: Grown,
  ): BeatPush | undefined {
    const { runtime } = this.deps.context
    const owned = this.deps.ownership.of(instance, groupId)
    if (owned === undefined || owned.isServerSide || !this.mayRead(instance, grown.topic.name)) return undefined
    const told = this.toldOf(connection, instance, grown)
    const now = runtime.now()
    const isStale = this.isStale(connection, instance, grown)
    if (isStale) told.freshMs = undefined
    else told.freshMs ??= now
    const push = pushAtHeartbeat({
      learner: learnerOf(instance.softwareName, owned.assignor),
      isStale,
      forMs: now - (told.freshMs ?? grown.sinceMs),
      leads: owned.lead?.memberId === memberId ? owned.lead.members : 0,
      leavesOut: this.leavesOut(connection, owned, grown, now),
      isIdle: owned.partitions !== undefined && !owned.partitions.has(grown.topic.name),
    })
    return push === undefined || told.pushes.has(push) ? undefined : push
  }

  /** The assignment that it made as the leader has partitions of the topic, and not the new ones. */
  private leavesOut(connection: Connection, { lead }: Owned, { topic }: Grown, now: number): boolean {
    const assigned = lead?.counts?.get(topic.name)
    if (lead === undefined || assigned === undefined || now - lead.atMs < ASSIGNED_MS) return false
    return assigned < this.wanted(connection, topic)
  }

  private isStale(connection: Connection, instance: Instance, { topic, sinceMs, hasShrunk }: Grown): boolean {
    if (hasShrunk && !this.deps.drained.hasLeft(topic, instance)) return false
    // Of clients that look alike, whose answer it was is not known: connections that came since are not asked again.
    if (instance.ambiguous && connection.openedAt >= sinceMs) return false
    const shown = instance.ambiguous
      ? 0
      : (this.deps.context.writers.of(connection).topics.get(topic.topicId)?.count ?? 0)
    return shown < this.wanted(connection, topic)
  }

  private wanted(connection: Connection, topic: KnownTopic): number {
    const state = topic.view()?.topic
    return state === undefined ? 0 : this.deps.showings.memberCount(connection, topic, state)
  }

  private learner(instance: Instance): Learner {
    const [group = ''] = instance.memberships.keys()
    return learnerOf(instance.softwareName, this.deps.ownership.of(instance, group)?.assignor)
  }

  private toldOf(connection: Connection, instance: Instance, { topic, epoch }: Grown): Told {
    const client = instance.ambiguous ? connection : instance
    let changes = this.told.get(client)
    if (changes === undefined) this.told.set(client, (changes = new Map<string, Told>()))
    const change = `${topic.topicId}/${epoch}`
    let told = changes.get(change)
    if (told === undefined) changes.set(change, (told = { pushes: new Set(), freshMs: undefined }))
    return told
  }

  private note(connection: Connection, instance: Instance, grown: Grown, push: 'fetch' | BeatPush): void {
    this.toldOf(connection, instance, grown).pushes.add(push)
    const { pushed, writers } = this.deps.context
    pushed.add(grown.topic.name, `consumer: ${push}`, writers.of(connection).name)
  }

  /** Topics of which clients may know fewer partitions than they are to read. */
  private look(): readonly Grown[] {
    const { runtime } = this.deps.context
    const now = runtime.now()
    if (now - this.lookedAtMs < LOOK_MS) return this.grown
    this.lookedAtMs = now
    const grown: Grown[] = []
    for (const topic of this.deps.topics.all()) {
      const state = topic.view()?.topic
      const epoch = state === undefined ? undefined : this.widenedBy(state)
      if (state === undefined || epoch === undefined) continue
      const hasShrunk = this.hasShrunk(state)
      const known = this.grown.find(
        (each) => each.topic.topicId === topic.topicId && each.epoch === epoch && each.hasShrunk === hasShrunk,
      )
      grown.push(known ?? { topic, epoch, hasShrunk, sinceMs: now })
    }
    this.grown = grown
    return grown
  }

  /**
   * The epoch of the last layout that added partitions, if it is young, and Metadata with the topic goes out now. Of a
   * topic that is narrower than it was, that of the shrink: whoever starts is shown fewer until it is seen to be a consumer.
   */
  private widenedBy(state: TopicState): number | undefined {
    const { layouts, proposal } = state
    if (proposal !== undefined) return undefined
    const current = currentLayout(state)
    if (current.count < widestCount(state)) return current.epoch
    const youngest = this.deps.context.runtime.wallNow() - defaultTimes.settleMs
    const index = layouts.findLastIndex(({ count }, i) => count > (layouts[i - 1]?.count ?? count))
    const layout = layouts[index]
    return layout === undefined || layout.openedAtMs < youngest ? undefined : layout.epoch
  }

  /** Partitions may be hidden from consumers, too. */
  private hasShrunk(state: TopicState): boolean {
    const current = currentLayout(state)
    const isNarrower = current.count < widestCount(state)
    return isNarrower && isSettled(current, this.deps.context.runtime.wallNow(), defaultTimes.settleMs)
  }
}

function groupIn(exchange: Exchange): GroupPeek | undefined {
  const { request, apiKey, apiVersion } = exchange
  const at = exchange.requestBodyAt()
  if (request === undefined || at < 0) return undefined
  return peekGroup(apiKey, apiVersion, request.bytes, at, request.at + request.total)
}
