/**
 * The guards of all topics, as the Produce editor asks them. At rest a request costs a look at the topics it names (their
 * bytes are compared with those seen last on the connection); who writes where is noted at the first sight.
 */
import type { ProduceLane } from '../../../editors/produce/lane.ts'
import type { AdmittedBatch, BatchVerdict, ProduceBatch, ProducePolicy } from '../../../editors/produce/policy.ts'
import { TopicWalk } from '../../../editors/produce/topic-walk.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Timer } from '../../../runtime/runtime.ts'
import type { Departure } from '../../../state/state.ts'
import type { GuardContext } from './context.ts'
import { TopicGuard } from './topic-guard.ts'
import type { KnownTopic } from './known-topic.ts'
import type { Topics } from './topics.ts'
import type { Writer } from './writers.ts'

const TICK_MS = 100
/** Leaders are asked for so often while a change is not sealed. */
const LEADERS_EVERY_TICKS = 10
/** Topics remembered per connection. */
const SIGHTS_MAX = 64
/** Produce v13 and later name topics by id. */
const IDS_FROM = 13

/** A topic that was seen on a connection. `guard` undefined: it has no rule. */
interface Sight {
  readonly name: Buffer
  readonly guard: TopicGuard | undefined
  isNoted: boolean
  /** The partitioner is known: nothing has to be opened to learn it. */
  isLearned: boolean
}

/** What is kept per connection. */
interface Use {
  readonly writer: Writer
  sights: Sight[]
  revision: number
}

/** Of a topic with a rule that is not known yet. */
interface Waiting {
  readonly batch: ProduceBatch
  readonly sinceMs: number
  readonly decide: (verdict: BatchVerdict) => void
  admitted: AdmittedBatch | undefined
  isLost: boolean
  isBound: boolean
}

export class Guards implements ProducePolicy {
  private readonly context: GuardContext
  private readonly topics: Topics
  private readonly byTopic = new Map<string, TopicGuard>()
  private readonly walk = new TopicWalk()
  private waiting: Waiting[] = []
  /** Batches went that may be of a topic with a rule, of which nobody took note. */
  private hasPassedUnmet = false
  private proxy: string
  private couldAct = false
  private timer: Timer | undefined
  private ticks = 0

  constructor(context: GuardContext, topics: Topics) {
    this.context = context
    this.topics = topics
    this.proxy = context.state.proxy
    topics.onTopic((topic, isThere) => (isThere ? this.add(topic) : this.remove(topic)))
    topics.onNamed(() => this.settleWaiting())
    topics.onSeen((topic) => this.byTopic.get(topic.topicId)?.stillness.noteLeaders())
    context.state.onChange(() => this.stateChanged())
  }

  of(topicId: string): TopicGuard | undefined {
    return this.byTopic.get(topicId)
  }

  all(): Iterable<TopicGuard> {
    return this.byTopic.values()
  }

  // --- Produce

  opens(lane: ProduceLane, version: number, bytes: Buffer, bodyAt: number, end: number): boolean {
    // What waits may have become free without a word: nothing may pass it.
    if (this.waiting.length > 0) this.settleWaiting()
    const use = this.use(lane)
    const { walk } = this
    walk.open(bytes, version, bodyAt, end)
    let mustOpen = false
    while (walk.next()) {
      const sight = this.sight(use, lane, bytes, version)
      if (sight === undefined) mustOpen = true
      else if (sight.guard !== undefined) mustOpen = this.looksAt(use, lane, sight, sight.guard) || mustOpen
    }
    // What could not be seen may be any topic that this client knows.
    return walk.isComplete ? mustOpen : this.mayWriteAll(use, lane) || mustOpen
  }

  private looksAt(use: Use, lane: ProduceLane, sight: Sight, guard: TopicGuard): boolean {
    if (!sight.isNoted) {
      sight.isNoted = true
      this.noteWrite(use.writer, lane, guard)
    }
    const { name } = use.writer
    if (guard.mustSee(name)) return true
    if (!sight.isLearned) sight.isLearned = !guard.learning.wants(name)
    return !sight.isLearned
  }

  private mayWriteAll(use: Use, lane: ProduceLane): boolean {
    let mustOpen = false
    for (const topicId of use.writer.topics.keys()) {
      const guard = this.byTopic.get(topicId)
      if (guard === undefined) continue
      this.noteWrite(use.writer, lane, guard)
      mustOpen ||= guard.mustSee(use.writer.name)
    }
    return mustOpen
  }

  private use(lane: ProduceLane): Use {
    const known = lane.note as Use | undefined
    if (known !== undefined && known.revision === this.topics.revision) return known
    const writer = this.context.writers.of(lane.connection)
    const use: Use = { writer, sights: [], revision: this.topics.revision }
    lane.note = use
    this.isProducer(writer)
    return use
  }

  /** undefined: a topic with a rule that is not known yet, so it must be waited for. */
  private sight(use: Use, lane: ProduceLane, bytes: Buffer, version: number): Sight | undefined {
    const { start, end } = this.walk
    for (const sight of use.sights) if (isSame(sight.name, bytes, start, end)) return sight
    const name = version >= IDS_FROM ? '' : bytes.toString('utf8', start, end)
    const id = version >= IDS_FROM ? bytes.toString('base64url', start, end) : ''
    const topic = this.topics.find(name, id)
    if (topic === undefined && this.mayBeRuled(name, id, lane)) return undefined
    const guard = topic === undefined ? undefined : this.byTopic.get(topic.topicId)
    const sight: Sight = { name: Buffer.from(bytes.subarray(start, end)), guard, isNoted: false, isLearned: false }
    if (use.sights.length >= SIGHTS_MAX) use.sights.shift()
    use.sights.push(sight)
    return sight
  }

  /** Whether the batch may turn out to be of a topic with a rule, which is not known yet. */
  private isUnmet({ topic, topicId, lane }: ProduceBatch): boolean {
    return this.mayBeRuled(topic, topicId, lane)
  }

  /** As long as one batch of it waits, those behind it do. */
  private mayBeRuled(topic: string, topicId: string, lane: ProduceLane): boolean {
    const isWaiting = this.waiting.some(
      ({ batch }) => batch.lane === lane && batch.topic === topic && batch.topicId === topicId,
    )
    return isWaiting || this.topics.mayBeRuled(topic, topicId, lane.connection)
  }

  private noteWrite(writer: Writer, lane: ProduceLane, guard: TopicGuard): void {
    const known = writer.topic(guard.topic.topicId)
    const isNewLane = !known.lanes.has(lane)
    if (isNewLane) known.lanes = new Set([...known.lanes, lane])
    // It writes by some layout; at rest there is only one.
    if (known.shown.length === 0 && !guard.isAlert) known.shown = guard.currentEpochs()
    const wasJoined = known.isJoined
    const isNews = !known.wrote
    known.wrote = true
    if (wasJoined && isNewLane) guard.connect(writer.name, lane)
    if (isNews || !wasJoined) guard.join(writer)
  }

  private isProducer(writer: Writer): void {
    if (writer.isProducer) return
    writer.isProducer = true
    for (const [topicId, known] of writer.topics) if (known.isNamed) this.byTopic.get(topicId)?.join(writer)
  }

  identified(lane: ProduceLane): void {
    this.isProducer(this.context.writers.of(lane.connection))
  }

  admit(
    batches: readonly ProduceBatch[],
    decide: (index: number, verdict: BatchVerdict) => void,
  ): readonly (AdmittedBatch | undefined)[] {
    const pushes = this.pushes(batches)
    return batches.map((batch, index) => this.admitOne(batch, pushes, (verdict) => decide(index, verdict)))
  }

  private admitOne(
    batch: ProduceBatch,
    pushes: ReadonlySet<TopicGuard>,
    decide: (verdict: BatchVerdict) => void,
  ): AdmittedBatch | undefined {
    if (batch.records.length === 0) return undefined
    const guard = this.guardOf(batch)
    if (guard === undefined) return this.isUnmet(batch) ? this.await(batch, decide) : undefined
    const { writer } = this.use(batch.lane)
    this.noteWriteOnce(writer, batch.lane, guard)
    const admitted = guard.admit(writer, batch, pushes.has(guard), decide)
    return admitted === undefined ? undefined : { topic: guard.topic.name, ...admitted }
  }

  private noteWriteOnce(writer: Writer, lane: ProduceLane, guard: TopicGuard): void {
    const known = writer.topic(guard.topic.topicId)
    if (!known.wrote || !known.isJoined || !known.lanes.has(lane)) this.noteWrite(writer, lane, guard)
  }

  /** The topics whose batches in this request are refused, to make its client ask for Metadata. */
  private pushes(batches: readonly ProduceBatch[]): ReadonlySet<TopicGuard> {
    const pushed = new Set<TopicGuard>()
    const byGuard = new Map<TopicGuard, ProduceBatch[]>()
    for (const batch of batches) {
      const guard = this.guardOf(batch)
      if (guard === undefined || !guard.isAlert || !guard.mayAct) continue
      byGuard.set(guard, [...(byGuard.get(guard) ?? []), batch])
    }
    for (const [guard, mine] of byGuard) {
      const [first] = mine
      if (first !== undefined && guard.pushes.atProduce(this.use(first.lane).writer, mine)) pushed.add(guard)
    }
    return pushed
  }

  private guardOf({ topic, topicId }: ProduceBatch): TopicGuard | undefined {
    const known = this.topics.find(topic, topicId)
    return known === undefined ? undefined : this.byTopic.get(known.topicId)
  }

  /** Nobody knows the topic yet: asked for, and admitted when it is known. */
  private await(batch: ProduceBatch, decide: (verdict: BatchVerdict) => void): AdmittedBatch {
    const waiting: Waiting = {
      batch,
      sinceMs: this.context.runtime.now(),
      decide,
      admitted: undefined,
      isLost: false,
      isBound: false,
    }
    this.waiting.push(waiting)
    this.context.wake()
    return {
      topic: batch.topic,
      ended: (outcome) => waiting.admitted?.ended(outcome),
      lost: () => {
        waiting.isLost = true
        waiting.admitted?.lost()
      },
      bound: () => {
        waiting.isBound = true
        waiting.admitted?.bound()
      },
    }
  }

  /** Batches of topics that are known by now go on, in order; so do those that waited in vain. */
  private settleWaiting(): void {
    for (const item of this.waiting.splice(0)) {
      const { batch, sinceMs, decide } = item
      if (item.isLost) continue
      if (this.guardOf(batch) === undefined && this.isUnmet(batch)) {
        if (this.context.runtime.now() - sinceMs < UNMET_MS) {
          this.waiting.push(item)
          continue
        }
        this.hasPassedUnmet = true
      }
      // Not `admitOne` when nobody found it: that would let it wait once more, and so for ever.
      item.admitted = this.guardOf(batch) === undefined ? undefined : this.admitOne(batch, noPushes, decide)
      if (item.isBound) item.admitted?.bound()
      // A topic that does not exist, or no longer: the broker says so.
      if (item.admitted === undefined) decide({ kind: 'forward' })
    }
  }

  failedUnopened(lane: ProduceLane): void {
    for (const guard of this.guardsOf(lane)) guard.stillness.failedUnopened(lane)
  }

  throttled(lane: ProduceLane, ms: number): void {
    for (const guard of this.guardsOf(lane)) guard.stillness.throttled(lane, ms)
  }

  private guardsOf(lane: ProduceLane): TopicGuard[] {
    const { writer } = this.use(lane)
    return [...writer.topics].flatMap(([topicId, known]) => {
      const guard = known.lanes.has(lane) ? this.byTopic.get(topicId) : undefined
      return guard === undefined ? [] : [guard]
    })
  }

  closed({ connection }: ProduceLane): void {
    this.gone(connection)
  }

  /** A connection closed. */
  gone(connection: Connection): void {
    const writer = this.context.writers.closed(connection)
    if (writer === undefined) return
    for (const [topicId, known] of writer.topics) {
      const guard = this.byTopic.get(topicId)
      for (const lane of known.lanes) {
        if (lane.connection !== connection) continue
        known.lanes = new Set([...known.lanes].filter((other) => other !== lane))
        guard?.stillness.forgetLane(lane)
        if (known.isJoined) guard?.disconnect(writer.name, lane)
      }
      if (known.isJoined && writer.connections.size === 0) guard?.left(writer.name)
    }
  }

  // --- topics, state, time

  private add(topic: KnownTopic): void {
    const guard = new TopicGuard(topic, this.context)
    this.byTopic.set(topic.topicId, guard)
    guard.feed()
    this.settleWaiting()
  }

  private remove(topic: KnownTopic): void {
    this.byTopic.get(topic.topicId)?.end()
    this.byTopic.delete(topic.topicId)
    for (const writer of this.context.writers.all()) writer.topics.delete(topic.topicId)
  }

  private stateChanged(): void {
    const { state } = this.context
    const canAct = state.mayAct()
    if (this.couldAct && !canAct) for (const guard of this.byTopic.values()) guard.stillness.lapsed()
    this.couldAct = canAct
    if (state.proxy === this.proxy) for (const guard of this.byTopic.values()) guard.feed()
    else {
      this.proxy = state.proxy
      for (const guard of this.byTopic.values()) guard.restart()
    }
    this.settleWaiting()
  }

  /** Ticks run only while something waits or is not settled. */
  wake(): void {
    this.timer ??= this.context.runtime.timer(TICK_MS, () => this.tick())
  }

  private tick(): void {
    this.timer = undefined
    this.ticks++
    this.settleWaiting()
    let isNeeded = this.waiting.length > 0
    const unsealed: string[] = []
    for (const guard of this.byTopic.values()) {
      if (!guard.needsTick) continue
      guard.tick()
      isNeeded ||= guard.needsTick
      if (guard.isUnsealed) unsealed.push(guard.topic.name)
    }
    if (unsealed.length > 0 && this.ticks % LEADERS_EVERY_TICKS === 0) void this.topics.ask(unsealed)
    if (isNeeded) this.wake()
  }

  /**
   * This proxy stops, and every connection of its clients has ended.
   * @param sinceMs wall-clock time when their end began
   * @returns undefined where some batch is not accounted for
   */
  departure(sinceMs: number): Departure | undefined {
    if (this.waiting.length > 0 || this.hasPassedUnmet) return undefined
    const written = [...this.byTopic.values()].filter((guard) => !guard.isUnwritten)
    const records = written.flatMap((guard) => guard.departure(sinceMs) ?? [])
    return { wroteTo: written.map(({ topic }) => topic.topicId), records }
  }

  tidy(): void {
    for (const guard of this.byTopic.values()) guard.tidy()
  }

  stop(): void {
    this.timer?.cancel()
  }
}

/** How long a batch of a topic that cannot be found waits. */
const UNMET_MS = 9000
const noPushes: ReadonlySet<TopicGuard> = new Set()

/** Whether `bytes[start, end)` are these; names are short, so a loop beats a native call. */
function isSame(name: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[start + i]) return false
  return true
}
