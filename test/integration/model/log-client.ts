/** Producing, fetching and asking for offsets of partition 0 of a topic. */
import { fetch } from '../../../src/protocol/generated/01-fetch.ts'
import type { FetchRequest, FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import { listOffsets } from '../../../src/protocol/generated/02-list-offsets.ts'
import { produce } from '../../../src/protocol/generated/00-produce.ts'
import type { Draft } from '../../../src/protocol/codec.ts'
import { buildBatch, type BatchToWrite } from '../../../src/records/build.ts'
import { readRecords } from '../../../src/records/read.ts'
import type { Topic, Wire } from './side.ts'

/** Timestamps of all records, unless a fact needs others. Now: a broker rolls, expires and forgets what is old. */
export const TIME_MS = Date.now()

/** One record per letter. */
export function batch(keys: string, more: Partial<BatchToWrite> = {}): Buffer {
  const records = [...keys].map((key) => ({ key: Buffer.from(key), value: Buffer.from(key) }))
  return buildBatch({ records, baseTimestamp: TIME_MS, ...more })
}

/** [error code, base offset] */
export async function write(
  wire: Wire,
  topic: Topic,
  records: Buffer,
  transactionalId: string | null = null,
  version = 11,
): Promise<[number, number]> {
  const partitionData = [{ index: 0, records }]
  const topicData = [{ ...(version >= 13 ? { topicId: topic.id } : { name: topic.name }), partitionData }]
  const answer = await wire.call(produce, version, { transactionalId, acks: -1, timeoutMs: 10_000, topicData })
  const partition = answer.responses[0]?.partitionResponses[0]
  return [partition?.errorCode ?? -1, partition?.baseOffset ?? -1]
}

export interface Read {
  readonly version?: number
  readonly committed?: boolean
  readonly request?: Draft<FetchRequest>
  readonly partitionMaxBytes?: number
  readonly currentLeaderEpoch?: number
}

export function read(wire: Wire, topic: Topic, fetchOffset: number, more: Read = {}): Promise<FetchResponse> {
  const { version = 12, committed = false, request = {}, partitionMaxBytes = 1_000_000, currentLeaderEpoch = -1 } = more
  const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes, currentLeaderEpoch }]
  return wire.call(fetch, version, {
    maxWaitMs: 0,
    minBytes: 1,
    isolationLevel: committed ? 1 : 0,
    topics: [version >= 13 ? { topicId: topic.id, partitions } : { topic: topic.name, partitions }],
    ...request,
  })
}

/** `0a 1b! …`: offset, key, `!` for the end of a transaction. */
export function shown(records: Buffer | null): string {
  const all = readRecords(records ?? Buffer.alloc(0), 1_000_000)
  return all.map((r) => `${r.offset}${r.control ? '!' : (r.key?.toString() ?? '')}`).join(' ')
}

/** Error, high watermark, last stable offset, log start, records of the first partition. */
export function seen(answer: FetchResponse): Record<string, unknown> {
  const p = answer.responses[0]?.partitions[0]
  if (p === undefined) return { errorCode: answer.errorCode, partitions: 0 }
  const { errorCode, highWatermark, lastStableOffset, logStartOffset } = p
  return { errorCode, ends: [highWatermark, lastStableOffset, logStartOffset], records: shown(p.records) }
}

/** [error code, offset, timestamp, leader epoch] */
export async function offsetAt(wire: Wire, topic: Topic, timestamp: number, committed = false): Promise<number[]> {
  const answer = await wire.call(listOffsets, 7, {
    replicaId: -1,
    isolationLevel: committed ? 1 : 0,
    topics: [{ name: topic.name, partitions: [{ partitionIndex: 0, timestamp }] }],
  })
  const p = answer.topics[0]?.partitions[0]
  return p === undefined ? [] : [p.errorCode, p.offset, p.timestamp, p.leaderEpoch]
}
