/**
 * What one proxy knows of one instance that writes to a topic, and when the instance is clean: no batch of a layout
 * older than the change can come from it any more.
 *
 * Quiet is measured on the instance's own clock, which stands still while it could not send even if it wanted: an old
 * partition has no leader, a throttle runs, a connection it wrote on is lost and not made again, or it is gone. So
 * leaving is never clean: the clock of one that left stands, and only `goneAfter` or another proxy's vote ends the wait.
 */
import type { LayoutTimes } from './times.ts'

/** A batch, or what is left to wait for of it. */
interface Dated {
  readonly mark: string
  readonly age: number
  /**
   * The oldest layout that explains it too. While it is on its way for long, older batches may stand behind it in its
   * client's queue, even if its own keys lie in the same place under every layout.
   */
  readonly oldest: number
}

interface Unanswered extends Dated {
  readonly id: string
  /** On the instance's clock. */
  readonly sinceMs: number
}

interface Owed extends Dated {
  /** On the instance's clock. */
  readonly sinceMs: number
}

interface Stop {
  readonly reason: string
  /** Wall of the bound, in real time: a lost connection that is never made again does not stop the clock for ever. */
  readonly untilMs: number
}

export interface Ledger {
  readonly instance: string
  /** The newest layout it may have met at another proxy before it came (back) here. */
  readonly knownEpoch: number
  readonly connections: number
  /** Since when it has had one without a break. */
  readonly connectedMs: number
  readonly wrote: boolean
  /** Known to be a producer, before any batch of it was seen here. */
  readonly isWriter: boolean
  /** First showing of each epoch, on the instance's clock. */
  readonly shown: readonly { epoch: number; atMs: number }[]
  /** Epochs shown since its first connection of now: all is forgotten with the last one. */
  readonly shownNow: readonly number[]
  readonly unanswered: readonly Unanswered[]
  /** Batches that were refused, failed or lost with their connection and have not come back. */
  readonly owed: readonly Owed[]
  /** Age of a batch → when the last one came or was answered, on the instance's clock. */
  readonly lastOfAge: Readonly<Record<number, number>>
  readonly stops: readonly Stop[]
  readonly stoppedSinceMs: number
  readonly stoppedMs: number
  readonly goneSinceMs?: number
  /** Another proxy voted for it after it left here. */
  readonly takenOverMs?: number
}

export type LedgerEvent =
  /** `boundMs`: how long the connections it lost before it was gone may take to be made again. */
  | { type: 'connected'; connection: string; epoch: number; boundMs: number }
  | { type: 'lost'; connection: string; boundMs: number }
  /** It left another proxy, and makes its connections one by one: this one may not be the last. */
  | { type: 'returning'; untilMs: number }
  | { type: 'stopped'; reason: string }
  | { type: 'resumed'; reason: string }
  | { type: 'shown'; epoch: number }
  | { type: 'writer'; wrote: boolean }
  | { type: 'arrived'; mark: string; others?: ReadonlySet<string>; age: number }
  | { type: 'forwarded'; id: string; mark: string; age: number; oldest: number }
  | { type: 'answered'; id: string }
  | { type: 'failed'; id: string }
  /**
   * It never left: its request is answered retriably as a whole, because a part of it waits for a cut. Where its keys lie
   * in the same place under the old layout it is owed as one of the new, as that part is: else the cut would wait for it
   * and it, refused with that part again and again, for the cut.
   */
  | { type: 'withheld'; id: string }
  | { type: 'refused'; mark: string; age: number; oldest: number }
  | { type: 'takenOver' }

type Arrival = Extract<LedgerEvent, { type: 'arrived' }>

/** Longer than this a batch is not on its way to a healthy broker: its client's queue has grown behind it. */
const slowMs = 500
/** Far beyond every `comeBackMs`: what did not come back by then is not remembered. */
const longestOwedMs = 60_000
/** Far beyond what a client has in flight. */
const owedMax = 500

export function newLedger(instance: string, knownEpoch: number): Ledger {
  return {
    instance,
    knownEpoch,
    connections: 0,
    connectedMs: 0,
    wrote: false,
    isWriter: false,
    shown: [],
    shownNow: [],
    unanswered: [],
    owed: [],
    lastOfAge: {},
    stops: [],
    stoppedSinceMs: 0,
    stoppedMs: 0,
  }
}

/** The time on the instance's own clock. */
export function clockOf(ledger: Ledger, atMs: number): number {
  const running = settleStops(ledger, atMs)
  return atMs - running.stoppedMs - (running.stops.length > 0 ? atMs - running.stoppedSinceMs : 0)
}

export function reduceLedger(before: Ledger, event: LedgerEvent & { atMs: number }): Ledger {
  const ledger = settleStops(before, event.atMs)
  const now = clockOf(ledger, event.atMs)
  switch (event.type) {
    case 'connected': {
      const { goneSinceMs, takenOverMs: _, ...known } = ledger
      const here = goneSinceMs === undefined ? known : boundLosses(known, event.atMs + event.boundMs)
      const resumed = resume(resume(here, 'gone', event.atMs), `lost ${event.connection}`, event.atMs)
      const knownEpoch = goneSinceMs === undefined ? ledger.knownEpoch : event.epoch
      const shownNow = goneSinceMs === undefined ? ledger.shownNow : []
      const connectedMs = ledger.connections === 0 ? event.atMs : ledger.connectedMs
      return { ...resumed, knownEpoch, shownNow, connectedMs, connections: ledger.connections + 1 }
    }
    case 'lost':
      return loseConnection(ledger, event)
    case 'returning':
      return stop(ledger, { reason: 'returning', untilMs: event.untilMs }, event.atMs)
    case 'stopped':
      return stop(ledger, { reason: event.reason, untilMs: Infinity }, event.atMs)
    case 'resumed':
      return resume(ledger, event.reason, event.atMs)
    case 'shown':
      return show(ledger, event.epoch, now)
    case 'writer':
      if (ledger.isWriter && (ledger.wrote || !event.wrote)) return ledger
      return { ...ledger, isWriter: true, wrote: ledger.wrote || event.wrote }
    case 'arrived':
      return arrive(ledger, event, now)
    case 'forwarded': {
      const { id, mark, age, oldest } = event
      return { ...ledger, unanswered: [...ledger.unanswered, { id, mark, age, oldest, sinceMs: now }] }
    }
    case 'answered':
    case 'withheld':
    case 'failed': {
      const batch = ledger.unanswered.find((other) => other.id === event.id)
      if (batch === undefined) return ledger
      const rest = { ...ledger, unanswered: ledger.unanswered.filter((other) => other !== batch) }
      const isSlow = now - batch.sinceMs >= slowMs
      const owed = event.type === 'withheld' ? { ...batch, oldest: batch.age } : batch
      return touch(event.type === 'answered' ? rest : owe(rest, owed, now), isSlow ? batch.oldest : batch.age, now)
    }
    case 'refused':
      return owe(ledger, event, now)
    case 'takenOver':
      return ledger.goneSinceMs === undefined ? ledger : { ...ledger, takenOverMs: event.atMs }
  }
}

/** Whether no batch older than `epoch` can come from it any more; `atMs` is real time. */
export function isClean(ledger: Ledger, epoch: number, atMs: number, times: LayoutTimes): boolean {
  if (!mayHoldOlder(ledger, epoch)) return true
  const owes = owesOlder(ledger, epoch, atMs, times)
  if (ledger.goneSinceMs !== undefined) {
    if (atMs - ledger.goneSinceMs >= times.goneAfterMs) return true
    // Its new proxy does not know what it still owes us: give that the time it has after connecting again.
    if (ledger.takenOverMs !== undefined) return !owes || atMs - ledger.takenOverMs >= times.comeBackMs
  }
  const shownMs = Math.min(...ledger.shown.filter((showing) => showing.epoch >= epoch).map((showing) => showing.atMs))
  if (!Number.isFinite(shownMs) || owes || hasUnansweredOlder(ledger, epoch, atMs)) return false
  return clockOf(ledger, atMs) - Math.max(shownMs, lastOlder(ledger, epoch)) >= times.quietMs
}

/** It wrote here, or is a producer that was shown an older layout and may have placed records by it already. */
function mayHoldOlder(ledger: Ledger, epoch: number): boolean {
  return ledger.wrote || (ledger.isWriter && ledger.shown.some((showing) => showing.epoch < epoch))
}

/** Whether a batch of an older layout is on its way, or one of any layout for so long that older ones may wait behind. */
export function hasUnansweredOlder(ledger: Ledger, epoch: number, atMs: number): boolean {
  const now = clockOf(ledger, atMs)
  return ledger.unanswered.some((batch) => batch.age < epoch || (batch.oldest < epoch && now - batch.sinceMs >= slowMs))
}

/** Whether a batch that may be of a layout older than `epoch` is still to come back. */
export function owesOlder(ledger: Ledger, epoch: number, atMs: number, times: LayoutTimes): boolean {
  const now = clockOf(ledger, atMs)
  return ledger.owed.some((batch) => batch.oldest < epoch && now - batch.sinceMs < times.comeBackMs)
}

/** When, on the instance's clock, the last batch older than `epoch` came or was answered; -Infinity if none. */
export function lastOlder(ledger: Ledger, epoch: number): number {
  const times = Object.entries(ledger.lastOfAge).map(([age, atMs]) => (Number(age) < epoch ? atMs : -Infinity))
  return Math.max(-Infinity, ...times)
}

function show(ledger: Ledger, epoch: number, now: number): Ledger {
  const shownNow = ledger.shownNow.includes(epoch) ? ledger.shownNow : [...ledger.shownNow, epoch]
  if (ledger.shown.some((showing) => showing.epoch === epoch)) return { ...ledger, shownNow }
  return { ...ledger, shownNow, shown: [...ledger.shown, { epoch, atMs: now }] }
}

function loseConnection(ledger: Ledger, event: { connection: string; boundMs: number; atMs: number }): Ledger {
  const connections = Math.max(0, ledger.connections - 1)
  const stopped = stop(
    { ...ledger, connections },
    { reason: `lost ${event.connection}`, untilMs: event.atMs + event.boundMs },
    event.atMs,
  )
  if (connections > 0) return stopped
  const gone = stop(boundLosses(stopped, Infinity), { reason: 'gone', untilMs: Infinity }, event.atMs)
  return { ...gone, goneSinceMs: event.atMs }
}

/**
 * One that was gone makes its connections again one by one, and holds a queue for each that it has not made yet: their
 * bound begins when it is back.
 */
function boundLosses(ledger: Ledger, untilMs: number): Ledger {
  return { ...ledger, stops: ledger.stops.map((s) => (s.reason.startsWith('lost ') ? { ...s, untilMs } : s)) }
}

/**
 * What waits behind a batch that was owed comes next: the quiet begins again with the oldest layout it may be of. A client
 * that places records anew (kafkajs) brings it back inside others.
 */
function arrive(ledger: Ledger, { mark, others, age }: Arrival, now: number): Ledger {
  const returned = ledger.owed.filter((other) => other.mark === mark || others?.has(other.mark) === true)
  const owed = ledger.owed.filter((other) => !returned.includes(other))
  return touch({ ...ledger, wrote: true, owed }, Math.min(age, ...returned.map(({ oldest }) => oldest)), now)
}

function owe(ledger: Ledger, { mark, age, oldest }: Dated, now: number): Ledger {
  const owed = ledger.owed.filter((other) => other.mark !== mark && now - other.sinceMs < longestOwedMs)
  return { ...ledger, owed: [...mergeOldest(owed), { mark, age, oldest, sinceMs: now }] }
}

/** Its clock may stand still for hours while its batches fail: beyond a bound the next one stands for the oldest too. */
function mergeOldest(owed: readonly Owed[]): readonly Owed[] {
  const [first, second, ...rest] = owed
  if (first === undefined || second === undefined || owed.length < owedMax) return owed
  const age = Math.min(first.age, second.age)
  return [{ ...second, age, oldest: Math.min(first.oldest, second.oldest) }, ...rest]
}

function touch(ledger: Ledger, age: number, now: number): Ledger {
  return { ...ledger, lastOfAge: { ...ledger.lastOfAge, [age]: now } }
}

function stop(ledger: Ledger, added: Stop, atMs: number): Ledger {
  if (ledger.stops.some((other) => other.reason === added.reason)) return ledger
  const stoppedSinceMs = ledger.stops.length === 0 ? atMs : ledger.stoppedSinceMs
  return { ...ledger, stops: [...ledger.stops, added], stoppedSinceMs }
}

function resume(ledger: Ledger, reason: string, atMs: number): Ledger {
  if (!ledger.stops.some((other) => other.reason === reason)) return ledger
  const stops = ledger.stops.filter((other) => other.reason !== reason)
  if (stops.length > 0) return { ...ledger, stops }
  return { ...ledger, stops, stoppedMs: ledger.stoppedMs + atMs - ledger.stoppedSinceMs }
}

/** Ends the stops whose bound has passed, at their bound. */
function settleStops(ledger: Ledger, atMs: number): Ledger {
  if (ledger.stops.every((other) => other.untilMs > atMs)) return ledger
  const last = Math.max(...ledger.stops.map((other) => other.untilMs))
  return ledger.stops
    .filter((other) => other.untilMs <= atMs)
    .reduce((sum, other) => resume(sum, other.reason, last <= atMs ? last : atMs), ledger)
}
