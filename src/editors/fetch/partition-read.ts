/**
 * Reading one partition for one Fetch of a client: what was asked, how far the broker's answers have been looked
 * through, and what has been found. Pure: it is fed with answers and says what to ask next.
 */
import { errorCodes } from '../../protocol/error-codes.ts'
import type { FetchRequestPartition, FetchResponsePartition } from '../../protocol/generated/01-fetch.ts'
import { AbortedBatches } from '../../records/aborted.ts'
import type { RecordsError } from '../../records/errors.ts'
import { type FilteredRecords, filterRecords, type Keep } from '../../records/filter.ts'
import { batchEndsAfter, bytesBelow, epochBefore } from './batch-ends.ts'
import type { PartitionPolicy } from './policy.ts'
import type { SkipPointer } from './skip-pointers.ts'

/** READ_COMMITTED in a Fetch request. */
const READ_COMMITTED = 1
const NO_EPOCH = -1
const noRecords = Buffer.alloc(0)
const keepAll: Keep = () => true

export interface ReadOptions {
  /** `topic or topic id` + `/` + partition + `/` + isolation level. */
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
  /** Bytes found for the client so far. */
  foundBytes = 0
  /** What is wrong with the batch at `position`, if anything. */
  failure: RecordsError | undefined
  private epoch: number
  private maxBytes: number
  private readonly options: ReadOptions
  private answer: FetchResponsePartition | undefined
  private slices: Buffer[] = []
  /** Slices before this one lie in memory of their own. */
  private detached = 0
  private survivors = 0
  private withheld = 0
  private lastKeptOffset = -1
  /** Where the batches that were given end, from the one with the last record on. */
  private batchEnds: readonly number[] = []
  /** Nothing more is read for this Fetch: bytes that pass as they are, or something the client meets with its next one. */
  private done = false
  private refused = false
  /** What was found are batches as the broker gave them; its list of aborted transactions goes with them. */
  private untouched = false

  constructor(options: ReadOptions) {
    this.options = options
    this.key = options.key
    this.request = options.request
    this.policy = options.policy
    this.position = options.pointer?.scanEnd ?? options.request.fetchOffset
    this.epoch = options.pointer?.epoch ?? options.request.lastFetchedEpoch
    this.maxBytes = options.request.partitionMaxBytes
    const errorCode = options.policy?.refuse
    if (errorCode !== undefined) this.refuse({ ...unread(options.request.partition), errorCode })
  }

  /** The answer is an error or the like, which the client must have now, whatever the other partitions do. */
  get urgent(): boolean {
    return this.refused
  }

  /** Whether there is anything to read for the client at the moment: not done, not behind a shut limit, not full. */
  get open(): boolean {
    if (this.done || this.position >= this.limit()) return false
    return this.foundBytes === 0 || this.foundBytes < this.request.partitionMaxBytes / 2
  }

  /** Whether its high watermark can be asked for: it waits behind a limit and nothing is known of it yet. */
  get unknown(): boolean {
    return !this.done && this.answer === undefined
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
    if (isPlain(response)) this.answer = { ...response, records: noRecords }
    else this.meet(response)
  }

  /**
   * The broker's answer to `upstream`.
   * @param budget how many bytes the whole answer to the client may still grow by; reading stops in front of the batch
   *   after that
   */
  ingest(response: FetchResponsePartition, budget: number): void {
    if (!isPlain(response)) return this.meet(response)
    this.answer = { ...response, records: noRecords } // its records would keep the whole answer in memory
    const records = response.records ?? noRecords
    if (records.length === 0) return
    const whole = this.wholeBatches(records)
    if (whole.length > 0) {
      this.slices = [whole]
      this.foundBytes = whole.length
      this.untouched = true
      this.done = true
    } else if (this.policy !== undefined) this.filter(this.policy, records, response, budget)
  }

  /** Takes back what was found if the limit is below its end by now: the view was older than it may be. */
  recheck(): void {
    const limit = this.slices.length === 0 ? Number.POSITIVE_INFINITY : this.limit()
    if (limit === Number.POSITIVE_INFINITY) return
    if (this.slices.every((slice) => bytesBelow(slice, limit) === slice.length)) return
    this.slices = []
    this.foundBytes = 0
    this.detached = 0
    this.survivors = 0
    this.lastKeptOffset = -1
    this.batchEnds = []
    this.untouched = false
    this.done = false
    this.position = this.options.pointer?.scanEnd ?? this.request.fetchOffset
    this.epoch = this.options.pointer?.epoch ?? this.request.lastFetchedEpoch
  }

  /**
   * Copies what was found out of the broker's answer, so that a few records do not keep all of it in memory. To be called
   * before the broker is asked again.
   */
  detach(): void {
    for (; this.detached < this.slices.length; this.detached++) {
      const slice = this.slices[this.detached] ?? noRecords
      if (slice.length < slice.buffer.byteLength) this.slices[this.detached] = copyOf(slice)
    }
  }

  /** The client's answer for this partition. Null records become zero bytes: kafka-python fails on null. */
  result(): FetchResponsePartition {
    const answer = this.answer ?? unread(this.request.partition)
    const records = this.slices.length === 1 ? this.slices[0] : Buffer.concat(this.slices)
    if (this.policy === undefined || this.untouched) return { ...answer, records: records ?? noRecords }
    // Aborted records were taken out here, so the client has nothing to leave out.
    const abortedTransactions = this.options.isolationLevel === READ_COMMITTED ? [] : null
    return { ...answer, abortedTransactions, records: records ?? noRecords }
  }

  /** Tells the policy what became of the records. */
  count(): void {
    this.policy?.count?.(this.survivors, this.withheld)
  }

  /** What to remember for the client's next Fetch. */
  pointers(): SkipPointer[] {
    const { position: scanEnd, epoch } = this
    if (this.refused) return [] // leaders change and logs are cut with errors: read again from the client's own offset
    if (this.survivors === 0) return [{ offset: this.request.fetchOffset, scanEnd, epoch }]
    const before = this.options.pointer === undefined ? [] : [this.options.pointer] // it may ask once more, if our answer is lost
    const next = new Set([...this.batchEnds, this.lastKeptOffset + 1])
    return [...before, ...[...next].map((offset) => ({ offset, scanEnd, epoch }))]
  }

  /** An error, a diverging log or another replica to read from. */
  private meet(response: FetchResponsePartition): void {
    if (this.survivors > 0) {
      this.done = true // what was found goes first; the client meets this with its next Fetch
      return
    }
    const cut = response.errorCode === errorCodes.OFFSET_OUT_OF_RANGE || response.divergingEpoch !== null
    if (cut && this.position !== this.request.fetchOffset) {
      // The log was cut, or begins, elsewhere than where we had read to: the client's own offset is the truth.
      this.position = this.request.fetchOffset
      this.epoch = this.request.lastFetchedEpoch
      return
    }
    this.refuse({ ...response, records: noRecords })
  }

  private refuse(answer: FetchResponsePartition): void {
    this.answer = answer
    this.refused = true
    this.done = true
  }

  private limit(): number {
    return this.policy?.limit?.() ?? Number.POSITIVE_INFINITY
  }

  /**
   * The batches that go to the client without being opened: all of them where there is no policy, those below the limit
   * where every record stays.
   */
  private wholeBatches(records: Buffer): Buffer {
    if (this.policy === undefined) return records
    if (this.policy.keep !== undefined || this.slices.length > 0) return noRecords
    const limit = this.limit()
    return limit === Number.POSITIVE_INFINITY ? records : records.subarray(0, bytesBelow(records, limit))
  }

  private filter(policy: PartitionPolicy, records: Buffer, response: FetchResponsePartition, budget: number): void {
    const committed = this.options.isolationLevel === READ_COMMITTED
    const filtered = filterRecords(records, this.position, policy.keep ?? keepAll, {
      maxInflatedBytes: this.options.maxInflatedBytes,
      maxBytes: Math.max(1, Math.min(budget, this.request.partitionMaxBytes - this.foundBytes)),
      endOffset: this.limit(),
      ...(committed ? { aborted: new AbortedBatches(response.abortedTransactions ?? []) } : {}),
    })
    this.withheld += filtered.withheld
    if (filtered.nextOffset === this.position) this.maxBytes = Math.max(this.maxBytes, filtered.partialBatchBytes)
    this.epoch = epochBefore(records.subarray(0, filtered.readBytes), filtered.nextOffset) ?? this.epoch
    this.position = filtered.nextOffset
    if (filtered.survivors > 0) this.keep(filtered)
    if (filtered.failure !== undefined) this.fail(filtered.failure, response)
  }

  private keep(filtered: FilteredRecords): void {
    this.slices.push(...filtered.slices)
    this.foundBytes += filtered.sizeBytes
    this.survivors += filtered.survivors
    this.lastKeptOffset = filtered.lastKeptOffset
    this.batchEnds = batchEndsAfter(filtered.slices, filtered.lastKeptOffset)
  }

  /** A broken batch: what was found before it goes first. */
  private fail(failure: RecordsError, response: FetchResponsePartition): void {
    this.failure = failure
    if (this.survivors > 0) this.done = true
    else this.refuse({ ...response, errorCode: errorCodes.CORRUPT_MESSAGE, records: noRecords })
  }
}

/** Neither an error, nor the place where the client's log and the leader's diverge, nor a pointer to another replica. */
function isPlain({ errorCode, divergingEpoch, preferredReadReplica }: FetchResponsePartition): boolean {
  return errorCode === 0 && divergingEpoch === null && preferredReadReplica < 0
}

function copyOf(slice: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(slice.length)
  slice.copy(copy)
  return copy
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
