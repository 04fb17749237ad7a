/**
 * The topics that have a rule, as this proxy knows them: name, id, rule and view. They are learned from Metadata answers
 * that pass and by asking the cluster, at the start and every 30 seconds. A topic met for the first time is recorded with
 * the count it has then; until that was read back it has no view and is not shown. A topic that was deleted and made
 * again has another id and starts afresh.
 *
 * Invariants: what has no rule never waits for long, whether or not our own client may ask the cluster; an id that was
 * deleted does not come back because some broker has not heard of it.
 */
import type { Cluster, TopicDescription } from '../../../cluster/cluster.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import { zeroUuid } from '../../../protocol/uuid.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import { currentLayout, type TopicState } from '../../../state/topic-state.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { LayoutTopics, TopicRule } from '../topic-rule.ts'
import { DeletedTopics } from './deleted-topics.ts'
import { GoneTopics } from './gone-topics.ts'
import { KnownTopic } from './known-topic.ts'
import { TopicIds } from './topic-ids.ts'

const REFRESH_MS = 30_000
/** After a question that failed, and while something is not known yet. */
const RETRY_MS = 1000
/** A topic is asked for by name when it was not named so often in a row: one broker may not know it yet. */
const MISSED_MAX = 2
/** Names whose rule is remembered, matching or not. */
const NAMES_MAX = 50_000
/** Names that wait for the question under way. */
const WANTED_MAX = 1000
/** Names with a rule that were not met and are remembered; how long it is believed that there is no such topic. */
const UNMET_MAX = 1000
const ABSENT_MS = 5000
/** How long ids that nobody knows are taken for topics that may have a rule, from the first of them on. */
const BLIND_MS = 5000
/** How long the cluster must not have been asked in vain before people are told. */
const TELL_MS = 10_000

export interface TopicsOptions {
  readonly rules: readonly TopicRule[]
  readonly state: State
  readonly cluster: Cluster
  readonly runtime: Runtime
  readonly log: Log
}

export class Topics implements LayoutTopics {
  /** Grows whenever a topic comes or goes: what was looked up before may be different now. */
  revision = 0
  /** Topics that the log knows and the cluster has no more. */
  readonly gone: GoneTopics
  private readonly options: TopicsOptions
  private readonly byName = new Map<string, KnownTopic>()
  private readonly byId = new Map<string, KnownTopic>()
  private readonly ids: TopicIds
  private readonly deleted = new DeletedTopics()
  /** The rule of each name asked for lately; null: none. */
  private readonly ruleOf = new Map<string, TopicRule | null>()
  private readonly listeners: ((topic: KnownTopic, isThere: boolean) => void)[] = []
  private readonly seenListeners: ((topic: KnownTopic) => void)[] = []
  private readonly namedListeners: (() => void)[] = []
  private timer: Timer | undefined
  private isAsking = false
  /** Names to ask for as soon as the question under way is answered. */
  private readonly wanted = new Set<string>()
  /** Names with a rule that are not known: when they were asked for, and whether the cluster said that it has none such. */
  private readonly unmet = new Map<string, { askedMs: number; isAbsent: boolean }>()
  private isStopped = false
  /** All topics of the cluster have been seen once. */
  private wasListed = false
  /** Since when ids wait that nobody knows, until all topics have been seen. */
  private blindSinceMs: number | undefined
  /** When all topics were listed last, or the first attempt began; why not again. */
  private listedAtMs: number
  private failure: string | undefined
  private isTold = false

  constructor(options: TopicsOptions) {
    const { runtime, log, state, cluster } = options
    this.options = options
    this.listedAtMs = runtime.now()
    this.gone = new GoneTopics(state, cluster)
    this.ids = new TopicIds(runtime, log, (topics) => {
      for (const { name, topicId, count } of topics) this.meet(name, topicId, count)
      for (const listener of this.namedListeners) listener()
    })
  }

  start(): void {
    const { state, runtime } = this.options
    this.listedAtMs = runtime.now()
    state.onChange(() => {
      this.learnFromState()
      this.record()
    })
    void this.refresh()
  }

  stop(): void {
    this.isStopped = true
    this.timer?.cancel()
  }

  /** Why the cluster's topics cannot be listed, and since when they could not; undefined: they can. */
  get problem(): string | undefined {
    const { runtime } = this.options
    if (this.failure === undefined || runtime.now() - this.listedAtMs < TELL_MS) return undefined
    return `Headgate's own client cannot list the topics: ${this.failure}`
  }

  /** An id that is not known has no rule: all topics were seen once, or that was waited for long enough. */
  get isLoaded(): boolean {
    if (this.wasListed) return true
    const { blindSinceMs } = this
    return blindSinceMs !== undefined && this.options.runtime.now() - blindSinceMs >= BLIND_MS
  }

  find(name: string, topicId: string): KnownTopic | undefined {
    return name === '' ? this.byId.get(topicId) : this.byName.get(name)
  }

  all(): Iterable<KnownTopic> {
    return this.byId.values()
  }

  /** Told of each topic that comes, and of each that was deleted. */
  onTopic(listener: (topic: KnownTopic, isThere: boolean) => void): void {
    this.listeners.push(listener)
  }

  /** Told whenever the cluster's partitions of a topic were seen (`count`, `leaders`). */
  onSeen(listener: (topic: KnownTopic) => void): void {
    this.seenListeners.push(listener)
  }

  /** Told when something that was asked for was found, or was found not to be there. */
  onNamed(listener: () => void): void {
    this.namedListeners.push(listener)
  }

  /** The rule for a name, whether or not such a topic exists. Topics of Kafka's own and of Headgate have none. */
  rule(name: string): TopicRule | undefined {
    let rule = this.ruleOf.get(name)
    if (rule === undefined) {
      rule = name.startsWith('__') ? null : (this.match(name) ?? null)
      if (this.ruleOf.size >= NAMES_MAX) this.ruleOf.clear()
      this.ruleOf.set(name, rule)
    }
    return rule ?? undefined
  }

  private match(name: string): TopicRule | undefined {
    return this.options.rules.find(({ topic }) => topic.test(name))
  }

  /** Whether what `find` does not know may be a topic with a rule all the same. Begins to find out. */
  mayBeRuled(name: string, topicId: string, connection: Connection | undefined): boolean {
    if (name !== '') return this.rule(name) !== undefined && this.mayExist(name)
    return this.mayIdBeRuled(topicId, connection)
  }

  /** No only where the cluster has told our own client so: what cannot be found out may exist. */
  private mayExist(name: string): boolean {
    const now = this.options.runtime.now()
    const before = this.unmet.get(name)
    if (before !== undefined && now - before.askedMs < (before.isAbsent ? ABSENT_MS : RETRY_MS)) return !before.isAbsent
    if (this.unmet.size >= UNMET_MAX) this.unmet.clear()
    const asked = { askedMs: now, isAbsent: before?.isAbsent === true }
    this.unmet.set(name, asked)
    void this.ask([name])
    return !asked.isAbsent
  }

  private answered(names: readonly string[], found: readonly TopicDescription[]): void {
    const asked = names.filter((name) => this.unmet.has(name))
    for (const name of asked) {
      const unmet = this.unmet.get(name)
      if (unmet !== undefined) unmet.isAbsent = !found.some((topic) => topic.name === name)
    }
    if (asked.length > 0) for (const listener of this.namedListeners) listener()
  }

  private mayIdBeRuled(topicId: string, connection: Connection | undefined): boolean {
    if (this.ids.isPlain(topicId) || this.deleted.has(topicId)) return false
    const recorded = this.options.state.view(topicId)?.topic.name
    // The cluster has said that the name means another topic now.
    if (recorded !== undefined && this.byName.get(recorded)?.isConfirmed === true) return false
    if (recorded !== undefined) return this.rule(recorded) !== undefined
    if (connection !== undefined) this.ids.identify(topicId, connection)
    if (this.wasListed) return false
    this.blindSinceMs ??= this.options.runtime.now()
    return !this.isLoaded
  }

  /**
   * A topic was named, by whatever is known of it. undefined: it has no rule, or the cluster has to be asked for its id
   * first, which is begun.
   */
  meet(name: string, topicId: string, count: number): KnownTopic | undefined {
    const known = this.byName.get(name)
    if (known !== undefined && (topicId === zeroUuid || known.topicId === topicId)) {
      this.seen(known, count)
      return known
    }
    const rule = this.rule(name)
    if (rule === undefined) {
      this.ids.addPlain(topicId)
      return undefined
    }
    // The broker may not know yet what our own client was told.
    if (topicId === zeroUuid || count === 0 || known?.isConfirmed === true || this.deleted.has(topicId)) {
      void this.ask([name])
      // Where our own client is told nothing of this topic, what clients are told has to do.
      if (known?.isConfirmed !== false || count === 0 || topicId === zeroUuid || !this.mayReturn(topicId))
        return undefined
    }
    return this.add(name, topicId, rule, count)
  }

  private mayReturn(topicId: string): boolean {
    return this.deleted.mayReturn(topicId, this.options.runtime.now())
  }

  private seen(topic: KnownTopic, count: number): void {
    if (count === 0) return
    topic.count = count
    for (const listener of this.seenListeners) listener(topic)
  }

  private add(name: string, topicId: string, rule: TopicRule, count: number): KnownTopic {
    const before = this.byName.get(name)
    if (before !== undefined) this.remove(before)
    const topic = new KnownTopic(name, topicId, rule, this.options.state)
    this.byName.set(name, topic)
    this.byId.set(topicId, topic)
    this.unmet.delete(name)
    this.revision++
    topic.count = count
    this.recordOne(topic)
    for (const listener of this.listeners) listener(topic, true)
    this.seen(topic, count)
    return topic
  }

  private remove(topic: KnownTopic): void {
    this.deleted.add(topic.topicId, topic.name, this.options.runtime.now())
    this.byName.delete(topic.name)
    this.byId.delete(topic.topicId)
    this.revision++
    for (const listener of this.listeners) listener(topic, false)
  }

  /** Another proxy has met topics: a change of theirs waits for every proxy, so they must be known here. */
  private learnFromState(): void {
    const { state } = this.options
    if (!state.mayAct()) return
    const newest = new Map<string, TopicState>()
    for (const topicId of state.topicIds()) {
      const topic = this.byId.has(topicId) || this.deleted.has(topicId) ? undefined : state.view(topicId)?.topic
      if (topic === undefined || this.rule(topic.name) === undefined || this.byName.has(topic.name)) continue
      const other = newest.get(topic.name)
      // One of them was deleted: the one that was met first.
      if (other === undefined || metAt(topic) > metAt(other)) newest.set(topic.name, topic)
    }
    for (const topic of newest.values()) {
      const rule = this.rule(topic.name)
      if (rule !== undefined) this.add(topic.name, topic.topicId, rule, currentLayout(topic).count)
    }
  }

  private record(): void {
    for (const topic of this.byId.values()) {
      const view = topic.view()
      if (view === undefined) this.recordOne(topic)
      else topic.shownCount = currentLayout(view.topic).count
    }
  }

  /**
   * Records the count of a topic that the log does not know: once it may, and again if that was lost. Where the whole log
   * was lost, what was shown until then goes on: partitions that are still hidden are then taken for somebody else's.
   */
  private recordOne(topic: KnownTopic): void {
    const { state, runtime } = this.options
    if (this.isStopped || !state.mayAct() || state.view(topic.topicId) !== undefined || topic.count === 0) return
    if (this.byId.get(topic.topicId) !== topic || runtime.now() - topic.recordedAtMs < RETRY_MS) return
    topic.recordedAtMs = runtime.now()
    const { name, topicId } = topic
    const count = topic.shownCount > 0 ? topic.shownCount : topic.count
    state.append({ kind: 'topic', proxy: state.proxy, topicId, name, count })
    runtime.timer(RETRY_MS, () => this.recordOne(topic))
  }

  private async refresh(): Promise<void> {
    const isDone = await this.ask(undefined)
    if (this.isStopped) return
    this.tell()
    this.timer = this.options.runtime.timer(isDone ? REFRESH_MS : RETRY_MS, () => void this.refresh())
  }

  /** Asks the cluster for these topics (undefined: all). One question at a time. */
  async ask(names: readonly string[] | undefined): Promise<boolean> {
    if (this.isAsking) {
      for (const name of names ?? []) if (this.wanted.size < WANTED_MAX) this.wanted.add(name)
      return false
    }
    this.isAsking = true
    try {
      const found = await this.options.cluster.describeTopics(names).finally(() => (this.isAsking = false))
      if (this.isStopped) return true
      for (const topic of found) this.described(topic)
      if (names !== undefined) this.answered(names, found)
      this.askWanted()
      if (names === undefined) await this.listed(found)
      return true
    } catch (error) {
      if (names === undefined) this.failure = (error as Error).message
      this.options.log.debug({ error: String(error) }, 'topics could not be learned from the cluster')
      this.askWanted()
      return false
    }
  }

  /** What is asked about topics that may be gone must not hold up one that was just met: its records wait. */
  private askWanted(): void {
    if (this.wanted.size === 0 || this.isStopped || this.isAsking) return
    const wanted = [...this.wanted]
    this.wanted.clear()
    void this.ask(wanted)
  }

  /** The cluster says so to our own client. */
  private described({ name, topicId, partitions }: TopicDescription): void {
    const rule = this.rule(name)
    if (rule === undefined) return this.ids.addPlain(topicId)
    let topic = this.byName.get(name)
    if (topic?.topicId === topicId) {
      this.deleted.contradicted(name)
      this.seen(topic, partitions.length)
    } else if (partitions.length === 0 || !this.mayReturn(topicId)) return
    else topic = this.add(name, topicId, rule, partitions.length)
    topic.isConfirmed = true
    topic.missed = 0
    topic.leaders = partitions.map(({ leader }) => leader)
    for (const listener of this.seenListeners) listener(topic)
  }

  private async listed(found: readonly TopicDescription[]): Promise<void> {
    const { runtime, state } = this.options
    const ids = new Set(found.map(({ topicId }) => topicId))
    const wasBlind = !this.wasListed
    this.wasListed = true
    if (wasBlind) for (const listener of this.namedListeners) listener()
    this.listedAtMs = runtime.now()
    this.failure = undefined
    await this.forgetDeleted(ids)
    await this.gone.listed(ids, runtime.now())
    this.deleted.prune(new Set(state.topicIds()), runtime.now())
  }

  /** A list leaves out what our own client may not see, so each that is missing is asked for by name. */
  private async forgetDeleted(ids: ReadonlySet<string>): Promise<void> {
    const { cluster, log } = this.options
    for (const topic of [...this.byId.values()]) {
      if (ids.has(topic.topicId)) continue
      topic.missed++
      if (topic.missed < MISSED_MAX) continue
      try {
        const found = await cluster.describeTopics([topic.name])
        if (found.every(({ topicId }) => topicId !== topic.topicId)) this.forget(topic)
      } catch (error) {
        if (topic.missed > MISSED_MAX) continue
        const what = 'it is served with what clients are told of it, and its partition count cannot be changed'
        log.warn({ topic: topic.name }, `${(error as Error).message}; until then ${what}`)
      }
    }
  }

  private forget(topic: KnownTopic): void {
    if (this.byId.get(topic.topicId) === topic && !this.isStopped) this.remove(topic)
  }

  /** One line when the topics cannot be listed, and one when that is over. */
  private tell(): void {
    const { problem, isTold } = this
    if ((problem !== undefined) === isTold) return
    this.isTold = !isTold
    const { log } = this.options
    if (problem === undefined) return log.info({}, 'the topics of the cluster can be listed again')
    log.warn({}, `${problem}; topics with layouts may have to wait for that, all others are served as ever`)
  }
}

/** Where in the log a topic was met. */
function metAt({ layouts }: TopicState): number {
  return layouts[0]?.openedAt ?? -1
}
