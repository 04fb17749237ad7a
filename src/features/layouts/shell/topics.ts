/**
 * The topics that have a rule, as this proxy knows them: name, id, rule and view. They are learned from Metadata answers
 * that pass and by asking the cluster, at the start and every 30 seconds. A topic met for the first time is recorded with
 * the count it has then; until that was read back it has no view and is not shown. A topic that was deleted and made
 * again has another id and starts afresh.
 */
import type { Cluster, TopicDescription } from '../../../cluster/cluster.ts'
import { zeroUuid } from '../../../protocol/uuid.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import { currentLayout } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { LayoutTopic, LayoutTopics, TopicRule } from '../topic-rule.ts'

const REFRESH_MS = 30_000
/** After a question that failed, and while something is not known yet. */
const RETRY_MS = 1000
/** A topic counts as deleted when it was not named so often in a row: one broker may not know it yet. */
const MISSED_MAX = 2
/** Names whose rule is remembered, matching or not. */
const NAMES_MAX = 50_000

export interface TopicsOptions {
  readonly rules: readonly TopicRule[]
  readonly state: State
  readonly cluster: Cluster
  readonly runtime: Runtime
  readonly log: Log
}

export class KnownTopic implements LayoutTopic {
  readonly name: string
  readonly topicId: string
  readonly rule: TopicRule
  /** The partitions that the cluster has, hidden ones too, and their leaders where the cluster was asked (−1: none). */
  count = 0
  leaders: readonly number[] = []
  /** How often in a row the cluster did not name it. */
  missed = 0
  /** When its `topic` record was appended last. */
  recordedAtMs = -Infinity
  private readonly state: State

  constructor(name: string, topicId: string, rule: TopicRule, state: State) {
    this.name = name
    this.topicId = topicId
    this.rule = rule
    this.state = state
  }

  view(): View | undefined {
    return this.state.mayAct() ? this.state.view(this.topicId) : undefined
  }
}

export class Topics implements LayoutTopics {
  /** Grows whenever a topic comes or goes: what was looked up before may be different now. */
  revision = 0
  /** All topics of the cluster have been seen once. */
  isLoaded = false
  private readonly options: TopicsOptions
  private readonly byName = new Map<string, KnownTopic>()
  private readonly byId = new Map<string, KnownTopic>()
  /** The rule of each name asked for lately; null: none. */
  private readonly ruleOf = new Map<string, TopicRule | null>()
  /** Ids of topics that were deleted: the log may still name them. */
  private readonly deleted = new Set<string>()
  private readonly listeners: ((topic: KnownTopic, isThere: boolean) => void)[] = []
  private readonly seenListeners: ((topic: KnownTopic) => void)[] = []
  private timer: Timer | undefined
  private isAsking = false
  /** Names to ask for as soon as the question under way is answered. */
  private readonly wanted = new Set<string>()
  private isStopped = false

  constructor(options: TopicsOptions) {
    this.options = options
  }

  start(): void {
    this.options.state.onChange(() => {
      this.learnFromState()
      this.record()
    })
    void this.refresh()
  }

  stop(): void {
    this.isStopped = true
    this.timer?.cancel()
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

  /**
   * A topic with a rule was named, by whatever is known of it. undefined: the cluster has to be asked for its id first,
   * which is begun.
   */
  meet(name: string, topicId: string, count: number): KnownTopic | undefined {
    const known = this.byName.get(name)
    if (known !== undefined && (topicId === zeroUuid || known.topicId === topicId)) {
      this.seen(known, count)
      return known
    }
    const rule = this.rule(name)
    if (rule === undefined) return undefined
    if (topicId === zeroUuid || count === 0) {
      void this.ask([name])
      return undefined
    }
    return this.add(name, topicId, rule, count)
  }

  /** An id without a name was met: which topic it is, the next question shows. */
  meetId(): void {
    void this.ask(undefined)
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
    this.revision++
    topic.count = count
    this.recordOne(topic)
    for (const listener of this.listeners) listener(topic, true)
    this.seen(topic, count)
    return topic
  }

  private remove(topic: KnownTopic): void {
    this.deleted.add(topic.topicId)
    this.byName.delete(topic.name)
    this.byId.delete(topic.topicId)
    this.revision++
    for (const listener of this.listeners) listener(topic, false)
  }

  /** Another proxy has met topics: a change of theirs waits for every proxy, so they must be known here. */
  private learnFromState(): void {
    const { state } = this.options
    if (!state.mayAct()) return
    for (const topicId of state.topicIds()) {
      const topic = this.byId.has(topicId) || this.deleted.has(topicId) ? undefined : state.view(topicId)?.topic
      const rule = topic === undefined ? undefined : this.rule(topic.name)
      if (topic === undefined || rule === undefined || this.byName.has(topic.name)) continue
      this.add(topic.name, topicId, rule, currentLayout(topic).count)
    }
  }

  private record(): void {
    for (const topic of this.byId.values()) this.recordOne(topic)
  }

  /** Records the count of a topic that the log does not know: once it may, and again if that was lost. */
  private recordOne(topic: KnownTopic): void {
    const { state, runtime } = this.options
    if (this.isStopped || !state.mayAct() || state.view(topic.topicId) !== undefined || topic.count === 0) return
    if (runtime.now() - topic.recordedAtMs < RETRY_MS) return
    topic.recordedAtMs = runtime.now()
    const { name, topicId, count } = topic
    state.append({ kind: 'topic', proxy: state.proxy, topicId, name, count })
    runtime.timer(RETRY_MS, () => this.recordOne(topic))
  }

  private async refresh(): Promise<void> {
    const isDone = await this.ask(undefined)
    if (this.isStopped) return
    this.timer = this.options.runtime.timer(isDone ? REFRESH_MS : RETRY_MS, () => void this.refresh())
  }

  /** Asks the cluster for these topics (undefined: all). One question at a time. */
  async ask(names: readonly string[] | undefined): Promise<boolean> {
    if (this.isAsking) {
      for (const name of names ?? []) this.wanted.add(name)
      return false
    }
    this.isAsking = true
    try {
      const found = await this.options.cluster.describeTopics(names)
      if (this.isStopped) return true
      for (const topic of found) this.described(topic)
      if (names === undefined) {
        this.forgetDeleted(found)
        this.isLoaded = true
      }
      return true
    } catch (error) {
      this.options.log.debug({ error: String(error) }, 'topics could not be learned from the cluster')
      return false
    } finally {
      this.isAsking = false
      if (this.wanted.size > 0 && !this.isStopped) {
        const wanted = [...this.wanted]
        this.wanted.clear()
        void this.ask(wanted)
      }
    }
  }

  private described({ name, topicId, partitions }: TopicDescription): void {
    if (this.rule(name) === undefined) return
    const topic = this.meet(name, topicId, partitions.length)
    if (topic === undefined) return
    topic.missed = 0
    topic.leaders = partitions.map(({ leader }) => leader)
    for (const listener of this.seenListeners) listener(topic)
  }

  private forgetDeleted(found: readonly TopicDescription[]): void {
    const ids = new Set(found.map(({ topicId }) => topicId))
    for (const topic of [...this.byId.values()]) {
      if (ids.has(topic.topicId)) continue
      topic.missed++
      if (topic.missed >= MISSED_MAX) this.remove(topic)
    }
  }
}
