/**
 * The one event type of every run, real or simulated: what producers, consumers and the harness saw, one JSON object
 * a line. Client programs in any language write it to a file of their own; `merge` puts the files together by time.
 *
 * A record is named twice: by its place (topic, partition, offset) and by its origin (producer, sequence), which the
 * producer writes into the value or the headers so that a consumer can report it. Lines of one file are never
 * reordered; clocks of different files are those of one machine.
 */

interface Base {
  /** Milliseconds since the epoch (fractions welcome), or virtual milliseconds in the simulation. */
  at: number
}

interface Place {
  topic: string
  partition: number
  offset: number
}

interface Origin {
  /** Name of the producer instance; a restarted process takes a new name. */
  producer: string
  /** Unique per producer and ascending in the order in which the application handed the records over. */
  sequence: number
  key: string | null
}

interface ByMember {
  /** Name of the consumer instance (not the broker's member id); a restarted process takes a new name. */
  member: string
  /** The consumers that share the work: the group id, or any common name for consumers without a group. */
  group: string
}

/** First line of a run: how it is to be judged. Any later one adds to it. */
export interface RunEvent extends Base, RunSettings {
  event: 'run'
  name?: string
}

export interface RunSettings {
  /** Order is promised per (producer, key) only (`order: producer`); default per key, whoever wrote it. */
  perProducer?: boolean
  /** Partitions are shared by key range: a commit speaks only for what its own member was given. */
  shared?: boolean
  /** What counts as processed for commits: `done` (default) or `delivered` (clients that commit on delivery). */
  processed?: 'done' | 'delivered'
  /** Tolerance in ms between the clocks of two files; default 0. */
  slack?: number
}

/** The harness disturbed the run (a kill, a cut, a pause, a leader change); explains re-sends around it. */
export interface FaultEvent extends Base {
  event: 'fault'
  kind: string
  /** Until when it lasted; default: `at`. */
  until?: number
}

/** A topic changed its partition count. */
export interface LayoutEvent extends Base {
  event: 'layout'
  topic: string
  from: number
  to: number
  /** Partition → exclusive end offset of what the old layout placed there; parents without one are not judged. */
  boundaries: Record<string, number>
  /** Partition → first offset that the new layout placed there; default 0 for new partitions. */
  starts?: Record<string, number>
}

/** The log lost its head (retention, DeleteRecords; `offset` is the new start) or its tail (`offset` is the new end). */
export interface LogEvent extends Base, Place {
  event: 'trimmed' | 'truncated'
}

/** The harness waited until this group had read all of this topic: from here on a missing record is a lost one. */
export interface DrainedEvent extends Base {
  event: 'drained'
  group: string
  topic: string
  /** Partition → first offset the group was meant to read; default 0. */
  from?: Record<string, number>
  /** Only the last record of each key in each partition has to be there. */
  compacted?: boolean
}

/** A client instance began, ended in order, or was killed. Exactly one of producer and member is set. */
export interface LifeEvent extends Base {
  event: 'started' | 'closed' | 'crashed'
  producer?: string
  member?: string
  group?: string
  client?: string
  /** Of a producer: the broker drops its doubles; a record of it at two offsets is then never explained. */
  idempotent?: boolean
  /** Of a producer: false where its sends have no order to keep (un-awaited, or pipelined without idempotence). */
  ordered?: boolean
  /** Of a member: default read_committed; the other sees aborted records by right. */
  isolation?: 'read_committed' | 'read_uncommitted'
}

/** The application handed a record to its producer (write it before the call). */
export interface SentEvent extends Base, Origin {
  event: 'sent'
  topic: string
  /** Name of the transaction, unique per producer. */
  transaction?: string
}

export interface AcknowledgedEvent extends Base, Origin, Place {
  event: 'acknowledged'
}

/** The producer gave up on a record, or does not know; it may be in the log or not. */
export interface FailedEvent extends Base, Origin {
  event: 'failed'
  topic: string
  error?: string
}

/** A transaction ended as the application saw it; `unknown` when the call that ends it failed. */
export interface TransactionEvent extends Base {
  event: 'transaction'
  producer: string
  transaction: string
  outcome: 'committed' | 'aborted' | 'unknown'
}

/** The application was given a record. `done: true` where it is processed at once and no `done` line follows. */
export interface DeliveredEvent extends Base, ByMember, Origin, Place {
  event: 'delivered'
  done?: boolean
  generation?: number
}

/** The application finished processing a record. */
export interface DoneEvent extends Base, ByMember, Place {
  event: 'done'
}

/** A commit was acknowledged (write it after the answer). `offset` is exclusive: the next one to read. */
export interface CommittedEvent extends Base, ByMember, Place {
  event: 'committed'
  generation?: number
  /** Range commits: intervals [from, to) above `offset` that are done too. */
  ranges?: [from: number, to: number][]
}

/**
 * `partitions` came or went; of an eager client all of them. `lost`: without a chance to commit; with a `generation` it
 * is the group that gave the member up in it, and an assignment of that generation or an older one comes too late.
 */
export interface AssignmentEvent extends Base, ByMember {
  event: 'assigned' | 'revoked' | 'lost'
  partitions: [topic: string, partition: number][]
  generation?: number
}

/** The application moved its own position; it asked for what it gets again. */
export interface SoughtEvent extends Base, ByMember, Place {
  event: 'sought'
}

export type HistoryEvent =
  | RunEvent
  | FaultEvent
  | LayoutEvent
  | LogEvent
  | DrainedEvent
  | LifeEvent
  | SentEvent
  | AcknowledgedEvent
  | FailedEvent
  | TransactionEvent
  | DeliveredEvent
  | DoneEvent
  | CommittedEvent
  | AssignmentEvent
  | SoughtEvent

export type EventName = HistoryEvent['event']
