/**
 * Taking records out of what a Fetch answered. What stays keeps its offset; a batch keeps base offset, last offset
 * delta, leader epoch, producer fields, timestamps and all attributes but the compression bits, and gets a new count,
 * length and CRC. A batch that loses nothing is passed on as the bytes it came in; one that loses all disappears (a
 * batch without records wedges kafkajs); control batches are never touched.
 *
 * Survivors are written uncompressed: every client family takes that, and it is the cheapest form. A batch that would
 * grow by it beyond what was asked for is given in parts: as if the log ended inside it, and from there the next time.
 */
import { type AbortedBatches } from './aborted.ts'
import {
  HEADER_SIZE,
  LENGTH_END,
  attributeBits,
  attributesOf,
  baseOffsetOf,
  checkCrc,
  codecOf,
  codecs,
  entryEnd,
  entrySize,
  isControl,
  lastOffsetDeltaOf,
  lastOffsetOf,
  magicOf,
  writeCrc,
} from './batch.ts'
import { RecordsError } from './errors.ts'
import { filterMessage } from './legacy-filter.ts'
import { openBatch, openInflated } from './read.ts'
import { RecordCursor, type RecordView } from './record.ts'

/** Whether a record stays: the same answer each time it is asked. The view is reused: it is valid during the call only. */
export type Keep = (record: RecordView) => boolean

export interface FilterLimits {
  /** What one batch may inflate to, in bytes. A call that has inflated as much stops in front of the next batch. */
  readonly maxInflatedBytes: number
  /** Once this much remains, reading stops in front of the next batch, or inside one that grew. Unlimited when left out. */
  readonly maxBytes?: number
  /** Records from this offset on are not given, as if the log ended there. Unlimited when left out. */
  readonly endOffset?: number
  /** Batches of these transactions are taken out whole, for clients that read committed records. */
  readonly aborted?: AbortedBatches
}

export interface FilteredRecords {
  /** What remains, in order; together the bytes of a `records` field. */
  readonly slices: Buffer[]
  readonly sizeBytes: number
  /** Data records that remain, and those of them at or above the fetch offset: only these are news to the client. */
  readonly kept: number
  readonly survivors: number
  /** Data records taken out, by `keep`, as aborted or by `endOffset`. */
  readonly withheld: number
  /** Offset of the last data record that remains, -1 for none. */
  readonly lastKeptOffset: number
  /** Last offset of the last batch read, -1 when there was no complete one. */
  readonly lastOffset: number
  /** Where to read on: after the last complete batch, at `endOffset`, or at the fetch offset if there was neither. */
  readonly nextOffset: number
  /** Bytes of the slice that were read: all of it, up to a partial batch, or less where a limit stopped the call. */
  readonly readBytes: number
  /** Bytes the batch cut off at the end has as a whole; 0 when the slice ended with a batch. */
  readonly partialBatchBytes: number
  /** What stopped the reading; what came before it is in the result. A broker says CORRUPT_MESSAGE (2) for it. */
  readonly failure: RecordsError | undefined
}

/**
 * Filters the batches of one partition's `records`. Never throws for what is in the bytes: see `failure`.
 * @param fetchOffset what was asked for; the first batch may begin below it.
 */
export function filterRecords(bytes: Buffer, fetchOffset: number, keep: Keep, limits: FilterLimits): FilteredRecords {
  const filter = new RecordsFilter(bytes, fetchOffset, keep, limits)
  let failure: RecordsError | undefined
  try {
    filter.run()
  } catch (error) {
    if (!(error instanceof RecordsError)) throw error
    failure = error
  }
  return filter.result(failure)
}

/** What became of a batch's records. */
interface Judged {
  readonly kept: number
  readonly survivors: number
  readonly withheld: number
  /** Of the records that stay. */
  readonly bytes: number
  readonly lastKept: number
  /** The record in front of which it was broken off; Infinity: it was not. */
  readonly cutAt: number
}

/**
 * One pass over one slice. What it gives is bounded by the slice's length and `maxBytes` (a record that is larger alone
 * passes it); while it runs there is one inflated batch beside it. Adjacent untouched batches become one slice of the input.
 */
class RecordsFilter {
  private readonly bytes: Buffer
  private readonly fetchOffset: number
  private readonly keep: Keep
  private readonly limits: FilterLimits
  /** Where reading ends: a limit from outside, or a batch that is given in parts. */
  private endOffset: number
  private readonly maxBytes: number
  private readonly cursor = new RecordCursor()
  /** Start and end of each run of neighbouring records that stay, within what the cursor reads. */
  private readonly runs: number[] = []
  private readonly slices: Buffer[] = []
  private at = 0
  private untouchedFrom = 0
  private sizeBytes = 0
  private inflatedBytes = 0
  private kept = 0
  private survivors = 0
  private withheld = 0
  private lastKeptOffset = -1
  private lastOffset = -1
  private nextOffset: number
  private partialBatchBytes = 0

  constructor(bytes: Buffer, fetchOffset: number, keep: Keep, limits: FilterLimits) {
    this.bytes = bytes
    this.fetchOffset = fetchOffset
    this.nextOffset = fetchOffset
    this.keep = keep
    this.limits = limits
    this.endOffset = limits.endOffset ?? Number.POSITIVE_INFINITY
    this.maxBytes = limits.maxBytes ?? Number.POSITIVE_INFINITY
  }

  run(): void {
    while (this.at < this.bytes.length) {
      const at = this.at
      if (this.sizeBytes >= this.maxBytes || this.inflatedBytes >= this.limits.maxInflatedBytes) return
      const end = entryEnd(this.bytes, at)
      if (end < 0) {
        this.partialBatchBytes = Math.max(entrySize(this.bytes, at), LENGTH_END)
        return
      }
      if (baseOffsetOf(this.bytes, at) >= this.endOffset && !isWrapper(this.bytes, at)) return
      checkCrc(this.bytes, at, end)
      const replacement = this.filterEntry(at, end)
      if (replacement === UNTOUCHED) this.sizeBytes += end - at
      else this.splice(at, end, replacement)
      this.at = end
      this.lastOffset = Math.min(lastOffsetOf(this.bytes, at), this.endOffset - 1)
      this.nextOffset = Math.max(this.nextOffset, this.lastOffset + 1)
    }
  }

  result(failure: RecordsError | undefined): FilteredRecords {
    this.closeUntouched(this.at)
    return {
      slices: this.slices,
      sizeBytes: this.sizeBytes,
      kept: this.kept,
      survivors: this.survivors,
      withheld: this.withheld,
      lastKeptOffset: this.lastKeptOffset,
      lastOffset: this.lastOffset,
      nextOffset: this.nextOffset,
      readBytes: this.at,
      partialBatchBytes: this.partialBatchBytes,
      failure,
    }
  }

  private closeUntouched(end: number): void {
    if (end > this.untouchedFrom) this.slices.push(this.bytes.subarray(this.untouchedFrom, end))
  }

  private splice(at: number, end: number, replacement: Buffer | undefined): void {
    this.closeUntouched(at)
    if (replacement !== undefined) {
      this.slices.push(replacement)
      this.sizeBytes += replacement.length
    }
    this.untouchedFrom = end
  }

  private filterEntry(at: number, end: number): Buffer | undefined {
    const { bytes } = this
    if (magicOf(bytes, at) < 2) return this.filterMessage(at, end)
    const aborted = this.limits.aborted?.includes(bytes, at, end) === true
    if (isControl(bytes, at)) return UNTOUCHED
    const count = bytes.readInt32BE(at + 57)
    if (aborted) {
      this.withheld += Math.max(count, 0)
      return undefined
    }
    // Compaction leaves a batch without records to remember a producer's sequence: nothing to judge, nothing to show.
    if (count === 0) return undefined
    openBatch(this.cursor, bytes, at, end, this.limits.maxInflatedBytes)
    const inflated = this.cursor.bytes !== bytes
    if (inflated) this.inflatedBytes += this.cursor.bytes.length
    let judged = this.judge(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
    const whole = judged.kept === count && lastOffsetOf(bytes, at) < this.endOffset
    const room = Math.max(end - at, this.maxBytes - this.sizeBytes)
    if (!whole && inflated && HEADER_SIZE + judged.bytes > room) {
      openInflated(this.cursor, this.cursor.bytes, bytes, at)
      judged = this.judge(this.fetchOffset, room - HEADER_SIZE)
      this.endOffset = Math.min(this.endOffset, judged.cutAt)
    }
    this.count(judged)
    if (judged.kept === 0) return undefined
    if (whole) return UNTOUCHED
    const lastDelta = Math.min(lastOffsetDeltaOf(bytes, at), this.endOffset - 1 - baseOffsetOf(bytes, at))
    return rebuild(bytes, at, this.cursor.bytes, this.runs, judged.kept, lastDelta)
  }

  /**
   * Asks for the records the cursor has, from an offset on, and fills `runs`; ends in front of a record that would pass
   * `room` bytes, unless it is the first.
   */
  private judge(from: number, room: number): Judged {
    const { cursor, runs, keep, fetchOffset, endOffset } = this
    const judged = { kept: 0, survivors: 0, withheld: 0, bytes: 0, lastKept: -1, cutAt: Number.POSITIVE_INFINITY }
    runs.length = 0
    let open = false
    while (cursor.next()) {
      if (cursor.offset < from) continue
      if (cursor.offset >= endOffset || !keep(cursor)) {
        open = false
        judged.withheld++
        continue
      }
      const size = cursor.end - cursor.start
      if (judged.bytes > 0 && judged.bytes + size > room) {
        judged.cutAt = cursor.offset
        break
      }
      if (!open) runs.push(cursor.start, 0)
      open = true
      runs[runs.length - 1] = cursor.end
      judged.kept++
      judged.bytes += size
      if (cursor.offset >= fetchOffset) judged.survivors++
      judged.lastKept = cursor.offset
    }
    return judged
  }

  private count({ kept, survivors, withheld, lastKept }: Judged): void {
    this.kept += kept
    this.survivors += survivors
    this.withheld += withheld
    if (lastKept > this.lastKeptOffset) this.lastKeptOffset = lastKept
  }

  private filterMessage(at: number, end: number): Buffer | undefined {
    let kept = 0
    let withheld = 0
    let inflated = 0
    const remaining = filterMessage(this.bytes, at, end, this.limits.maxInflatedBytes, (record) => {
      inflated = record.bytes === this.bytes ? 0 : record.bytes.length
      const stays = record.offset < this.endOffset && this.keep(record)
      if (!stays) withheld++
      else {
        kept++
        if (record.offset >= this.fetchOffset) this.survivors++
        this.lastKeptOffset = Math.max(this.lastKeptOffset, record.offset)
      }
      return stays
    })
    this.kept += kept
    this.withheld += withheld
    this.inflatedBytes += inflated
    return withheld === 0 ? UNTOUCHED : remaining
  }
}

/** Stands for "the bytes as they are", so that undefined can stand for "nothing". */
const UNTOUCHED = Buffer.alloc(0)

/** A compressed message carries the offset of its last record: its first ones may lie below the end. */
function isWrapper(bytes: Buffer, at: number): boolean {
  return magicOf(bytes, at) < 2 && codecOf(bytes, at) !== codecs.none
}

/** A v2 batch with the records of `runs` (positions in `payload`) under the header at `at`. */
function rebuild(
  bytes: Buffer,
  at: number,
  payload: Buffer,
  runs: readonly number[],
  kept: number,
  lastOffsetDelta: number,
): Buffer {
  let size = HEADER_SIZE
  for (let i = 0; i < runs.length; i += 2) size += runs[i + 1]! - runs[i]!
  const out = Buffer.allocUnsafeSlow(size)
  bytes.copy(out, 0, at, at + HEADER_SIZE)
  out.writeInt32BE(size - LENGTH_END, 8)
  out.writeInt16BE(attributesOf(bytes, at) & ~attributeBits.CODEC_MASK, 21)
  out.writeInt32BE(lastOffsetDelta, 23)
  out.writeInt32BE(kept, 57)
  let position = HEADER_SIZE
  for (let i = 0; i < runs.length; i += 2) position += payload.copy(out, position, runs[i], runs[i + 1])
  writeCrc(out, 0, size)
  return out
}
