/** Fetch of our own, one partition from one offset on, and what consumers would be given of it. */
import { fetch, type FetchRequest, type FetchResponse } from '../protocol/generated/01-fetch.ts'
import { AbortedBatches, type AbortedTransaction } from '../records/aborted.ts'
import { entryEnd, isControl, lastOffsetOf, magicOf, walkEntries } from '../records/batch.ts'
import { openBatch, readRecords } from '../records/read.ts'
import { RecordCursor } from '../records/record.ts'
import type { LeaderQuestion } from './topic-leaders.ts'

/** Bytes that one answer brings; a larger batch comes whole. */
const fetchBytes = 1024 * 1024
/** What one batch may inflate to. */
export const inflatedBytesMax = 64 * 1024 * 1024
const fullWithoutSession = -1
const consumer = -1

export interface FetchOptions {
  readonly isolation: 'committed' | 'uncommitted'
  /** How long the broker may hold the request until there is something to send. */
  readonly maxWaitMs: number
  /** How long the answer is waited for beyond that. */
  readonly timeoutMs: number
  readonly lane: string
  readonly attempts?: number
}

export interface Fetched {
  /** Of the topic that was read: it may have been deleted and made again. */
  readonly topicId: string
  readonly highWatermark: number
  readonly lastStableOffset: number
  readonly aborted: readonly AbortedTransaction[]
  /** Batches as they came; the first may begin below the offset asked for, the last may be cut short. */
  readonly records: Buffer
}

/** The question that fetches a partition from `offset` on. */
export function fetchQuestion(
  offset: number,
  options: FetchOptions,
): LeaderQuestion<FetchRequest, FetchResponse, Fetched> {
  const { isolation, maxWaitMs, timeoutMs, lane, attempts } = options
  return {
    codec: fetch,
    lane,
    timeoutMs: maxWaitMs + timeoutMs,
    ...(attempts === undefined ? {} : { attempts }),
    build: ({ name, topicId }, partitions) => ({
      replicaId: consumer,
      maxWaitMs,
      minBytes: 1,
      maxBytes: fetchBytes,
      isolationLevel: isolation === 'committed' ? 1 : 0,
      sessionEpoch: fullWithoutSession,
      topics: [
        {
          topic: name,
          topicId,
          partitions: partitions.map((partition) => ({
            partition,
            fetchOffset: offset,
            currentLeaderEpoch: -1,
            lastFetchedEpoch: -1,
            partitionMaxBytes: fetchBytes,
          })),
        },
      ],
    }),
    read: ({ errorCode, responses }, { topicId }) =>
      responses.flatMap(({ partitions }) =>
        partitions.map((answer) => ({
          partition: answer.partitionIndex,
          errorCode: errorCode === 0 ? answer.errorCode : errorCode,
          value: {
            topicId,
            highWatermark: answer.highWatermark,
            lastStableOffset: answer.lastStableOffset,
            aborted: answer.abortedTransactions ?? [],
            records: answer.records ?? Buffer.alloc(0),
          },
        })),
      ),
  }
}

/** Where a reader of whole batches goes on after `records`; `from` where no batch is complete. */
export function positionAfter(records: Buffer, from: number): number {
  let position = from
  walkEntries(records, (at) => {
    position = Math.max(position, lastOffsetOf(records, at) + 1)
  })
  return position
}

/**
 * The first record in [from, to) of what a READ_COMMITTED Fetch answered that a consumer is given: no control record,
 * and none of an aborted transaction.
 * @throws RecordsError for damaged batches
 */
export function firstDeliverableIn({ records, aborted }: Fetched, from: number, to: number): number | undefined {
  const batches = new AbortedBatches(aborted)
  for (let at = 0, end = entryEnd(records, at); end >= 0; at = end, end = entryEnd(records, at)) {
    if (magicOf(records, at) < 2) return firstMessage(records.subarray(at, end), from, to)
    if (batches.includes(records, at, end) || isControl(records, at)) continue
    const cursor = new RecordCursor()
    openBatch(cursor, records, at, end, inflatedBytesMax)
    while (cursor.next()) if (cursor.offset >= from && cursor.offset < to) return cursor.offset
  }
  return undefined
}

/** Messages of the formats before v2, which know neither transactions nor control records. */
function firstMessage(entry: Buffer, from: number, to: number): number | undefined {
  return readRecords(entry, inflatedBytesMax).find(({ offset }) => offset >= from && offset < to)?.offset
}
