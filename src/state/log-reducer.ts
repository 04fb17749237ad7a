/**
 * The state log, applied in order. Each scope (the fleet, one topic) is a base (the newest snapshot) and a tail (all
 * entries at or above what the snapshot stands for); the state is the tail replayed on the base.
 *
 * A snapshot is always adopted and the tail above it replayed, even by a reader that believes it missed nothing: a
 * reader that fell behind cannot tell which records compaction took from it, and for one that missed nothing the result
 * is the same. Tombstones follow only after a snapshot was read back, so whoever has reached the end of the log has
 * passed the snapshot that replaces what it missed. Until then its view must not be acted upon (lease.ts).
 */
import { applyFleet, emptyFleet, type FleetState } from './fleet.ts'
import type { FleetRecord, StateRecord, TopicChangeRecord } from './record.ts'
import { scopeOfKey } from './records.ts'
import { applyTopic } from './topic-reducer.ts'
import type { Placed, TopicState } from './topic-state.ts'

/** What was read: a record, or a tombstone (no record) for its key. */
export interface LogEntry {
  offset: number
  atMs: number
  key: string
  record?: StateRecord
}

interface Book<S, R> {
  /** The snapshot: state below this log offset. */
  below: number
  base: S
  tail: readonly (Placed<R> & { key: string })[]
  state: S
  /** Keys of records below the snapshot that still need a tombstone. */
  obsolete: readonly string[]
  /** Keys of the snapshots themselves, by what they stand for. */
  snapshots: readonly { key: string; below: number }[]
}

type FleetBook = Book<FleetState, FleetRecord>
type TopicBook = Book<TopicState | undefined, TopicChangeRecord>

export interface LogState {
  /** The next offset to read: everything below it has been applied. */
  position: number
  fleet: FleetBook
  topics: Readonly<Record<string, TopicBook>>
}

export function emptyLog(): LogState {
  return { position: 0, fleet: emptyBook(emptyFleet), topics: {} }
}

function emptyBook<S>(state: S): Book<S, never> {
  return { below: 0, base: state, tail: [], state, obsolete: [], snapshots: [] }
}

export function fleetOf(log: LogState): FleetState {
  return log.fleet.state
}

export function topicOf(log: LogState, topicId: string): TopicState | undefined {
  return log.topics[topicId]?.state
}

/** Applies one entry. Entries below the position were applied before and change nothing. */
export function applyEntry(log: LogState, entry: LogEntry): LogState {
  if (entry.offset < log.position) return log
  const next = { ...log, position: entry.offset + 1 }
  const record = entry.record
  if (record === undefined) return applyTombstone(next, entry.key)
  if (record.kind === 'register' || record.kind === 'expel') return applyFleetRecord(next, entry, record)
  if (record.kind === 'fleet-snapshot') {
    const fleet = adopt(next.fleet, entry.key, record.below, record.state, replayFleet)
    return { ...next, fleet, topics: mapBooks(next.topics, (book) => replayTopic(book, fleet.state)) }
  }
  const book: TopicBook = next.topics[record.topicId] ?? emptyBook(undefined)
  const changed =
    record.kind === 'topic-snapshot'
      ? adopt(book, entry.key, record.below, record.state, (b) => replayTopic(b, next.fleet.state))
      : append(book, entry, record, next.fleet.state)
  return { ...next, topics: { ...next.topics, [record.topicId]: changed } }
}

function applyFleetRecord(log: LogState, entry: LogEntry, record: FleetRecord): LogState {
  const { offset, atMs, key } = entry
  const tail = [...log.fleet.tail, { record, offset, atMs, key }]
  return { ...log, fleet: { ...log.fleet, tail, state: applyFleet(log.fleet.state, record, offset, atMs) } }
}

function append(book: TopicBook, entry: LogEntry, record: TopicChangeRecord, fleet: FleetState): TopicBook {
  const placed = { record, offset: entry.offset, atMs: entry.atMs, key: entry.key }
  return { ...book, tail: [...book.tail, placed], state: applyTopic(book.state, placed, fleet) }
}

/** Takes a snapshot over, unless a higher one is already in use; what it replaces becomes obsolete. */
function adopt<S, R>(
  book: Book<S, R>,
  key: string,
  below: number,
  base: S,
  replay: (book: Book<S, R>) => Book<S, R>,
): Book<S, R> {
  const snapshots = [...book.snapshots.filter((s) => s.key !== key), { key, below }]
  if (below < book.below) return { ...book, snapshots }
  const replaced = book.tail.filter((placed) => placed.offset < below).map((placed) => placed.key)
  const tail = book.tail.filter((placed) => placed.offset >= below)
  return replay({ ...book, below, base, tail, snapshots, obsolete: [...book.obsolete, ...replaced] })
}

function replayFleet(book: FleetBook): FleetBook {
  const state = book.tail.reduce((sum, { record, offset, atMs }) => applyFleet(sum, record, offset, atMs), book.base)
  return { ...book, state }
}

function replayTopic(book: TopicBook, fleet: FleetState): TopicBook {
  const state = book.tail.reduce((sum, placed) => applyTopic(sum, placed, fleet), book.base)
  return { ...book, state }
}

function mapBooks(
  topics: Readonly<Record<string, TopicBook>>,
  change: (book: TopicBook) => TopicBook,
): Record<string, TopicBook> {
  return Object.fromEntries(Object.entries(topics).map(([topicId, book]) => [topicId, change(book)]))
}

function applyTombstone(log: LogState, key: string): LogState {
  const scope = scopeOfKey(key)
  if (scope === 'fleet') return { ...log, fleet: withoutKey(log.fleet, key) }
  const book = log.topics[scope]
  return book === undefined ? log : { ...log, topics: { ...log.topics, [scope]: withoutKey(book, key) } }
}

function withoutKey<S, R>(book: Book<S, R>, key: string): Book<S, R> {
  return {
    ...book,
    obsolete: book.obsolete.filter((other) => other !== key),
    snapshots: book.snapshots.filter((snapshot) => snapshot.key !== key),
  }
}
