/** What a feature tells the Produce editor: which requests it wants opened, and what becomes of each batch in them. */
import type { ProduceLane } from './lane.ts'

/** The records of one partition in one Produce request. */
export interface ProduceBatch {
  readonly lane: ProduceLane
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
  /** `end`: offset after its last record; −1 where the broker did not say (acks=0, or a double of an old batch). */
  | { kind: 'acknowledged'; end: number }
  /** Refused by the broker, or its connection was lost: it may be in the log, and may come back. */
  | { kind: 'failed'; errorCode: number }
  /** It might have gone, and comes again with the rest of its request, of which a part had to be refused. */
  | { kind: 'withheld' }

export interface AdmittedBatch {
  /** The topic's name, whether or not the request has it. */
  readonly topic: string
  /** Told once after `forward`. */
  ended(outcome: BatchOutcome): void
  /** The connection was lost while the batch waited, or it was refused with the rest of its request. */
  lost(): void
  /** It waits, and another part of its request has gone: refused now, it would make its client repeat that one too. */
  bound(): void
}

export interface ProducePolicy {
  /**
   * Asked for every Produce, so it must be cheap: whether it must be gathered and opened. Its body is
   * `bytes[bodyAt, end)`, of a long one only the beginning.
   */
  opens(lane: ProduceLane, version: number, bytes: Buffer, bodyAt: number, end: number): boolean
  /**
   * The batches of one opened request, in its order; undefined in the result: that batch needs no asking. `decide` is
   * called once for each of the others, now or later.
   */
  admit(
    batches: readonly ProduceBatch[],
    decide: (index: number, verdict: BatchVerdict) => void,
  ): readonly (AdmittedBatch | undefined)[]
  /** The client asked for a producer id, so it is a producer. */
  identified(lane: ProduceLane): void
  /** A request that passed unopened was answered while somebody waited for it (`ProduceLane.await`), with an error in it. */
  failedUnopened(lane: ProduceLane): void
  /** The broker told the client to wait this long before it sends again. */
  throttled(lane: ProduceLane, ms: number): void
  closed(lane: ProduceLane): void
}
