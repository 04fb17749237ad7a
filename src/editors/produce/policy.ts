/** What a feature tells the Produce editor: which batches it wants to see, and what becomes of each. */
import type { Connection } from '../../pipeline/connection.ts'

/** The records of one partition in one Produce request. */
export interface ProduceBatch {
  readonly connection: Connection
  /** Empty from Produce v13 on, where the topic id stands for it. */
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly transactionalId: string | null
  readonly acks: number
  /** Record batches as they came; valid until the batch has been answered. */
  readonly records: Buffer
}

export type BatchVerdict = { kind: 'forward' } | { kind: 'refuse'; errorCode: number }

/** What became of a batch that was forwarded. */
export type BatchOutcome =
  /** `end`: offset after its last record; −1 where the broker did not say (acks=0). */
  | { kind: 'acknowledged'; end: number }
  /** Refused by the broker, or its connection was lost: it may be in the log, and may come back. */
  | { kind: 'failed'; errorCode: number }

export interface AdmittedBatch {
  /** Told once after `forward`. */
  ended(outcome: BatchOutcome): void
  /** The connection was lost while the batch waited. */
  lost(): void
}

export interface ProducePolicy {
  /** Whether requests of this connection must be gathered and opened now; asked for every Produce, so it must be cheap. */
  watches(connection: Connection): boolean
  /** A request passes unopened: its first bytes, for features that only note who writes where. */
  passing?(connection: Connection, version: number, bytes: Buffer, bodyAt: number, end: number): void
  /** undefined: this batch needs no asking. `decide` is called once, now or later. */
  admit(batch: ProduceBatch, decide: (verdict: BatchVerdict) => void): AdmittedBatch | undefined
}
