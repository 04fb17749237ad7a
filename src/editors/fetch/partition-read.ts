/**
 * Reading one partition for one Fetch of a client: what was asked, how far the broker's answers have been looked
 * through, and what has been found. Pure: it is fed with answers and says what to ask next.
 */
import { errorCodes } from '../../protocol/error-codes.ts'
import type { FetchRequestPartition, FetchResponsePartition } from '../../protocol/generated/01-fetch.ts'
import { AbortedBatches } from '../../records/aborted.ts'
import { entryEnd, lastOffsetOf, leaderEpochOf } from '../../records/batch.ts'
import { filterRecords, type Keep } from '../../records/filter.ts'
import type { PartitionPolicy } from './policy.ts'
import type { SkipPointer } from './skip-pointers.ts'

/** READ_COMMITTED in a Fetch request. */
const READ_COMMITTED = 1
const NO_EPOCH = -1
const noRecords = Buffer.alloc(0)
const keepAll: Keep = () => true

export interface ReadOptions {
  /** `topic or topic id` + `/` + partition. */
  readonly key: string
  readonly request: FetchRequestPartition
  readonly policy: PartitionPolicy | undefined
  readonly pointer: SkipPointer | undefined
  readonly isolationLevel: number
  /** The Fetch version has `lastFetchedEpoch` (v12, KIP-595). */
  readonly epochs: boolean
  readonly maxInflatedBytes: number
}

export class PartitionRead {
  readonly key: string
  readonly request: FetchRequestPartition
  readonly policy: PartitionPolicy | undefined
  /** Next offset to read, and the leader epoch of the batch before it. */
  position: number
  private epoch: number
  private maxBytes: number
  private readonly options: ReadOptions
  private answer: FetchResponsePartition | undefined
  private slices: Buffer[] = []
  private survivors = 0
  private delivered = 0
  private withheld = 0
  private lastKeptOffset = -1
  /** What the client's next Fetch may be at, after what was found: the end of the last batch given. */
  private batchEnd = -1
  /** Nothing more is to be read: an error, or bytes that pass as they are. */
  settled = false

  constructor(options: ReadOptions) {
    this.options = options
    this.key = options.key
    this.request = options.request
    this.policy = options.policy
    this.position = options.pointer?.scanEnd ?? options.request.fetchOffset
    this.epoch = options.pointer?.epoch ?? options.request.lastFetchedEpoch
    this.maxBytes = options.request.partitionMaxBytes
  }

  /** Bytes found for the client so far. */
  get foundBytes(): number {
    let bytes = 0
    for (const slice of this.slices) bytes += slice.length
    return bytes
  }

  /** The client has to be answered now, whatever the other partitions do. */
  get urgent(): boolean {
    return this.settled || this.survivors > 0
  }

  /** Whether there is anything to read for the client at the moment: not settled, not behind a shut limit, not full. */
  get open(): boolean {
    if (this.settled || this.position >= this.limit()) return false
    return this.foundBytes < this.request.partitionMaxBytes / 2
  }

  /** The partition as it is to be asked of the broker. */
  upstream(): FetchRequestPartition {
    return {
      ...this.request,
      fetchOffset: this.position,
      lastFetchedEpoch: this.options.epochs ? this.epoch : NO_EPOCH,
      partitionMaxBytes: this.maxBytes,
    }
  }

  /** The partition as it is to be asked where only its high watermark matters. */
  peek(): FetchRequestPartition {
    return { ...this.upstream(), partitionMaxBytes: 1 }
  }

  /** An answer to `peek`: records in it are not for the client yet. */
  ingestPeek(response: FetchResponsePartition): void {
    if (response.errorCode !== 0) this.ingest(response)
    else this.answer = { ...response, records: noRecords }
  }

  /** The broker's answer to `upstream`. */
  ingest(response: FetchResponsePartition): void {
    const moved = this.position !== this.request.fetchOffset && this.survivors === 0
    const outOfRange = response.errorCode === errorCodes.OFFSET_OUT_OF_RANGE
    if (moved && (outOfRange || response.divergingEpoch !== null)) {
      // The log was cut below what we had read: the client's own offset is the truth.
      this.position = this.request.fetchOffset
      this.epoch = this.request.lastFetchedEpoch
      return
    }
    if (response.errorCode !== 0 || response.divergingEpoch !== null || response.preferredReadReplica >= 0) {
      if (this.survivors > 0) return // what was found goes first; the client meets this with its next Fetch
      this.answer = { ...response, records: noRecords }
      this.settled = true
      return
    }
    this.answer = response
    const records = response.records ?? noRecords
    if (this.policy === undefined) {
      this.settled = records.length > 0
      return
    }
    if (records.length > 0) this.filter(this.policy, records, response)
  }

  /** The client's answer for this partition. Null records become zero bytes: kafka-python fails on null. */
  result(): FetchResponsePartition {
    const answer = this.answer ?? unread(this.request.partition)
    if (this.policy === undefined) return { ...answer, records: answer.records ?? noRecords }
    this.policy.count?.(this.delivered, this.withheld)
    const records = this.slices.length === 1 ? this.slices[0] : Buffer.concat(this.slices)
    // Aborted records were taken out here, so the client has nothing to leave out.
    const abortedTransactions = this.options.isolationLevel === READ_COMMITTED ? [] : null
    return { ...answer, abortedTransactions, records: records ?? noRecords }
  }

  /** What to remember for the client's next Fetch. */
  pointers(): SkipPointer[] {
    const { position: scanEnd, epoch } = this
    const asked = this.request.fetchOffset
    if (this.survivors === 0) return [{ offset: asked, scanEnd, epoch }]
    const before = this.options.pointer === undefined ? [] : [this.options.pointer] // it may ask once more, if our answer is lost
    return [...before, { offset: this.batchEnd, scanEnd, epoch }, { offset: this.lastKeptOffset + 1, scanEnd, epoch }]
  }

  private limit(): number {
    return this.policy?.limit?.() ?? Number.POSITIVE_INFINITY
  }

  private filter(policy: PartitionPolicy, records: Buffer, response: FetchResponsePartition): void {
    const committed = this.options.isolationLevel === READ_COMMITTED
    const filtered = filterRecords(records, this.position, policy.keep ?? keepAll, {
      maxInflatedBytes: this.options.maxInflatedBytes,
      endOffset: this.limit(),
      ...(committed ? { aborted: new AbortedBatches(response.abortedTransactions ?? []) } : {}),
    })
    this.withheld += filtered.withheld
    if (filtered.failure !== undefined && filtered.survivors === 0 && this.survivors === 0) {
      this.answer = { ...response, errorCode: errorCodes.CORRUPT_MESSAGE, records: noRecords }
      this.settled = true
      return
    }
    if (filtered.nextOffset === this.position) this.maxBytes = Math.max(this.maxBytes, filtered.partialBatchBytes)
    this.epoch = epochBefore(records, filtered.nextOffset) ?? this.epoch
    this.position = filtered.nextOffset
    if (filtered.survivors === 0) return
    this.slices.push(...filtered.slices)
    this.survivors += filtered.survivors
    this.delivered += filtered.survivors
    this.lastKeptOffset = filtered.lastKeptOffset
    this.batchEnd = endOfLastBatch(filtered.slices)
  }
}

/** Nothing was asked of the broker for this partition, or it left it out: no error, nothing known. */
function unread(partitionIndex: number): FetchResponsePartition {
  return {
    partitionIndex,
    errorCode: 0,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    divergingEpoch: null,
    currentLeader: null,
    snapshotId: null,
    abortedTransactions: null,
    preferredReadReplica: -1,
    records: noRecords,
  }
}

/** The leader epoch of the last batch below `offset`; everything before it has been read and is well-formed. */
function epochBefore(records: Buffer, offset: number): number | undefined {
  let epoch: number | undefined
  for (let at = 0; at < records.length; ) {
    const end = entryEnd(records, at)
    if (end < 0 || lastOffsetOf(records, at) >= offset) break
    epoch = leaderEpochOf(records, at)
    at = end
  }
  return epoch
}

function endOfLastBatch(slices: readonly Buffer[]): number {
  const slice = slices.at(-1) ?? noRecords
  let end = -1
  for (let at = 0; at < slice.length; ) {
    const next = entryEnd(slice, at)
    if (next < 0) break
    end = lastOffsetOf(slice, at) + 1
    at = next
  }
  return end
}
