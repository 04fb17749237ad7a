/**
 * The guard of one topic at one proxy: (state, event) → (state, effects), without clock, socket or randomness.
 * Arrivals and answers are judged at once; everything that may have changed by itself (holds, votes, cuts) is looked
 * at as a whole on every view and tick. The caller keeps the lease: it passes batches and ticks only while it holds.
 *
 * Invariants: batches of one instance and partition leave in the order they came; nothing is forwarded whose layout
 * the log does not show yet; while a vote of this proxy may stand, no late batch is forwarded.
 */
import { judge, type Verdict } from './admission.ts'
import { advanceCuts, awaitCut, cuttingOf, restartCut, setCutting, setEnds } from './cuts.ts'
import {
  type Batch,
  type GuardEffect,
  type GuardState,
  type Held,
  type Moment,
  note,
  type Turn,
} from './guard-state.ts'
import { appendOnce, countBatch, newestAnywhere } from './guard-state.ts'
import { awaitsSeal, latesOf, noLates, remember } from './late-answers.ts'
import { expectSequence, isOutOfTurn, sawSequence } from './sequence-guard.ts'
import { leftElsewhere } from './departure.ts'
import { reportSplit, takenOver, vote, withdraw } from './votes.ts'
import { currentLayout } from '../../state/topic-state.ts'
import type { View } from '../../state/view.ts'

export type GuardEvent =
  | { type: 'connected'; instance: string; connection: string }
  /** A connection closed; the batches that were unanswered on it are failed one by one. */
  | { type: 'lost'; instance: string; connection: string }
  /** A Metadata answer with this layout was written to the instance. */
  | { type: 'shown'; instance: string; epoch: number }
  /**
   * It is known to be a producer before a batch of it is looked at. `wrote`: it sent Produce for this topic while the
   * topic was at rest. Else it asked for a producer id (InitProducerId) and for this topic's Metadata by name: it may
   * have placed records by whatever count it was shown.
   */
  | { type: 'writer'; instance: string; wrote: boolean }
  | { type: 'batch'; batch: Batch }
  /**
   * Acknowledged; `end` is the offset after its last record, −1 where the broker does not say (acks=0: something sent
   * behind it on the same connection was answered). `lapsed`: the lease did not hold any more.
   */
  | { type: 'answered'; id: string; end: number; lapsed: boolean }
  /** Refused by the broker, or its connection was lost before the answer: it may be in the log, and may come back. */
  | { type: 'failed'; id: string }
  /** It waited, and its connection was lost, or it was refused with the rest of its request: it may come back. */
  | { type: 'dropped'; id: string }
  /**
   * Another part of its request has gone, and its client repeats all of a request of which a part is refused (kafkajs,
   * without idempotence).
   */
  | { type: 'bound'; id: string }
  /** Forwarded, and then answered retriably with the rest of its request: it never left, and comes back. */
  | { type: 'withheld'; id: string }
  /** An old partition has no leader, a throttle runs; or that is over. */
  | { type: 'stopped' | 'resumed'; reason: string }
  | { type: 'ends'; round: string; ends: Readonly<Record<number, number>> }
  | { type: 'view'; view: View }
  | { type: 'tick' }

/** Readings of the log that are kept, to tell whether a vote elsewhere is younger than a connection here. */
const readingsMax = 64

/** `wallMs` left out: it is the same as `atMs`. */
export function reduceGuard(
  before: GuardState,
  event: GuardEvent & Partial<Moment> & Pick<Moment, 'atMs'>,
): readonly [GuardState, GuardEffect[]] {
  const { atMs, wallMs = atMs } = event
  const turn: Turn = { state: { ...before }, atMs, wallMs, effects: [] }
  handle(turn, event)
  return [turn.state, turn.effects]
}

function handle(turn: Turn, event: GuardEvent): void {
  const { state } = turn
  switch (event.type) {
    case 'connected':
      return connect(turn, event)
    case 'lost':
      return note(turn, event.instance, { ...event, boundMs: state.times.comeBackMs })
    case 'shown':
    case 'writer':
      return note(turn, event.instance, event)
    case 'batch':
      return arrive(turn, event.batch)
    case 'answered':
      return answer(turn, event)
    case 'failed':
    case 'withheld':
      return fail(turn, event)
    case 'dropped':
      return drop(turn, event.id)
    case 'bound':
      state.held = state.held.map((item) => (item.batch.id === event.id ? { ...item, isBound: true } : item))
      return
    case 'stopped':
    case 'resumed':
      state.stops =
        event.type === 'stopped' ? [...state.stops, event.reason] : state.stops.filter((s) => s !== event.reason)
      for (const instance of state.ledgers.keys()) note(turn, instance, event)
      return
    case 'ends':
      setEnds(turn, event.round, event.ends)
      return advance(turn)
    case 'view':
      state.view = event.view
      state.readings = [...state.readings.slice(1 - readingsMax), { atMs: turn.atMs, position: event.view.position }]
      countAbove(turn, event.view)
      return advance(turn)
    case 'tick':
      return advance(turn)
  }
}

function connect(turn: Turn, event: Extract<GuardEvent, { type: 'connected' }>): void {
  const { view, ledgers, times } = turn.state
  const { instance } = event
  const isFirst = (ledgers.get(instance)?.connections ?? 0) === 0
  const boundMs = times.comeBackMs
  note(turn, instance, { ...event, epoch: newestAnywhere(view), boundMs })
  if (isFirst && view !== undefined && leftElsewhere(turn, view, instance))
    note(turn, instance, { type: 'returning', untilMs: turn.atMs + boundMs })
}

function arrive(turn: Turn, batch: Batch): void {
  const verdict = judge(turn, batch, false)
  const others = batch.others === undefined ? {} : { others: batch.others }
  note(turn, batch.instance, { type: 'arrived', mark: batch.mark, ...others, age: verdict.age })
  clearTheWay(turn, batch, batch.hasRoom ? verdict.age : -Infinity)
  const { sequenced, partition } = batch
  if (sequenced !== undefined && isOutOfTurn(turn.state.sequences, partition, sequenced, turn.atMs)) {
    return refuse(turn, batch, 'sequence', verdict)
  }
  if (batch.isPushed === true) return refuse(turn, batch, 'push', verdict)
  const isBehind = turn.state.held.some((item) => isSameLane(item.batch, batch))
  if (isBehind) return hold(turn, batch, { ...verdict, reason: 'lane' })
  restartCut(turn, batch.instance, verdict.age)
  if (verdict.type === 'forward') return forward(turn, batch, verdict)
  begin(turn, batch, verdict)
  // A mixed one carries older records itself.
  const isInTheWay = verdict.reason === 'cut' && verdict.isMixed !== true && keepsOlder(turn, batch, verdict.age)
  if (isInTheWay && batch.mayRefuse) return refuse(turn, batch, verdict.reason, verdict)
  hold(turn, batch, verdict)
}

/**
 * Whether older batches of its instance would stay in the client's queue while it is held: because no further request
 * fits on the connection, or because the client sends the next batch of a partition when it has the answer to the last
 * (kafka-python if idempotent, the Java client for what it sends again), which may be one in the same request.
 */
function keepsOlder({ state }: Turn, batch: Batch, age: number): boolean {
  if (!batch.hasRoom) return true
  return [...state.flying.values(), ...state.held].some(
    (other) => other.age < age && isSameConnection(other.batch, batch),
  )
}

/**
 * Older batches go before what is held on their connection: the answer to one that arrives (of layout `age`) would wait
 * behind it, and where nothing more fits (-Infinity) one that was refused could not come again. What is held is refused
 * and comes again behind them, but for a mixed one: it carries older records itself.
 */
function clearTheWay(turn: Turn, batch: Batch, age: number): void {
  const { state } = turn
  const kept: Held[] = []
  const refused: Held[] = []
  for (const item of state.held) {
    const { batch: other } = item
    const isBefore = item.reason === 'cut' && item.age > age && isSameConnection(other, batch)
    const isInTheWay = isBefore && item.isMixed !== true && !isFixed(state, other)
    const isBehind = refused.some((one) => isSameLane(one.batch, other))
    if (isInTheWay || isBehind) refused.push(item)
    else kept.push(item)
  }
  if (refused.length === 0) return
  state.held = kept
  for (const item of refused) refuse(turn, item.batch, item.reason, item)
}

/** Refusing something in its lane would reorder its producer's records, or write again what has gone. */
export function isFixed({ held }: GuardState, batch: Batch): boolean {
  return held.some((one) => isSameLane(one.batch, batch) && (!one.batch.mayRefuse || one.isBound === true))
}

function isSameConnection(a: Batch, b: Batch): boolean {
  return a.instance === b.instance && a.connection === b.connection
}

function isSameLane(a: Batch, b: Batch): boolean {
  return a.instance === b.instance && a.partition === b.partition
}

function hold(turn: Turn, batch: Batch, verdict: Pick<Held, 'reason' | 'age' | 'oldest' | 'isMixed'>): void {
  const { reason, age, oldest, isMixed = false } = verdict
  turn.state.held = [...turn.state.held, { batch, sinceMs: turn.atMs, reason, age, oldest, isMixed, isGranted: false }]
}

/** Starts what a held batch waits for. */
function begin(turn: Turn, batch: Batch, verdict: Extract<Verdict, { type: 'hold' }>): void {
  const view = turn.state.view
  if (view === undefined) return
  for (const layout of verdict.withdraw ?? []) withdraw(turn, view, layout)
  if (verdict.target !== undefined) awaitCut(turn, view, batch.instance, verdict.target)
}

function forward(turn: Turn, batch: Batch, verdict: Extract<Verdict, { type: 'forward' }>): void {
  const { state } = turn
  const view = state.view
  const { age, oldest } = verdict
  note(turn, batch.instance, { type: 'forwarded', id: batch.id, mark: batch.mark, age, oldest })
  state.flying = new Map(state.flying).set(batch.id, { batch, age })
  if (view !== undefined) {
    const cutting = cuttingOf(turn, view, batch.instance)
    const reached = Math.max(cutting.reached, verdict.layout)
    setCutting(turn, batch.instance, { ...cutting, layout: verdict.layout, reached })
  }
  if (batch.sequenced !== undefined) state.sequences = sawSequence(state.sequences, batch.partition, batch.sequenced)
  for (const reason of verdict.counts) countBatch(turn, reason, batch)
  turn.effects.push({ type: 'forward', batch })
}

function refuse(turn: Turn, batch: Batch, reason: Held['reason'], judged: Pick<Held, 'age' | 'oldest'>): void {
  const { age, oldest } = judged
  note(turn, batch.instance, { type: 'refused', mark: batch.mark, age, oldest })
  const { state } = turn
  if (batch.sequenced !== undefined) {
    state.sequences = expectSequence(state.sequences, batch.partition, batch.sequenced, turn.atMs)
  }
  turn.effects.push({ type: 'refuse', batch, reason })
}

function drop(turn: Turn, id: string): void {
  const item = turn.state.held.find(({ batch }) => batch.id === id)
  if (item === undefined) return
  turn.state.held = turn.state.held.filter((other) => other !== item)
  const { batch, age, oldest } = item
  note(turn, batch.instance, { type: 'refused', mark: batch.mark, age, oldest })
}

function answer(turn: Turn, event: { id: string; end: number; lapsed: boolean }): void {
  const { state } = turn
  const flight = state.flying.get(event.id)
  if (flight === undefined) return
  land(turn, event.id)
  const { batch, age } = flight
  note(turn, batch.instance, { type: 'answered', id: event.id })
  state.ends = { ...state.ends, [batch.partition]: Math.max(event.end, state.ends[batch.partition] ?? 0) }
  if (event.lapsed) countBatch(turn, 'acknowledged after the lease', batch)
  if (isAboveSeal(turn, age, batch.partition, event.end)) countBatch(turn, 'late above the boundary', batch)
  else if (awaitsSeal(state.view?.topic, age)) state.lates = remember(state.lates, { batch, age, end: event.end })
}

function fail(turn: Turn, { type, id }: { type: 'failed' | 'withheld'; id: string }): void {
  const flight = turn.state.flying.get(id)
  if (flight === undefined) return
  land(turn, id)
  note(turn, flight.batch.instance, { type, id })
  restartCut(turn, flight.batch.instance, flight.age)
  if (type === 'withheld') return
  // It may have been written all the same, above the boundary.
  if (isAboveSeal(turn, flight.age, flight.batch.partition, Infinity)) {
    countBatch(turn, 'late above the boundary', flight.batch)
  }
}

function land(turn: Turn, id: string): void {
  const flying = new Map(turn.state.flying)
  flying.delete(id)
  turn.state.flying = flying
}

function isAboveSeal(turn: Turn, age: number, partition: number, end: number): boolean {
  const layouts = turn.state.view?.topic.layouts ?? []
  return layouts.some((layout) => {
    const { seal } = layout
    const boundary = seal?.boundaries[partition]
    if (seal === undefined || boundary === undefined || layout.gates !== 'seal' || layout.epoch <= age) return false
    // Where its end is not known: a seal that rests on this proxy's vote was decided after it was answered.
    return end < 0 ? seal.forced || seal.gaveUp.includes(turn.state.proxy) : end > boundary
  })
}

/** Counts acknowledged late batches that a seal, now known, did not cover; forgets those no change waits for. */
function countAbove(turn: Turn, view: View): void {
  const { state } = turn
  const lates = [...latesOf(state.lates)].reverse()
  state.lates = noLates
  for (const late of lates) {
    const { batch, age, end } = late
    if (isAboveSeal(turn, age, batch.partition, end)) countBatch(turn, 'late above the boundary', batch)
    else if (awaitsSeal(view.topic, age)) state.lates = remember(state.lates, late)
  }
}

function advance(turn: Turn): void {
  const view = turn.state.view
  if (view === undefined) return
  takePart(turn, view)
  for (const instance of takenOver(turn, view)) note(turn, instance, { type: 'takenOver' })
  reportSplit(turn, view)
  grant(turn, view)
  releaseHeld(turn)
  vote(turn, view)
}

/** Says that this proxy holds Metadata and Produce of the new layout, and that it holds the gates of every cut. */
function takePart(turn: Turn, view: View): void {
  const { proxy } = turn.state
  const { topicId, proposal, cuts } = view.topic
  if (proposal?.preparingAt !== undefined && proposal.ready[proxy] === undefined) {
    appendOnce(turn, `ready ${proposal.id}`, { kind: 'ready', proxy, topicId, proposal: proposal.id })
  }
  const member = view.fleet.members[proxy]
  for (const cut of cuts) {
    if (cut.readers[proxy] !== undefined || member === undefined || member.registeredAt > cut.at) continue
    appendOnce(turn, `cut-read ${cut.id}`, { kind: 'cut-read', proxy, topicId, cut: cut.id })
  }
}

function grant(turn: Turn, view: View): void {
  for (const { instance, target, sinceMs, isForced } of advanceCuts(turn, view)) {
    turn.effects.push({ type: 'cut', instance, waitedMs: turn.atMs - sinceMs })
    if (isForced) turn.effects.push({ type: 'count', reason: 'cut without quiet', instance })
    turn.state.held = turn.state.held.map((item) => {
      if (item.batch.instance !== instance || item.reason !== 'cut') return item
      const verdict = judge(turn, item.batch, false)
      const isServed = verdict.type === 'hold' && verdict.target !== undefined && verdict.target <= target
      const isBehind = verdict.type === 'hold' && verdict.isBehind === true
      return isServed && !isBehind ? { ...item, isGranted: true } : item
    })
  }
}

/** How a batch goes that may neither wait longer nor be refused: by the layout that it is of, as far as that is known. */
function overdue({ state }: Turn, { age, oldest }: Held): { age: number; oldest: number; layout: number } {
  const newest = state.view === undefined ? 0 : currentLayout(state.view.topic).epoch
  return { age, oldest, layout: Math.min(age, newest) }
}

/** Something in its lane may not be refused any more, and must not go before it. */
function isFirm(waiting: readonly Held[], batch: Batch): boolean {
  return waiting.some(({ batch: other, isBound }) => isBound === true && isSameLane(other, batch))
}

/** Judges every held batch again, in the order they came; a batch that stays keeps its lane. */
function releaseHeld(turn: Turn): void {
  const waiting = turn.state.held
  const kept: Held[] = []
  const refusedLanes: Batch[] = []
  for (const item of waiting) {
    const { batch } = item
    const isOverdue = turn.atMs - item.sinceMs >= turn.state.times.holdBoundMs
    if (isOverdue && isFirm(waiting, batch)) {
      forward(turn, batch, { type: 'forward', ...overdue(turn, item), counts: ['held too long'] })
      continue
    }
    if (isOverdue || refusedLanes.some((other) => isSameLane(other, batch))) {
      refusedLanes.push(batch)
      refuse(turn, batch, item.reason, item)
      continue
    }
    if (kept.some((other) => isSameLane(other.batch, batch))) {
      kept.push(item)
      continue
    }
    const verdict = judge(turn, batch, item.isGranted)
    if (verdict.type === 'forward') {
      forward(turn, batch, verdict)
      continue
    }
    begin(turn, batch, verdict)
    const { reason, age, oldest, isMixed = false } = verdict
    kept.push({ ...item, reason, age, oldest, isMixed })
  }
  turn.state.held = kept
}
