/** What the guard of one topic knows at one proxy, and the words it shares with its parts. */
import type { ProxyId, StateRecord } from '../../state/record.ts'
import { currentLayout, type Layout, openEpochs } from '../../state/topic-state.ts'
import type { View } from '../../state/view.ts'
import { type Ledger, type LedgerEvent, newLedger, reduceLedger } from './clean.ts'
import { type LateAnswers, noLates } from './late-answers.ts'
import { noSequences, type Sequenced, type SequenceGuard } from './sequence-guard.ts'
import { noteSent, type Sent } from './sent.ts'
import { explain, type Explanation } from './staleness.ts'
import type { LayoutTimes } from './times.ts'

/** The records of one partition in one Produce request. A request with several is taken apart: an old batch must not wait behind a new one. */
export interface Batch {
  readonly id: string
  readonly instance: string
  readonly partition: number
  /** The broker's address that it came to: answers on a connection go out in the order of their requests. */
  readonly connection: string
  /** By which it is recognised when it comes back: producer id, epoch and sequence, or its first record. */
  readonly mark: string
  /** The marks of its further records, where its client may bring a refused batch back inside other ones. */
  readonly others?: ReadonlySet<string>
  /** One hash per keyed record; undefined where the partitioner is not known. */
  readonly hashes: readonly number[] | undefined
  /** Of idempotent producers. */
  readonly sequenced?: Sequenced
  /** Its client can still send on this connection while this batch is held: else older ones would stay in its queue. */
  readonly hasRoom: boolean
  /** A refusal does not reorder its producer's records: idempotent, or never two Produce in flight. */
  readonly mayRefuse: boolean
  /** The whole request is refused once, so that its client asks for Metadata (push.ts). */
  readonly isPushed?: boolean
}

export type HoldReason = 'no view' | 'ahead' | 'preparing' | 'withdrawal' | 'cut' | 'lane' | 'sequence' | 'push'

export interface Held {
  readonly batch: Batch
  readonly sinceMs: number
  readonly reason: HoldReason
  readonly age: number
  /** The oldest layout that explains it too. */
  readonly oldest: number
  /** No one layout explains it. */
  readonly isMixed?: boolean
  /** Its cut is in force: it goes on whatever its keys say. */
  readonly isGranted: boolean
  /** A refusal would make its client write again what has gone: it is let go, and counted, when its time is over. */
  readonly isBound?: boolean
}

/** One instance's change of layout. */
export interface Cutting {
  /** The layout of its last batch. */
  readonly layout: number
  /** The newest layout that a batch of it was let through by: whatever older still comes is late. */
  readonly reached: number
  /** The oldest newer layout that a batch of it waits for. */
  readonly target?: number
  readonly sinceMs: number
  /** Cuts that it was given since it first wrote by the newest layout of its own. */
  readonly cuts?: number
}

/** A cut on its way: ends are read, then recorded, then read by every proxy. */
export interface Round {
  readonly id: string
  readonly targets: Readonly<Record<string, number>>
  readonly layouts: readonly number[]
  /** Partitions that wait for a seal, decided before the first end is read. */
  readonly leftOut: readonly number[]
  /** Instances that were not quiet: their cut is taken all the same, and counted. */
  readonly unquiet: readonly string[]
  readonly askedMs: number
  readonly ends?: Readonly<Record<number, number>>
}

export interface GuardState {
  readonly proxy: ProxyId
  readonly times: LayoutTimes
  view?: View
  ledgers: ReadonlyMap<string, Ledger>
  held: readonly Held[]
  flying: ReadonlyMap<string, { batch: Batch; age: number }>
  cutting: ReadonlyMap<string, Cutting>
  rounds: readonly Round[]
  roundsMade: number
  lastRoundMs: number
  /** Epoch → highest ballot this proxy has used. */
  ballots: Readonly<Record<number, number>>
  /** What was appended and not read back yet → when. */
  sent: Sent
  /** Partition → end of the last batch seen acknowledged. */
  ends: Readonly<Record<number, number>>
  /** Late batches acknowledged before the seal was read: those above its boundary are counted then. */
  lates: LateAnswers
  stops: readonly string[]
  /** The last confirmed reads of the state log: when, and up to where. */
  readings: readonly { atMs: number; position: number }[]
  /** Instances that were found at another proxy too. */
  split: ReadonlySet<string>
  sequences: SequenceGuard
}

export type CountReason =
  | 'late after the seal'
  | 'late above the boundary'
  | 'late after its cut'
  | 'mixed layouts in one batch'
  | 'old and new alike'
  | 'cut without quiet'
  | 'to and fro'
  | 'acknowledged after the lease'
  | 'held too long'
  | 'at two proxies'

export type GuardEffect =
  | { type: 'forward'; batch: Batch }
  /** Answer it retriably (code 6, leader fields -1). */
  | { type: 'refuse'; batch: Batch; reason: HoldReason }
  | { type: 'append'; record: StateRecord }
  | { type: 'read-ends'; round: string; partitions: number[] }
  /** Order of these records (without a batch: of all this instance's) may be lost; who and why goes to the metrics. */
  | { type: 'count'; reason: CountReason; instance: string; batch?: Batch }
  /** The cut that the instance waited for, so long since its first batch that had to, is in force. */
  | { type: 'cut'; instance: string; waitedMs: number }

/**
 * `atMs`, of a clock that nobody sets, is what waits and pauses are reckoned by; `wallMs` is compared with what the log
 * says. Both are milliseconds, and nothing else is known of how they stand to each other.
 */
export interface Moment {
  readonly atMs: number
  readonly wallMs: number
}

/** One step of the guard: a copy of the state that may be written, and the effects so far. */
export interface Turn extends Moment {
  readonly state: GuardState
  readonly effects: GuardEffect[]
}

export function newGuard(proxy: ProxyId, times: LayoutTimes): GuardState {
  return {
    proxy,
    times,
    ledgers: new Map(),
    held: [],
    flying: new Map(),
    cutting: new Map(),
    rounds: [],
    roundsMade: 0,
    lastRoundMs: -Infinity,
    ballots: {},
    sent: {},
    ends: {},
    lates: noLates,
    stops: [],
    readings: [],
    split: new Set(),
    sequences: noSequences,
  }
}

export function ledgerOf(turn: Turn, instance: string): Ledger {
  const known = turn.state.ledgers.get(instance)
  if (known !== undefined) return known
  const fresh = newLedger(instance, newestAnywhere(turn.state.view))
  return turn.state.stops.reduce(
    (ledger, reason) => reduceLedger(ledger, { type: 'stopped', reason, atMs: turn.atMs }),
    fresh,
  )
}

export function note(turn: Turn, instance: string, event: LedgerEvent): void {
  const ledger = reduceLedger(ledgerOf(turn, instance), { ...event, atMs: turn.atMs })
  turn.state.ledgers = new Map(turn.state.ledgers).set(instance, ledger)
}

/** The layouts by which batches may come now, oldest first; the last is the current one. */
export function openLayouts(view: View, wallMs: number, times: LayoutTimes): Layout[] {
  const epochs = openEpochs(view.topic, wallMs, times.settleMs)
  return view.topic.layouts.filter((layout) => epochs.includes(layout.epoch))
}

/**
 * How the open layouts explain a batch; undefined: none has its partition. Layouts that its instance cannot know yet
 * do not count, unless nothing else explains it.
 */
export function explainBatch(turn: Turn, view: View, batch: Batch): Explanation | undefined {
  const layouts = openLayouts(view, turn.wallMs, turn.state.times)
  const ledger = turn.state.ledgers.get(batch.instance)
  const served = ledger?.shown.at(-1)?.epoch
  const known = Math.max(ledger?.knownEpoch ?? Infinity, ...(ledger?.shown ?? []).map((showing) => showing.epoch))
  const possible = layouts.filter((layout) => layout.epoch <= known)
  const explained = explain(possible, batch.partition, batch.hashes, served)
  if (explained !== undefined && explained.epochs.length > 0) return explained
  return explain(layouts, batch.partition, batch.hashes, served)
}

/** The newest layout that an instance may have met elsewhere: one being prepared may be open already. */
export function newestAnywhere(view: View | undefined): number {
  if (view === undefined) return Infinity
  return currentLayout(view.topic).epoch + (view.topic.proposal === undefined ? 0 : 1)
}

/** Appends a record unless it was appended less than `retryMs` ago; the log judges doubles. */
export function appendOnce(turn: Turn, what: string, record: StateRecord): void {
  const sentMs = turn.state.sent[what]
  if (sentMs !== undefined && turn.atMs - sentMs < turn.state.times.retryMs) return
  turn.state.sent = noteSent(turn.state.sent, what, turn.atMs)
  turn.effects.push({ type: 'append', record })
}

/** Notes that order may be lost, of the records of a batch. */
export function countBatch(turn: Turn, reason: CountReason, batch: Batch): void {
  turn.effects.push({ type: 'count', reason, instance: batch.instance, batch })
}
