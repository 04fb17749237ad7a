/**
 * The guard of one topic: a thin shell around `reduceGuard` that carries its effects out. It sees batches only while they
 * can matter (a change that is not settled, a state that may not be acted upon, a partitioner that is not known yet);
 * else they pass unopened, and only who writes is noted.
 *
 * Invariants: the reducer gets batches only while the lease holds and on the newest view; what comes otherwise is parked,
 * in order and bounded. Every batch that was admitted is decided once.
 */
import { errorCodes } from '../../../protocol/error-codes.ts'
import type { AdmittedBatch, BatchOutcome, BatchVerdict, ProduceBatch } from '../../../editors/produce/policy.ts'
import type { ProduceLane } from '../../../editors/produce/lane.ts'
import type { StateRecord } from '../../../state/record.ts'
import { currentLayout } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import type { Ledger } from '../clean.ts'
import { departure, mayWrite } from '../departure.ts'
import { forgetGone } from '../forgetting.ts'
import { type GuardEvent, isFixed, reduceGuard } from '../guard.ts'
import {
  type Batch,
  type CountReason,
  type GuardEffect,
  type GuardState,
  type Moment,
  newGuard,
  openLayouts,
} from '../guard-state.ts'
import type { LayoutTimes } from '../times.ts'
import { alertUntil, canSendNothingLate } from './alert.ts'
import type { GuardContext } from './context.ts'
import { forGood, mayRefuseForGood } from './late-refusal.ts'
import { Learning } from './learning.ts'
import { Parking } from './parking.ts'
import { Pushes } from './pushes.ts'
import { Stillness } from './stillness.ts'
import type { KnownTopic } from './known-topic.ts'
import type { Writer } from './writers.ts'

const refresh: BatchVerdict = { kind: 'refuse', errorCode: errorCodes.NOT_LEADER_OR_FOLLOWER }
/** The connection that stands for "some connection of the instance is open". */
const anyConnection = 'any'
/** Five requests on a connection are where the families that pipeline stop. */
const MOST_IN_FLIGHT = 5

interface Pending {
  readonly software: string
  decide(verdict: BatchVerdict): void
}

export class TopicGuard {
  readonly topic: KnownTopic
  readonly times: LayoutTimes
  state: GuardState
  readonly learning: Learning
  readonly pushes: Pushes
  private readonly context: GuardContext
  readonly stillness: Stillness
  private readonly parking: Parking
  private pending = new Map<string, Pending>()
  /** Forwarded under an earlier life of this proxy, and not answered yet. */
  private readonly former = new Set<string>()
  private ids = 0
  /** Of an older layout, and let through. */
  private lateBatches = 0
  private alertUntilMs = -Infinity
  /** Instances that can send nothing late any more, as of this view. */
  private readonly opaque = new Set<string>()
  private queue: GuardEvent[] = []
  private isBusy = false

  constructor(topic: KnownTopic, context: GuardContext) {
    this.topic = topic
    this.context = context
    this.times = context.timesOf(topic.rule)
    this.state = newGuard(context.state.proxy, this.times)
    this.learning = new Learning(topic.rule.partitioner)
    this.pushes = new Pushes(this, context)
    this.stillness = new Stillness(this, context, (event) => this.dispatch(event))
    this.parking = new Parking(this, context, (event) => this.dispatch(event))
  }

  /** The view that the guard acts on; undefined: not known yet. */
  get view(): View | undefined {
    return this.state.view
  }

  get mayAct(): boolean {
    return this.state.view !== undefined && this.context.mayAct()
  }

  /** A change is not settled: batches of an older layout may come. */
  get isAlert(): boolean {
    return this.alertUntilMs !== -Infinity && this.context.runtime.wallNow() < this.alertUntilMs
  }

  /** A change is proposed or not sealed: votes, cuts and leaders have to be looked after. */
  get isUnsealed(): boolean {
    return this.alertUntilMs === Infinity
  }

  get needsTick(): boolean {
    const { held, rounds } = this.state
    if (this.isUnsealed || held.length > 0 || rounds.length > 0 || this.parking.size > 0) return true
    return this.isAlert && [...this.state.cutting.values()].some(({ target }) => target !== undefined)
  }

  /** For people. */
  get facts(): { ledgers: Iterable<Ledger>; held: number; counted: Readonly<Record<string, number>>; late: number } {
    const { state, lateBatches } = this
    const counted = this.context.counted.byReason(this.topic.name)
    return { ledgers: state.ledgers.values(), held: state.held.length + this.parking.size, counted, late: lateBatches }
  }

  /** Whether Produce of this instance must be opened. */
  mustSee(instance: string): boolean {
    if (!this.mayAct) return !this.context.passesWithoutState(this.topic.rule)
    if (this.parking.size > 0) return true
    if (!this.isAlert && this.state.held.length === 0) return false
    if (this.context.writers.named(instance)?.isShared === true) return true
    if (this.opaque.has(instance)) return false
    if (!canSendNothingLate(this.state, instance, this.now())) return true
    this.opaque.add(instance)
    return false
  }

  /** @returns undefined where the topic is at rest and the batch was only learned from */
  admit(
    writer: Writer,
    request: ProduceBatch,
    isPushed: boolean,
    decide: (verdict: BatchVerdict) => void,
  ): Omit<AdmittedBatch, 'topic'> | undefined {
    this.feed()
    const { name, software } = writer
    const { lane, acks, partition } = request
    const isSeen = this.mustSee(name)
    const isSerial = isSeen && lane.mostInFlight <= 1
    const read = this.learning.read(name, software, partition, request.records, this.counts(), isSerial)
    if (!isSeen) return undefined
    const { hashes, mark, others, sequenced } = read
    const id = `${this.ids++}`
    const batch: Batch = {
      id,
      instance: name,
      partition,
      connection: labelOf(lane),
      mark,
      ...(others === undefined ? {} : { others }),
      hashes,
      ...(sequenced === undefined ? {} : { sequenced }),
      hasRoom: acks === 0 || (lane.mostInFlight > 1 && lane.inFlight < MOST_IN_FLIGHT),
      mayRefuse: acks !== 0 && (sequenced !== undefined || lane.mostInFlight <= 1),
      isPushed,
    }
    this.pending.set(id, { software, decide })
    if (!this.mayAct || this.parking.size > 0) this.parking.add(batch)
    else this.dispatch({ type: 'batch', batch })
    return {
      ended: (outcome) => this.ended(id, outcome),
      lost: () => {
        this.pending.delete(id)
        this.dispatch({ type: 'dropped', id })
      },
      bound: () => {
        this.parking.bound(id)
        this.dispatch({ type: 'bound', id })
      },
    }
  }

  /** The epoch by which writers place now, where the topic is at rest. */
  currentEpochs(): readonly number[] {
    const { view } = this.state
    return view === undefined ? [] : [currentLayout(view.topic).epoch]
  }

  /** Partition counts by which batches may be placed now. */
  private counts(): number[] {
    const { view } = this.state
    if (view === undefined) return []
    const { proposal } = view.topic
    const open = openLayouts(view, this.context.runtime.wallNow(), this.times).map(({ count }) => count)
    return proposal === undefined ? open : [...open, proposal.to]
  }

  private ended(id: string, outcome: BatchOutcome): void {
    this.pending.delete(id)
    if (this.former.delete(id)) {
      if (this.former.size === 0) this.stillness.stops.end('former life')
      return
    }
    this.feed()
    if (outcome.kind === 'failed') this.dispatch({ type: 'failed', id })
    else if (outcome.kind === 'withheld') this.dispatch({ type: 'withheld', id })
    else this.dispatch({ type: 'answered', id, end: outcome.end, lapsed: !this.context.state.mayAct() })
  }

  /** Decides what waited without the reducer; undefined: its connection is gone. */
  settle(id: string, verdict: 'forward' | 'refuse'): void {
    const pending = this.pending.get(id)
    if (verdict === 'refuse') this.pending.delete(id)
    pending?.decide(verdict === 'forward' ? { kind: 'forward' } : refresh)
  }

  isWaiting(id: string): boolean {
    return this.pending.has(id)
  }

  // --- instances

  /** The guard gets to know an instance, or more of it. */
  join(writer: Writer): void {
    const known = writer.topic(this.topic.topicId)
    const instance = writer.name
    const { wrote } = known
    if (!known.isJoined) {
      known.isJoined = true
      this.dispatch({ type: 'connected', instance, connection: anyConnection })
      for (const lane of known.lanes) this.connect(instance, lane)
      for (const epoch of known.shown) this.dispatch({ type: 'shown', instance, epoch })
    }
    if (wrote || (writer.isProducer && known.isNamed)) this.dispatch({ type: 'writer', instance, wrote })
  }

  connect(instance: string, lane: ProduceLane): void {
    this.dispatch({ type: 'connected', instance, connection: labelOf(lane) })
  }

  shown(instance: string, epoch: number): void {
    this.dispatch({ type: 'shown', instance, epoch })
  }

  disconnect(instance: string, lane: ProduceLane): void {
    this.dispatch({ type: 'lost', instance, connection: labelOf(lane) })
  }

  /** Its last connection closed. */
  left(instance: string): void {
    this.dispatch({ type: 'lost', instance, connection: anyConnection })
  }

  // --- time and state

  /** Gives the reducer the newest view, if it may be acted upon. */
  feed(): void {
    const { state, runtime } = this.context
    const view = state.mayAct() ? state.view(this.topic.topicId) : undefined
    const before = this.state.view
    if (view === undefined || (before?.topic === view.topic && before.fleet === view.fleet)) return
    const mayHavePassed = !this.isAlert || this.opaque.size > 0
    this.alertUntilMs = alertUntil(view, this.times)
    this.opaque.clear()
    if (mayHavePassed && runtime.wallNow() < this.alertUntilMs) this.stillness.awaitUnopened()
    this.dispatch({ type: 'view', view })
    this.parking.retry()
  }

  tick(): void {
    this.feed()
    this.parking.retry()
    if (!this.mayAct) return
    this.dispatch({ type: 'tick' })
    if (this.isUnsealed) this.pushes.closeIdle()
  }

  /** Forgets instances that left so long ago that nothing waits for them. */
  tidy(): void {
    const { state, gone } = forgetGone(this.state, this.context.runtime.now(), !this.isAlert)
    this.state = state
    for (const instance of gone) for (const memory of [this.learning, this.pushes]) memory.forget(instance)
  }

  /**
   * This proxy begins a new life under another id: whatever was kept under the old one is void. What was held comes
   * again, but where that would cost its producer's order: there it waits for the new life.
   */
  restart(): void {
    const { state } = this
    for (const id of this.state.flying.keys()) this.former.add(id)
    this.stillness.stops.clear()
    this.state = newGuard(this.context.state.proxy, this.times)
    this.alertUntilMs = -Infinity
    const fixed = state.held.filter(({ batch }) => isFixed(state, batch))
    this.parking.takeBack(fixed.map(({ batch, sinceMs, isBound }) => ({ batch, sinceMs, isBound: isBound === true })))
    for (const item of state.held) if (!fixed.includes(item)) this.settle(item.batch.id, 'refuse')
    for (const writer of this.context.writers.all()) {
      const known = writer.topics.get(this.topic.topicId)
      if (known?.isJoined !== true) continue
      known.isJoined = false
      this.join(writer)
    }
    if (this.former.size > 0) this.stillness.stops.begin('former life')
    this.stillness.awaitUnopened()
    this.feed()
  }

  /** Whether nobody is known who may still write to the topic by what this proxy showed. */
  get isUnwritten(): boolean {
    const now = this.context.runtime.now()
    return this.pending.size === 0 && ![...this.state.ledgers.values()].some((l) => mayWrite(l, now, this.times))
  }

  /**
   * This proxy stops: what it can say of the topic, all connections being closed.
   * @returns undefined: nothing
   */
  departure(sinceMs: number): StateRecord | undefined {
    const isUnsure = this.former.size > 0 || this.parking.size > 0 || this.stillness.mayBringBack
    return isUnsure || !this.mayAct ? undefined : departure(this.state, sinceMs, this.now())
  }

  /** The topic was deleted. What waits goes to the broker, which may have another topic of that name by now. */
  end(): void {
    this.stillness.stops.clear()
    const { held } = this.state
    for (const batch of [...held.map((waiting) => waiting.batch), ...this.parking.end()]) {
      if (!this.isWaiting(batch.id)) continue
      this.context.counted.add(this.topic.name, 'topic deleted while it waited', batch.instance)
      this.settle(batch.id, 'forward')
    }
  }

  // --- the reducer

  private now(): Moment {
    const { runtime } = this.context
    return { atMs: runtime.now(), wallMs: runtime.wallNow() }
  }

  private dispatch(event: GuardEvent): void {
    this.queue.push(event)
    if (this.isBusy) return
    this.isBusy = true
    try {
      for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
        const [state, effects] = reduceGuard(this.state, { ...next, ...this.now() })
        this.state = state
        for (const effect of effects) this.carryOut(effect, effects)
      }
    } finally {
      this.isBusy = false
    }
    if (this.needsTick) this.context.wake()
  }

  private carryOut(effect: GuardEffect, all: readonly GuardEffect[]): void {
    const { state, cluster, counted, refused, cuts } = this.context
    const { name } = this.topic
    switch (effect.type) {
      case 'append':
        if (state.mayAct()) state.append(effect.record)
        return
      case 'read-ends':
        cluster.endOffsets(name, effect.partitions).then(
          (ends) => this.dispatch({ type: 'ends', round: effect.round, ends }),
          () => undefined, // the reducer asks again
        )
        return
      case 'forward':
        this.forward(effect.batch, all)
        return
      case 'refuse':
        refused.add(name, effect.reason, effect.batch.instance)
        this.settle(effect.batch.id, 'refuse')
        return
      case 'count':
        counted.add(name, effect.reason, effect.instance, this.changeOf(effect.reason))
        return
      case 'cut':
        cuts.add(name, effect.instance, effect.waitedMs)
    }
  }

  /** After a second change that needs cuts nearly every batch is such a one, for ten minutes: said once. */
  private changeOf(reason: CountReason): number | undefined {
    return reason === 'old and new alike' ? this.currentEpochs()[0] : undefined
  }

  private forward(batch: Batch, effects: readonly GuardEffect[]): void {
    const pending = this.pending.get(batch.id)
    // Its connection went while it waited: it never left, and may come back.
    if (pending === undefined) return this.dispatch({ type: 'failed', id: batch.id })
    const { view, flying } = this.state
    const age = flying.get(batch.id)?.age ?? Infinity
    if (view !== undefined && age < currentLayout(view.topic).epoch) this.lateBatches++
    const isLate = effects.some(
      (other) => other.type === 'count' && other.reason === 'late after the seal' && other.batch === batch,
    )
    if (!isLate || !mayRefuseForGood(this.topic.rule, batch, pending.software))
      return pending.decide({ kind: 'forward' })
    this.pending.delete(batch.id)
    this.context.refused.add(this.topic.name, 'late', batch.instance)
    pending.decide(forGood)
    this.dispatch({ type: 'answered', id: batch.id, end: 0, lapsed: false })
  }
}

function labelOf({ connection }: ProduceLane): string {
  return `${connection.listener}/${connection.nodeId}`
}
