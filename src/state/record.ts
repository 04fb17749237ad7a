/**
 * The records of `__headgate_state`, as types. A record is a proposal: whether it counts is decided by the state at
 * its own place in the log (log-reducer.ts), the same for every reader. Offsets that mark an end are exclusive.
 */
import type { FleetState } from './fleet.ts'
import type { TopicState } from './topic-state.ts'

/** Names one run of one proxy process: a restart, or a life after expulsion, takes a new one. */
export type ProxyId = string

export type Order = 'key' | 'producer'
export type ChangeName = 'expand' | 'shrink' | 'external'
/** What makes consumers wait after a change: the seal of the whole change, or a cut per producer. */
export type GateKind = 'seal' | 'cuts'

interface ByProxy {
  /** Who wrote it; void (but for snapshots and expulsions) unless this proxy lives at the record's place in the log. */
  proxy: ProxyId
}

/** A proxy joins the fleet. It serves guarded topics only after reading this back. */
export interface RegisterRecord extends ByProxy {
  kind: 'register'
  host: string
  /** Digest of its rules for topics and groups: proxies of one fleet are to have the same. */
  rules?: string
}

/** `expelled` is out: a full session time-out has passed since its last heartbeat, or it says so itself. */
export interface ExpelRecord extends ByProxy {
  kind: 'expel'
  expelled: ProxyId
  /**
   * It stops in good order: the ids of the topics that somebody wrote to through it. What it can vouch for of each is
   * in a `left` record below this one; of all others nothing can come any more. Undefined: nothing is known.
   */
  wroteTo?: string[]
}

interface OfTopic extends ByProxy {
  topicId: string
}

/** The count of a guarded topic as its first proxy met it: layout 0. Without it a late joiner could take hidden partitions for shown ones. */
export interface TopicRecord extends OfTopic {
  kind: 'topic'
  name: string
  count: number
}

/** A change begins; nothing is created before this is read back. `proposal` is unique. */
export interface ProposalRecord extends OfTopic {
  kind: 'proposal'
  proposal: string
  /** The epoch it starts from: a proposal that arrives in the log after another change is void. */
  after: number
  change: ChangeName
  to: number
  order: Order
  gates: GateKind
  /** Its writer alone creates the partitions: it was told which brokers they are for. */
  assigned?: boolean
}

/** The partitions exist and have leaders: proxies stop answering Metadata of the topic and say `ready`. */
export interface PreparingRecord extends OfTopic {
  kind: 'preparing'
  proposal: string
}

export interface ReadyRecord extends OfTopic {
  kind: 'ready'
  proposal: string
}

/** The new layout is shown from here on. */
export interface OpenRecord extends OfTopic {
  kind: 'open'
  proposal: string
  /** Partition → first offset that waits at its gate: its end when all were ready (0 only if never used). */
  starts: Record<number, number>
  /** Partition → its leader epoch then, to notice a truncation later. */
  leaderEpochs: Record<number, number>
  /** Older epochs by whose layout batches may still come. */
  unsettled: number[]
}

export interface AbortedRecord extends OfTopic {
  kind: 'aborted'
  proposal: string
  reason: string
}

/** All that wrote through this proxy under older layouts than `epoch` are clean. */
export interface VoteRecord extends OfTopic {
  kind: 'vote'
  epoch: number
  /** Ascending per proxy and epoch: a withdrawal names the highest one that it takes back. */
  ballot: number
  instances: string[]
  /** Old partition → end of the last batch that this proxy saw acknowledged. */
  ends: Record<number, number>
  /** Log offset up to which its writer had read: the vote is younger than every record below it. */
  seen?: number
}

export interface WithdrawalRecord extends OfTopic {
  kind: 'withdrawal'
  epoch: number
  ballot: number
}

/** No batch of an older layout than `epoch` comes any more. */
export interface SealedRecord extends OfTopic {
  kind: 'sealed'
  epoch: number
  /** Log offset of the last vote or withdrawal it rests on; void if another one follows. */
  lastVote: number
  /** Old partition → its end, read after that vote. */
  boundaries: Record<number, number>
  /** Proxies that died without a vote and were waited for long enough. */
  gaveUp: ProxyId[]
  /** `sealAfter` ran out: whoever did not vote is not waited for, and what it still forwards is counted. */
  forced: boolean
}

/** A shrink is shown to instances that meet the topic from here on. */
export interface AnnouncedRecord extends OfTopic {
  kind: 'announced'
  epoch: number
  /** Shown to living instances too. */
  live?: boolean
}

/** Ends of all partitions at the moment when one or more producers changed layout. */
export interface CutRecord extends OfTopic {
  kind: 'cut'
  /** Unique. */
  cut: string
  /** Epochs between which keys may have moved: all unsettled ones and the current one. */
  layouts: number[]
  /** Partition → end; partitions that still wait for a seal are left out. */
  ends: Record<number, number>
  /** Whom it serves, of those connected to its writer. */
  serves?: string[]
  /** Log offset up to which its writer had read. */
  seen?: number
}

/** This proxy holds the cut's gates from now on. */
export interface CutReadRecord extends OfTopic {
  kind: 'cut-read'
  cut: string
}

/** Cuts recorded at or below log offset `upTo` gate nothing any more: all logs start above their ends. */
export interface PrunedRecord extends OfTopic {
  kind: 'pruned'
  upTo: number
}

/**
 * This proxy stops, every connection of its clients has ended, and no batch of the topic is held, unanswered or to come
 * back. Its clients may still have placed records that they did not send: they are waited for until they are seen elsewhere.
 */
export interface LeftRecord extends OfTopic {
  kind: 'left'
  /** Wall-clock time from which on its connections were ended: who was elsewhere before wrote through both. */
  sinceMs: number
  /** Instance that wrote → the newest epoch that it is clean for. */
  instances: Record<string, number>
  /** Those of them that had left before `sinceMs`. */
  gone: string[]
  /** Partition → end of the last batch that this proxy saw acknowledged. */
  ends: Record<number, number>
}

/** `instance` writes through two proxies at once: what one proxy knows of it does not order its batches. */
export interface SplitRecord extends OfTopic {
  kind: 'split'
  instance: string
}

/**
 * The state below log offset `below`, of the fleet or of one topic; older records may then be removed. null: the topic
 * was deleted, and nothing is known of it any more.
 */
export interface FleetSnapshotRecord extends ByProxy {
  kind: 'fleet-snapshot'
  below: number
  state: FleetState
}

export interface TopicSnapshotRecord extends OfTopic {
  kind: 'topic-snapshot'
  below: number
  state: TopicState | null
}

export type FleetRecord = RegisterRecord | ExpelRecord
export type TopicChangeRecord =
  | TopicRecord
  | ProposalRecord
  | PreparingRecord
  | ReadyRecord
  | OpenRecord
  | AbortedRecord
  | VoteRecord
  | WithdrawalRecord
  | SealedRecord
  | AnnouncedRecord
  | CutRecord
  | CutReadRecord
  | PrunedRecord
  | SplitRecord
  | LeftRecord
export type SnapshotRecord = FleetSnapshotRecord | TopicSnapshotRecord
export type StateRecord = FleetRecord | TopicChangeRecord | SnapshotRecord
