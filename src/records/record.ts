/**
 * Reading the records of a v2 batch one after the other, without an object per record: the cursor *is* the view, and
 * what it shows is valid until the next `next()`.
 *
 *   record: length · attributes int8 · timestamp delta varlong · offset delta varint · key length · key · value length ·
 *           value · header count · (name length · name · value length · value)*          (all lengths zigzag varints)
 *
 * Invariant: every position shown lies inside the record, every record inside its batch; anything else is an error.
 */
import { corrupt } from './errors.ts'

/** A record where it lies. Also filled for records of magic 0 and 1, which have no headers. */
export class RecordView {
  /** What the positions below point into: the received slice, or the inflated records of a compressed batch. */
  bytes: Buffer = EMPTY
  offset = -1
  /** -1 for a null key; an empty key has keyStart = keyEnd ≥ 0. */
  keyStart = -1
  keyEnd = -1
  /** -1 for a null value (a tombstone where the topic is compacted). */
  valueStart = -1
  valueEnd = -1
}

const EMPTY = Buffer.alloc(0)

export class RecordCursor extends RecordView {
  /** The record's first byte (its length) and the byte after its last. */
  start = 0
  end = 0
  timestampDeltaAt = 0
  headersAt = 0

  private at = 0
  private limit = 0
  private remaining = 0
  private baseOffset = 0
  private lastOffsetDelta = 0
  private batchAt = 0

  /**
   * Goes in front of the first of `count` records in `bytes[from, to)`.
   * @param batchAt where the batch lies, for errors.
   */
  open(
    bytes: Buffer,
    from: number,
    to: number,
    count: number,
    baseOffset: number,
    lastOffsetDelta: number,
    batchAt: number,
  ): void {
    // The smallest record has 7 bytes: a count that cannot be true is refused before anybody allocates by it.
    if (count < 0 || count > (to - from) / 7) throw corrupt(batchAt, `${count} records in ${to - from} bytes`)
    if (lastOffsetDelta < 0) throw corrupt(batchAt, `last offset delta ${lastOffsetDelta}`)
    this.bytes = bytes
    this.at = from
    this.limit = to
    this.remaining = count
    this.baseOffset = baseOffset
    this.lastOffsetDelta = lastOffsetDelta
    this.batchAt = batchAt
  }

  /**
   * Goes to the next record; false after the last.
   * @throws RecordsError when lengths and count do not fit together.
   */
  next(): boolean {
    if (this.remaining === 0) {
      if (this.at !== this.limit) throw corrupt(this.batchAt, `${this.limit - this.at} bytes after the last record`)
      return false
    }
    this.remaining--
    this.start = this.at
    const length = this.readVarint()
    const end = this.at + length
    if (length < 6 || end > this.limit) throw corrupt(this.batchAt, `record of ${length} bytes`)
    this.end = end
    this.at++ // attributes: none are defined
    this.timestampDeltaAt = this.at
    this.skipVarlong()
    const offsetDelta = this.readVarint()
    if (offsetDelta < 0 || offsetDelta > this.lastOffsetDelta) {
      throw corrupt(this.batchAt, `offset delta ${offsetDelta}, last is ${this.lastOffsetDelta}`)
    }
    this.offset = this.baseOffset + offsetDelta
    const keyLength = this.readVarint()
    if (keyLength < 0) {
      if (keyLength !== -1) throw corrupt(this.batchAt, `key of ${keyLength} bytes`)
      this.keyStart = this.keyEnd = -1
    } else {
      this.keyStart = this.at
      this.keyEnd = this.at += keyLength
      if (this.at >= end) throw corrupt(this.batchAt, `key of ${keyLength} bytes`)
    }
    const valueLength = this.readVarint()
    if (valueLength < 0) {
      if (valueLength !== -1) throw corrupt(this.batchAt, `value of ${valueLength} bytes`)
      this.valueStart = this.valueEnd = -1
    } else {
      this.valueStart = this.at
      this.valueEnd = this.at += valueLength
    }
    if (this.at >= end) throw corrupt(this.batchAt, `value of ${valueLength} bytes`)
    this.headersAt = this.at
    this.at = end
    return true
  }

  /** Milliseconds after the batch's base timestamp. */
  timestampDelta(): number {
    let low = 0
    let high = 0
    let at = this.timestampDeltaAt
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.byteAt(at++)
      if (shift < 28) low |= (byte & 0x7f) << shift
      else high += (byte & 0x7f) * 2 ** (shift - 28)
      if (byte < 0x80) break
    }
    const zigzag = high * 0x1000_0000 + low
    const delta = zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    if (!Number.isSafeInteger(delta)) throw corrupt(this.batchAt, 'timestamp delta beyond 2^53')
    return delta
  }

  /** Calls `visit` with the positions of each header's name and value; valueStart is -1 for a null value. */
  forEachHeader(visit: (nameStart: number, nameEnd: number, valueStart: number, valueEnd: number) => void): void {
    const resume = this.at
    this.at = this.headersAt
    const count = this.readVarint()
    if (count < 0 || count > this.end - this.at) throw corrupt(this.batchAt, `${count} headers`)
    for (let i = 0; i < count; i++) {
      const nameStart = this.takeBytes(false)
      const nameEnd = this.at
      const valueStart = this.takeBytes(true)
      visit(nameStart, nameEnd, valueStart, valueStart < 0 ? -1 : this.at)
    }
    if (this.at !== this.end) throw corrupt(this.batchAt, `${this.end - this.at} bytes after the last header`)
    this.at = resume
  }

  /** Steps over a length and its bytes; where they start, or -1 for null. */
  private takeBytes(nullable: boolean): number {
    const length = this.readVarint()
    if (length === -1 && nullable) return -1
    if (length < 0 || length > this.end - this.at) throw corrupt(this.batchAt, `header of ${length} bytes`)
    const start = this.at
    this.at += length
    return start
  }

  private byteAt(at: number): number {
    if (at >= this.limit) throw corrupt(this.batchAt, 'record ends early')
    return this.bytes[at]!
  }

  private readVarint(): number {
    let byte = this.byteAt(this.at++)
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
    let zigzag = byte & 0x7f
    for (let shift = 7; shift < 35; shift += 7) {
      byte = this.byteAt(this.at++)
      zigzag |= (byte & 0x7f) << shift
      if (byte < 0x80) return (zigzag >>> 1) ^ -(zigzag & 1)
    }
    throw corrupt(this.batchAt, 'varint of more than 5 bytes')
  }

  private skipVarlong(): void {
    for (let i = 0; i < 10; i++) if (this.byteAt(this.at++) < 0x80) return
    throw corrupt(this.batchAt, 'varlong of more than 10 bytes')
  }
}
