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
  return applyEntries(log, [entry])
}

/**
 * Applies entries in order, as `applyEntry` one after the other would; the map of topics is copied once only.
 * @param onError told of an entry that could not be applied, which then changed nothing; thrown when left out
 */
export function applyEntries(
  log: LogState,
  entries: readonly LogEntry[],
  onError?: (entry: LogEntry, error: unknown) => void,
): LogState {
  if (entries.length === 0) return log
  const draft: Draft = { position: log.position, fleet: log.fleet, topics: { ...log.topics } }
  for (const entry of entries) {
    if (entry.offset < draft.position) continue
    try {
      change(draft, entry)
    } catch (error) {
      if (onError === undefined) throw error
      onError(entry, error)
    }
    draft.position = entry.offset + 1
  }
  return draft.position === log.position ? log : draft
}

/** A state under construction, which nobody else has seen yet; its books are never changed, only replaced. */
interface Draft {
  position: number
  fleet: FleetBook
  topics: Record<string, TopicBook>
}

function change(draft: Draft, entry: LogEntry): void {
  const record = entry.record
  if (record === undefined) return applyTombstone(draft, entry.key)
  if (record.kind === 'register' || record.kind === 'expel') {
    draft.fleet = withFleetRecord(draft.fleet, entry, record)
    return
  }
  if (record.kind === 'fleet-snapshot') {
    const fleet = adopt(draft.fleet, entry.key, record.below, record.state, replayFleet)
    draft.topics = mapBooks(draft.topics, (book) => replayTopic(book, fleet.state))
    draft.fleet = fleet
    return
  }
  const book: TopicBook = draft.topics[record.topicId] ?? emptyBook(undefined)
  draft.topics[record.topicId] =
    record.kind === 'topic-snapshot'
      ? adopt(book, entry.key, record.below, record.state ?? undefined, (b) => replayTopic(b, draft.fleet.state))
      : append(book, entry, record, draft.fleet.state)
}

function withFleetRecord(book: FleetBook, entry: LogEntry, record: FleetRecord): FleetBook {
  const { offset, atMs, key } = entry
  return {
    ...book,
    tail: [...book.tail, { record, offset, atMs, key }],
    state: applyFleet(book.state, record, offset, atMs),
  }
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

function applyTombstone(draft: Draft, key: string): void {
  const scope = scopeOfKey(key)
  if (scope === 'fleet') {
    draft.fleet = withoutKey(draft.fleet, key)
    return
  }
  const book = draft.topics[scope]
  if (book === undefined) return
  const left = withoutKey(book, key)
  if (isErased(left)) delete draft.topics[scope]
  else draft.topics[scope] = left
}

/** Nothing of a topic that was forgotten is left in the log. */
function isErased({ state, tail, obsolete, snapshots }: TopicBook): boolean {
  return state === undefined && tail.length === 0 && obsolete.length === 0 && snapshots.length === 0
}

function withoutKey<S, R>(book: Book<S, R>, key: string): Book<S, R> {
  return {
    ...book,
    obsolete: book.obsolete.filter((other) => other !== key),
    snapshots: book.snapshots.filter((snapshot) => snapshot.key !== key),
  }
}
