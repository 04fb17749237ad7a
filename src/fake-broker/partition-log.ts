/**
 * One partition: a log of batches, its epochs, its end offsets and its producers. A pure state machine.
 *
 * There is one copy of the log, so replication is modelled by its effect: while `replicating` is false the high
 * watermark stands still, acks=all waits, and a new leader begins at the high watermark: what only acks=1 vouched for
 * is lost. Invariant: start ≤ last stable ≤ high watermark ≤ end; batches are contiguous in offsets, save for holes
 * that compaction left.
 */
import { errorCodes } from '../protocol/error-codes.ts'
import { isControl, placeBatch, readHeader, walkEntries } from '../records/batch.ts'
import { buildMarker } from '../records/build.ts'
import { controlTypes } from '../records/control.ts'
import { compactBatches } from './compaction.ts'
import { type IncomingBatch, ProducerStates } from './producer-states.ts'
import type { Aborted, StoredBatch } from './stored-batch.ts'

interface Marker {
  offset: number
  producerId: number
  producerEpoch: number
  commit: boolean
  firstOffset: number | undefined
  timeMs: number
}

export type Appended =
  | { errorCode: 0; baseOffset: number; lastOffset: number; duplicate: boolean; logAppendTimeMs: number }
  | { errorCode: number; message?: string }

export interface Slice {
  records: Buffer
  aborted: Aborted[]
}

export class PartitionLog {
  start = 0
  end = 0
  epoch: number
  /** Where the present epoch began: an earlier end above it was truncated. */
  began = 0
  replicating = true
  #highWatermark = 0
  #batches: StoredBatch[] = []
  #aborted: Aborted[] = []
  #epochs: { epoch: number; start: number }[] = []
  /** Markers that were not replicated yet: their coordinator writes them again when a leader loses them. */
  #markers: Marker[] = []
  readonly producers = new ProducerStates()

  constructor(epoch = 0) {
    this.epoch = epoch
  }

  get highWatermark(): number {
    if (this.replicating) this.#highWatermark = this.end
    return this.#highWatermark
  }

  get lastStable(): number {
    return Math.min(this.highWatermark, this.producers.firstUnstable() ?? Number.POSITIVE_INFINITY)
  }

  get batches(): readonly StoredBatch[] {
    return this.#batches
  }

  /**
   * Appends the batches of one partition of a Produce request. All or nothing: with one that is refused none is
   * written. `records` is copied. `logAppendTime` ≥ 0 stamps the batches with it.
   */
  append(records: Buffer): Appended {
    const copies: Buffer[] = []
    let duplicateAt: number | undefined
    const left = walkEntries(records, (at, end) => copies.push(Buffer.from(records.subarray(at, end))))
    if (copies.length === 0 || left < records.length) return { errorCode: errorCodes.CORRUPT_MESSAGE }
    for (const bytes of copies) {
      const batch = incoming(bytes)
      if (batch === undefined) continue
      const admission = this.producers.admit(batch)
      if (admission.outcome === 'refuse') return { errorCode: admission.errorCode }
      if (admission.outcome === 'duplicate') duplicateAt ??= admission.baseOffset
    }
    if (duplicateAt !== undefined) {
      return { errorCode: 0, baseOffset: duplicateAt, lastOffset: duplicateAt, duplicate: true, logAppendTimeMs: -1 }
    }
    const baseOffset = this.end
    for (const bytes of copies) this.#store(bytes)
    return { errorCode: 0, baseOffset, lastOffset: this.end - 1, duplicate: false, logAppendTimeMs: -1 }
  }

  /** Writes the marker that ends a producer's transaction here. */
  endTransaction(producerId: number, producerEpoch: number, commit: boolean, timeMs: number): void {
    const offset = this.end
    const type = commit ? controlTypes.commit : controlTypes.abort
    this.#store(buildMarker({ type, producerId, producerEpoch, timestamp: timeMs }))
    const firstOffset = this.producers.ended(producerId, producerEpoch)
    this.#markers = this.#markers.filter((m) => m.offset >= this.highWatermark)
    this.#mark({ offset, producerId, producerEpoch, commit, firstOffset, timeMs })
  }

  /**
   * Reads from the batch that holds `offset` on, up to `below` (exclusive) and about `maxBytes`; the first batch comes
   * whole when `wholeFirst`, and the last may be cut short, as when a broker sends a piece of a file.
   */
  read(offset: number, below: number, maxBytes: number, wholeFirst: boolean): Slice {
    const pieces: Buffer[] = []
    let size = 0
    let last = offset
    for (let at = this.#find(offset); at < this.#batches.length; at++) {
      const batch = this.#batches[at]
      if (batch === undefined || batch.base >= below) break
      const room = maxBytes - size
      if (pieces.length > 0 || !wholeFirst) {
        if (room <= 0) break
        if (room < batch.bytes.length) {
          pieces.push(batch.bytes.subarray(0, room))
          break
        }
      }
      pieces.push(batch.bytes)
      size += batch.bytes.length
      last = batch.last
    }
    const aborted = this.#aborted.filter((a) => a.markerOffset >= offset && a.firstOffset <= last)
    return { records: Buffer.concat(pieces), aborted }
  }

  /** Offset and timestamp of the first record at or after `timestamp`, by batches; undefined when there is none. */
  offsetForTime(timestamp: number): { offset: number; timestamp: number } | undefined {
    const batch = this.#batches.find((b) => b.maxTimestamp >= timestamp && !isControl(b.bytes, 0))
    return batch === undefined ? undefined : { offset: batch.base, timestamp: batch.maxTimestamp }
  }

  /** The largest epoch ≤ `epoch` and where it ended, as OffsetForLeaderEpoch answers; −1, −1 where unknown. */
  endOfEpoch(epoch: number): { epoch: number; endOffset: number } {
    if (epoch === this.epoch) return { epoch, endOffset: this.end }
    const next = this.#epochs.findIndex((e) => e.epoch > epoch)
    const known = next < 0 ? this.#epochs.at(-1) : this.#epochs[next - 1]
    if (known === undefined || epoch > this.epoch) return { epoch: -1, endOffset: -1 }
    return { epoch: known.epoch, endOffset: next < 0 ? this.end : (this.#epochs[next]?.start ?? this.end) }
  }

  /** A new leader takes over; what was not replicated is gone. Returns the end it begins at. */
  elect(): number {
    const begin = this.highWatermark
    this.#batches = this.#batches.filter((b) => b.base < begin)
    this.end = begin
    this.began = begin
    this.producers.truncate(begin)
    this.#aborted = this.#aborted.filter((a) => a.markerOffset < begin)
    this.#epochs = this.#epochs.filter((e) => e.start < begin)
    this.replicating = true
    this.epoch++
    const lost = this.#markers.filter((m) => m.offset >= begin)
    this.#markers = []
    for (const marker of lost) this.#markAgain(marker, begin)
    return begin
  }

  /** Retention or DeleteRecords: everything below `offset` goes, batch by batch. */
  trim(offset: number): void {
    this.start = Math.max(this.start, Math.min(offset, this.highWatermark))
    this.#batches = this.#batches.filter((b) => b.last >= this.start)
    this.#aborted = this.#aborted.filter((a) => a.markerOffset >= this.start)
  }

  /** Keeps only the last record of each key below `below` (default: the last stable offset). */
  compact(below = this.lastStable): void {
    this.#batches = compactBatches(this.#batches, below, this.producers.lastOffsets(), this.#aborted)
  }

  #mark(marker: Marker): void {
    const { offset, producerId, commit, firstOffset } = marker
    this.#markers.push(marker)
    if (!commit && firstOffset !== undefined) this.#aborted.push({ producerId, firstOffset, markerOffset: offset })
  }

  #markAgain(marker: Marker, begin: number): void {
    const { producerId, producerEpoch, commit, timeMs } = marker
    const firstOffset = (marker.firstOffset ?? begin) < begin ? marker.firstOffset : undefined
    const type = commit ? controlTypes.commit : controlTypes.abort
    const offset = this.end
    this.#store(buildMarker({ type, producerId, producerEpoch, timestamp: timeMs }))
    this.#mark({ ...marker, offset, firstOffset })
  }

  #store(bytes: Buffer): void {
    placeBatch(bytes, 0, this.end, this.epoch)
    const header = readHeader(bytes, 0)
    const { baseOffset, lastOffset, producerId, maxTimestamp } = header
    const batch = incoming(bytes)
    if (batch !== undefined) this.producers.appended(batch, baseOffset)
    if (this.#epochs.at(-1)?.epoch !== this.epoch) this.#epochs.push({ epoch: this.epoch, start: baseOffset })
    this.#batches.push({ bytes, base: baseOffset, last: lastOffset, epoch: this.epoch, producerId, maxTimestamp })
    this.end = lastOffset + 1
  }

  #find(offset: number): number {
    let low = 0
    let high = this.#batches.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#batches[middle]?.last ?? 0) < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** The batch as its producer's state sees it; undefined without idempotence and for markers. */
function incoming(bytes: Buffer): IncomingBatch | undefined {
  const { producerId, producerEpoch, baseSequence, lastOffsetDelta, transactional, control } = readHeader(bytes, 0)
  if (producerId < 0 || control) return undefined
  return {
    producerId,
    epoch: producerEpoch,
    firstSequence: baseSequence,
    recordCount: lastOffsetDelta + 1,
    transactional,
  }
}
