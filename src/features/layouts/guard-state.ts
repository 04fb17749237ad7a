/** What the guard of one topic knows at one proxy, and the words it shares with its parts. */
import type { FleetState } from '../../state/fleet.ts'
import type { ProxyId, StateRecord } from '../../state/record.ts'
import { type Layout, openEpochs, type TopicState } from '../../state/topic-state.ts'
import { type Ledger, type LedgerEvent, newLedger, reduceLedger } from './clean.ts'
import { explain, type Explanation } from './staleness.ts'
import type { LayoutTimes } from './times.ts'

/** The records of one partition in one Produce request. A request with several is taken apart: an old batch must not wait behind a new one. */
export interface Batch {
  readonly id: string
  readonly instance: string
  readonly partition: number
  /** By which it is recognised when it comes back: producer id, epoch and sequence, or its first record. */
  readonly mark: string
  /** One hash per keyed record; undefined where the partitioner is not known. */
  readonly hashes: readonly number[] | undefined
  /** The instance never had two Produce in flight: holding this one would keep its older batches in its queue. */
  readonly isAlone: boolean
}

export type HoldReason = 'no view' | 'ahead' | 'preparing' | 'withdrawal' | 'cut' | 'lane'

export interface Held {
  readonly batch: Batch
  readonly sinceMs: number
  readonly reason: HoldReason
  readonly age: number
  /** Its cut is in force: it goes on whatever its keys say. */
  readonly isGranted: boolean
}

/** One instance's change of layout. */
export interface Cutting {
  /** The layout of its last batch. */
  readonly layout: number
  /** The oldest newer layout that a batch of it waits for. */
  readonly target?: number
  readonly sinceMs: number
}

/** A cut on its way: ends are read, then recorded, then read by every proxy. */
export interface Round {
  readonly id: string
  readonly targets: Readonly<Record<string, number>>
  readonly layouts: readonly number[]
  /** Partitions that wait for a seal, decided before the first end is read. */
  readonly leftOut: readonly number[]
  readonly askedMs: number
  readonly ends?: Readonly<Record<number, number>>
}

/** What the log says, up to `position`. */
export interface View {
  readonly topic: TopicState
  readonly fleet: FleetState
  readonly position: number
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
  /** Epoch → highest ballot this proxy has used. */
  ballots: Readonly<Record<number, number>>
  /** What was appended and not read back yet → when. */
  sent: Readonly<Record<string, number>>
  /** Partition → end of the last batch seen acknowledged. */
  ends: Readonly<Record<number, number>>
  /** Late batches acknowledged before the seal was read, with their end: those above the boundary are counted then. */
  lates: readonly { batch: Batch; age: number; end: number }[]
  stops: readonly string[]
}

export type CountReason =
  | 'late after the seal'
  | 'late above the boundary'
  | 'late after its cut'
  | 'mixed layouts in one batch'
  | 'cut without quiet'
  | 'acknowledged after the lease'
  | 'held too long'

export type GuardEffect =
  | { type: 'forward'; batch: Batch }
  /** Answer it retriably (code 6, leader fields -1). */
  | { type: 'refuse'; batch: Batch; reason: HoldReason }
  | { type: 'append'; record: StateRecord }
  | { type: 'read-ends'; round: string; partitions: number[] }
  /** Order of these records may be lost; who and why goes to the metrics. */
  | { type: 'count'; reason: CountReason; batch: Batch }

/** One step of the guard: a copy of the state that may be written, and the effects so far. */
export interface Turn {
  readonly state: GuardState
  readonly atMs: number
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
    ballots: {},
    sent: {},
    ends: {},
    lates: [],
    stops: [],
  }
}

export function ledgerOf(turn: Turn, instance: string): Ledger {
  const known = turn.state.ledgers.get(instance)
  if (known !== undefined) return known
  const fresh = newLedger(instance)
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
export function openLayouts(view: View, atMs: number, times: LayoutTimes): Layout[] {
  const epochs = openEpochs(view.topic, atMs, times.settleMs)
  return view.topic.layouts.filter((layout) => epochs.includes(layout.epoch))
}

/** How the open layouts explain a batch; undefined: none has its partition. */
export function explainBatch(turn: Turn, view: View, batch: Batch): Explanation | undefined {
  const layouts = openLayouts(view, turn.atMs, turn.state.times)
  const served = turn.state.ledgers.get(batch.instance)?.shown.at(-1)?.epoch
  return explain(layouts, batch.partition, batch.hashes, served)
}

/** Appends a record unless it was appended less than `retryMs` ago; the log judges doubles. */
export function appendOnce(turn: Turn, what: string, record: StateRecord): void {
  const sentMs = turn.state.sent[what]
  if (sentMs !== undefined && turn.atMs - sentMs < turn.state.times.retryMs) return
  turn.state.sent = { ...turn.state.sent, [what]: turn.atMs }
  turn.effects.push({ type: 'append', record })
}
