/**
 * Reads Kafka's primitive types from a buffer. Positions are absolute; nothing outside [at, end) is ever read, and no
 * length or count is believed before it was compared with the bytes that remain. Byte fields are slices, never copies.
 */
import { ProtocolError } from './errors.ts'
import type { ProtocolErrorCode } from './errors.ts'
import { zeroUuid } from './uuid.ts'

/** A tagged field that the codec has no definition for: kept verbatim so that a proxy does not drop it. */
export interface UnknownTag {
  readonly tag: number
  readonly data: Buffer
}

/** Strings up to this many bytes are read in JavaScript when they are ASCII; above, the native call is faster. */
const SHORT_STRING_BYTES = 12
/** Arrays up to this length are allocated whole; longer ones grow, so that a wrong count costs no memory. */
const WHOLE_ARRAY_LENGTH = 4096

export class Reader {
  buffer: Buffer
  view: DataView
  /** Next byte to read. */
  at: number
  /** One past the last readable byte. */
  end: number
  /** Index of the field being read, kept by generated codecs for error messages. */
  field: number

  constructor(buffer: Buffer, at = 0, end = buffer.length) {
    if (at < 0 || at > end || end > buffer.length)
      throw new RangeError(`reader range ${at}..${end} of ${buffer.length}`)
    this.buffer = buffer
    this.view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
    this.at = at
    this.end = end
    this.field = 0
  }

  get remaining(): number {
    return this.end - this.at
  }

  /** Throws a ProtocolError at the current position. */
  fail(code: ProtocolErrorCode, detail: string): never {
    throw new ProtocolError(code, detail, this.at)
  }

  /** Claims `bytes` bytes and returns the position of the first. */
  take(bytes: number): number {
    const from = this.at
    const to = from + bytes
    if (to > this.end) this.fail('HG_PROTOCOL_TRUNCATED', `${bytes} bytes wanted, ${this.end - from} left`)
    this.at = to
    return from
  }

  /** Throws when bytes are left over. */
  expectEnd(): void {
    if (this.at !== this.end) this.fail('HG_PROTOCOL_TRAILING', `${this.end - this.at} bytes left over`)
  }

  int8(): number {
    return this.view.getInt8(this.take(1))
  }

  uint8(): number {
    return this.view.getUint8(this.take(1))
  }

  bool(): boolean {
    return this.view.getUint8(this.take(1)) !== 0
  }

  int16(): number {
    return this.view.getInt16(this.take(2))
  }

  uint16(): number {
    return this.view.getUint16(this.take(2))
  }

  int32(): number {
    return this.view.getInt32(this.take(4))
  }

  uint32(): number {
    return this.view.getUint32(this.take(4))
  }

  float64(): number {
    return this.view.getFloat64(this.take(8))
  }

  /** A 64-bit integer as a number; one that is not exact below 2⁵³ is an error. */
  int64(): number {
    return this.int64At(this.take(8))
  }

  /** As {@link int64}, at a position whose eight bytes were claimed before. */
  int64At(at: number): number {
    const value = this.view.getInt32(at) * 0x1_0000_0000 + this.view.getUint32(at + 4)
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) {
      throw new ProtocolError('HG_PROTOCOL_INT64', `${this.view.getBigInt64(at)} is beyond 2^53`, at)
    }
    return value
  }

  bigint64(): bigint {
    return this.view.getBigInt64(this.take(8))
  }

  /** A UUID in the form Kafka's tools print: 22 characters of base64url. */
  uuid(): string {
    return this.uuidAt(this.take(16))
  }

  /** As {@link uuid}, at a position whose sixteen bytes were claimed before. */
  uuidAt(at: number): string {
    const view = this.view
    if (view.getInt32(at) === 0 && view.getInt32(at + 4) === 0 && view.getInt32(at + 8) === 0) {
      if (view.getInt32(at + 12) === 0) return zeroUuid
    }
    return this.buffer.toString('base64url', at, at + 16)
  }

  /** Unsigned varint of at most 32 bits. */
  uvarint(): number {
    const first = this.at < this.end ? this.view.getUint8(this.at) : 0x80
    if (first < 0x80) {
      this.at++
      return first
    }
    return this.longUvarint()
  }

  private longUvarint(): number {
    const start = this.at
    let value = 0
    for (let shift = 0; shift <= 28; shift += 7) {
      if (this.at >= this.end) this.fail('HG_PROTOCOL_TRUNCATED', 'the bytes end inside a varint')
      const byte = this.view.getUint8(this.at++)
      if (byte < 0x80) {
        if (shift === 28 && byte > 0x0f) break
        return (value | (byte << shift)) >>> 0
      }
      value |= (byte & 0x7f) << shift
    }
    this.at = start
    return this.fail('HG_PROTOCOL_VARINT', 'varint longer than 32 bits')
  }

  /** Signed (zigzag) varint of at most 32 bits. */
  varint(): number {
    const value = this.uvarint()
    return (value >>> 1) ^ -(value & 1)
  }

  string(): string {
    const length = this.int16()
    if (length >= 0) return this.text(length)
    return this.badLength(length, 2)
  }

  nullableString(): string | null {
    const length = this.int16()
    if (length >= 0) return this.text(length)
    return length === -1 ? null : this.badLength(length, 2)
  }

  compactString(): string {
    const length = this.uvarint() - 1
    if (length >= 0) return this.text(length)
    return this.badLength(length, 1)
  }

  compactNullableString(): string | null {
    const length = this.uvarint() - 1
    return length >= 0 ? this.text(length) : null
  }

  /** `bytes` bytes of UTF-8 whose length was read already. */
  text(bytes: number): string {
    if (bytes > 0x7fff) this.fail('HG_PROTOCOL_LENGTH', `string of ${bytes} bytes`)
    const from = this.take(bytes)
    if (bytes > SHORT_STRING_BYTES) return this.buffer.toString('utf8', from, this.at)
    return this.shortText(from, bytes)
  }

  /** ASCII in pieces of four and one characters: a third of the native call's time. */
  private shortText(from: number, bytes: number): string {
    const view = this.view
    const end = from + bytes
    let bits = 0
    for (let at = from; at < end; at++) bits |= view.getUint8(at)
    if (bits > 0x7f) return this.buffer.toString('utf8', from, end)
    let text = ''
    let at = from
    for (; at + 4 <= end; at += 4) {
      const four = view.getUint32(at)
      text += String.fromCharCode(four >>> 24, (four >>> 16) & 0x7f, (four >>> 8) & 0x7f, four & 0x7f)
    }
    for (; at < end; at++) text += String.fromCharCode(view.getUint8(at))
    return text
  }

  bytes(): Buffer {
    const length = this.int32()
    if (length >= 0) return this.slice(length)
    return this.badLength(length, 4)
  }

  nullableBytes(): Buffer | null {
    const length = this.int32()
    if (length >= 0) return this.slice(length)
    return length === -1 ? null : this.badLength(length, 4)
  }

  compactBytes(): Buffer {
    const length = this.uvarint() - 1
    if (length >= 0) return this.slice(length)
    return this.badLength(length, 1)
  }

  compactNullableBytes(): Buffer | null {
    const length = this.uvarint() - 1
    return length >= 0 ? this.slice(length) : null
  }

  /** The next `bytes` bytes as a slice of the buffer being read. */
  slice(bytes: number): Buffer {
    if (bytes > this.end - this.at) {
      this.fail('HG_PROTOCOL_LENGTH', `length ${bytes} with ${this.end - this.at} bytes left`)
    }
    const from = this.take(bytes)
    return this.buffer.subarray(from, this.at)
  }

  /** An element count; `minimum` is the fewest bytes one element can take. */
  count(minimum: number): number {
    return this.checkCount(this.int32(), minimum, 4)
  }

  /** As {@link count}; -1 for a null array. */
  nullableCount(minimum: number): number {
    const count = this.int32()
    return count === -1 ? -1 : this.checkCount(count, minimum, 4)
  }

  compactCount(minimum: number): number {
    return this.checkCount(this.uvarint() - 1, minimum, 1)
  }

  compactNullableCount(minimum: number): number {
    const count = this.uvarint() - 1
    return count === -1 ? -1 : this.checkCount(count, minimum, 1)
  }

  /** `count` 32-bit integers. */
  int32s(count: number): number[] {
    const view = this.view
    const values = this.list<number>(count)
    const from = this.take(count * 4)
    for (let i = 0; i < count; i++) values[i] = view.getInt32(from + i * 4)
    return values
  }

  /** An array that will get `count` elements, one after the other. */
  list<T>(count: number): T[] {
    return count <= WHOLE_ARRAY_LENGTH ? new Array<T>(count) : []
  }

  /** The byte before a struct that may be null: -1 for null, 1 for present. */
  presence(): boolean {
    const mark = this.int8()
    if (mark === 1 || mark === -1) return mark === 1
    this.at--
    return this.fail('HG_PROTOCOL_LENGTH', `presence byte ${mark}`)
  }

  private checkCount(count: number, minimum: number, width: number): number {
    if (count < 0) this.badLength(count, width)
    if (count * minimum > this.end - this.at) {
      this.fail('HG_PROTOCOL_LENGTH', `${count} elements with ${this.end - this.at} bytes left`)
    }
    return count
  }

  private badLength(length: number, width: number): never {
    this.at -= width
    if (length === -1) this.fail('HG_PROTOCOL_NULL', 'null where none is allowed')
    return this.fail('HG_PROTOCOL_LENGTH', `negative length ${length}`)
  }

  /** Skips a section of tagged fields. */
  skipTags(): void {
    for (let left = this.uvarint(); left > 0; left--) {
      this.uvarint()
      this.skip(this.uvarint())
    }
  }

  /** A section of tagged fields of which none is known; undefined when it is empty. */
  unknownTags(): UnknownTag[] | undefined {
    const count = this.uvarint()
    if (count === 0) return undefined
    const tags: UnknownTag[] = []
    for (let left = count; left > 0; left--) tags.push(this.unknownTag(this.uvarint()))
    return tags
  }

  /** Size and content of one tagged field whose number was read already. */
  unknownTag(tag: number): UnknownTag {
    return { tag, data: this.slice(this.uvarint()) }
  }

  /** Start of a known tagged field: reads its size and returns where it must end. */
  tagEnd(): number {
    const size = this.uvarint()
    if (size > this.end - this.at) this.fail('HG_PROTOCOL_LENGTH', `tagged field of ${size} bytes`)
    return this.at + size
  }

  /** End of a known tagged field: its content must have taken exactly its size. */
  closeTag(end: number): void {
    if (this.at !== end) this.fail('HG_PROTOCOL_TAG', `tagged field ends at ${end}`)
  }

  skip(bytes: number): void {
    if (bytes > this.end - this.at) {
      this.fail('HG_PROTOCOL_LENGTH', `length ${bytes} with ${this.end - this.at} bytes left`)
    }
    this.at += bytes
  }
}
