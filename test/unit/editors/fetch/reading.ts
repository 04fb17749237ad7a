/** Small logs, and a client's Fetch of partition 0 of topic `t` as FetchRead sees it. */
import { FetchRead } from '../../../../src/editors/fetch/fetch-read.ts'
import type { PartitionPolicy } from '../../../../src/editors/fetch/policy.ts'
import type { SkipPointers } from '../../../../src/editors/fetch/skip-pointers.ts'
import { buildBatch } from '../../../../src/records/build.ts'
import type { Codec } from '../../../../src/records/batch.ts'
import type {
  FetchRequest,
  FetchResponse,
  FetchResponsePartition,
} from '../../../../src/protocol/generated/01-fetch.ts'
import { requestOnWire, responseOnWire } from '../../../property/fetch/wire.ts'

export const VERSION = 12

/** Records with these keys, from `baseOffset` on, as one batch. */
export function batch(
  baseOffset: number,
  keys: string,
  more: { codec?: Codec; value?: Buffer; leaderEpoch?: number } = {},
) {
  const { value = Buffer.from('v'), ...rest } = more
  return buildBatch({
    baseOffset,
    leaderEpoch: 0,
    ...rest,
    records: [...keys].map((key) => ({ key: Buffer.from(key), value })),
  })
}

/** Keeps the records with this key. */
export function only(key: string, limit?: () => number): PartitionPolicy {
  const code = key.charCodeAt(0)
  return {
    keep: ({ bytes, keyStart }) => bytes[keyStart] === code,
    ...(limit === undefined ? {} : { limit }),
  }
}

export interface ClientFetch {
  readonly offset: number
  readonly epoch?: number
  readonly minBytes?: number
  readonly partitionMaxBytes?: number
}

export function clientFetch({
  offset,
  epoch = -1,
  minBytes = 1,
  partitionMaxBytes = 1 << 20,
}: ClientFetch): FetchRequest {
  const partition = { partition: 0, fetchOffset: offset, lastFetchedEpoch: epoch, partitionMaxBytes }
  const whole = { maxWaitMs: 500, minBytes, maxBytes: 1 << 25, sessionEpoch: 0 }
  return requestOnWire({ ...whole, topics: [{ topic: 't', partitions: [partition] }] }, VERSION)
}

export function reading(fetch: ClientFetch, policy: PartitionPolicy | undefined, pointers: SkipPointers): FetchRead {
  const options = { version: VERSION, maxInflatedBytes: 1 << 20 }
  return new FetchRead(clientFetch(fetch), { partition: () => policy }, pointers, options)
}

type Partition = Partial<Omit<FetchResponsePartition, 'partitionIndex'>>

/** What a broker answers for partition 0. */
export function brokerAnswer(partition: Partition): FetchResponse {
  const whole = { partitionIndex: 0, highWatermark: 100, lastStableOffset: 100, logStartOffset: 0, ...partition }
  return responseOnWire({ responses: [{ topic: 't', partitions: [whole] }] }, VERSION)
}

/** Asks once and gives the answer; where it asked. */
export function step(read: FetchRead, partition: Partition): { offset: number; epoch: number } {
  const asked = read.request(500)?.topics[0]?.partitions[0]
  if (asked === undefined) throw new Error('nothing was asked')
  read.ingest(brokerAnswer(partition))
  return { offset: asked.fetchOffset, epoch: asked.lastFetchedEpoch }
}

export function answered(read: FetchRead): FetchResponsePartition {
  const partition = read.answer().responses[0]?.partitions[0]
  if (partition === undefined) throw new Error('the partition is missing')
  return partition
}
