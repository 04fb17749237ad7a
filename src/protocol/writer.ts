/**
 * Writes Kafka's primitive types into a buffer that doubles when it is full, so that the bytes are copied a bounded
 * number of times. A value that its type cannot hold is a ProtocolError, never silently cut.
 */
import { ProtocolError } from './errors.ts'
import type { UnknownTag } from './reader.ts'
import { isUuid, zeroUuid } from './uuid.ts'

/** Strings up to this many characters are written in JavaScript when they are ASCII. */
const SHORT_STRING_CHARS = 24

/** Below this size the buffer grows fourfold. */
const QUICK_GROWTH_BYTES = 65536

export class Writer {
  buffer: Buffer
  view: DataView
  /** Next byte to write; everything before it is the message so far. */
  at: number

  constructor(capacity = 512) {
    this.buffer = Buffer.allocUnsafe(capacity)
    this.view = new DataView(this.buffer.buffer, this.buffer.byteOffset, this.buffer.length)
    this.at = 0
  }

  /** What was written, as a slice: valid until the next write after {@link reset}. */
  finish(): Buffer {
    return this.buffer.subarray(0, this.at)
  }

  /** Forgets what was written and keeps the buffer. */
  reset(): void {
    this.at = 0
  }

  /** Claims `bytes` bytes and returns the position of the first. */
  take(bytes: number): number {
    const from = this.at
    const to = from + bytes
    if (to > this.buffer.length) this.grow(to)
    this.at = to
    return from
  }

  private grow(needed: number): void {
    const factor = this.buffer.length < QUICK_GROWTH_BYTES ? 4 : 2
    const next = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * factor))
    this.buffer.copy(next, 0, 0, this.at)
    this.buffer = next
    this.view = new DataView(next.buffer, next.byteOffset, next.length)
  }

  /** Throws a ProtocolError for a value that cannot be written. */
  fail(detail: string): never {
    throw new ProtocolError('HG_PROTOCOL_VALUE', detail, this.at)
  }

  /** A field that this version does not carry holds something that must not be lost. */
  unsupported(field: string, version: number): never {
    throw new ProtocolError('HG_PROTOCOL_VALUE', `version ${version} has no ${field}`, this.at, field)
  }

  /** Null in a field that may not be null in this version. */
  nullIn(field: string, version: number): never {
    throw new ProtocolError('HG_PROTOCOL_VALUE', `version ${version} allows no null in ${field}`, this.at, field)
  }

  int8(value: number): void {
    this.int8At(this.take(1), value)
  }

  bool(value: boolean): void {
    const at = this.take(1) // before the view: taking may move the buffer
    this.view.setUint8(at, value ? 1 : 0)
  }

  int16(value: number): void {
    this.int16At(this.take(2), value)
  }

  uint16(value: number): void {
    this.uint16At(this.take(2), value)
  }

  int32(value: number): void {
    this.int32At(this.take(4), value)
  }

  uint32(value: number): void {
    this.uint32At(this.take(4), value)
  }

  /** The elements of an array, without its count. */
  int32s(values: readonly number[]): void {
    let at = this.take(values.length * 4)
    for (const value of values) {
      this.int32At(at, value)
      at += 4
    }
  }

  int8At(at: number, value: number): void {
    if ((value << 24) >> 24 !== value) this.fail(`${value} is no int8`)
    this.view.setInt8(at, value)
  }

  int16At(at: number, value: number): void {
    if ((value << 16) >> 16 !== value) this.fail(`${value} is no int16`)
    this.view.setInt16(at, value)
  }

  uint16At(at: number, value: number): void {
    if ((value & 0xffff) !== value) this.fail(`${value} is no uint16`)
    this.view.setUint16(at, value)
  }

  int32At(at: number, value: number): void {
    if ((value | 0) !== value) this.fail(`${value} is no int32`)
    this.view.setInt32(at, value)
  }

  uint32At(at: number, value: number): void {
    if (value >>> 0 !== value) this.fail(`${value} is no uint32`)
    this.view.setUint32(at, value)
  }

  float64(value: number): void {
    const at = this.take(8) // before the view: taking may move the buffer
    this.view.setFloat64(at, value)
  }

  int64(value: number): void {
    this.int64At(this.take(8), value)
  }

  /** As {@link int64}, at a position whose eight bytes were claimed before. */
  int64At(at: number, value: number): void {
    if (!Number.isSafeInteger(value)) this.fail(`${value} is not an exact 64-bit integer`)
    this.view.setInt32(at, Math.floor(value / 0x1_0000_0000))
    this.view.setUint32(at + 4, value >>> 0)
  }

  bigint64(value: bigint): void {
    const at = this.take(8) // before the view: taking may move the buffer
    this.view.setBigInt64(at, value)
  }

  uuid(value: string): void {
    this.uuidAt(this.take(16), value)
  }

  /** As {@link uuid}, at a position whose sixteen bytes were claimed before. */
  uuidAt(at: number, value: string): void {
    if (value === zeroUuid) {
      this.buffer.fill(0, at, at + 16)
      return
    }
    if (!isUuid(value)) this.fail(`'${value}' is not a UUID`)
    this.buffer.write(value, at, 16, 'base64url')
  }

  uvarint(value: number): void {
    if (value < 0x80) {
      const at = this.take(1)
      this.view.setUint8(at, value)
      return
    }
    let at = this.take(uvarintSize(value))
    let rest = value >>> 0
    while (rest >= 0x80) {
      this.view.setUint8(at++, (rest & 0x7f) | 0x80)
      rest >>>= 7
    }
    this.view.setUint8(at, rest)
  }

  varint(value: number): void {
    this.uvarint(((value << 1) ^ (value >> 31)) >>> 0)
  }

  string(value: string): void {
    const length = value.length
    if (length <= SHORT_STRING_CHARS) {
      const at = this.take(2 + length)
      if (this.ascii(value, at + 2)) {
        this.view.setInt16(at, length)
        return
      }
      this.at = at
    }
    const bytes = this.textBytes(value)
    const at = this.take(2 + bytes)
    this.view.setInt16(at, bytes)
    this.buffer.write(value, at + 2, bytes, 'utf8')
  }

  nullableString(value: string | null): void {
    if (value === null) this.int16(-1)
    else this.string(value)
  }

  compactString(value: string): void {
    const length = value.length
    if (length <= SHORT_STRING_CHARS) {
      const at = this.take(1 + length)
      if (this.ascii(value, at + 1)) {
        this.view.setUint8(at, length + 1)
        return
      }
      this.at = at
    }
    const bytes = this.textBytes(value)
    this.uvarint(bytes + 1)
    const at = this.take(bytes)
    this.buffer.write(value, at, bytes, 'utf8')
  }

  compactNullableString(value: string | null): void {
    if (value === null) this.uvarint(0)
    else this.compactString(value)
  }

  private ascii(value: string, at: number): boolean {
    const view = this.view
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i)
      if (code > 0x7f) return false
      view.setUint8(at + i, code)
    }
    return true
  }

  private textBytes(value: string): number {
    const bytes = Buffer.byteLength(value)
    if (bytes > 0x7fff) this.fail(`string of ${bytes} bytes, at most 32767 fit`)
    return bytes
  }

  bytes(value: Uint8Array): void {
    this.int32(value.length)
    this.raw(value)
  }

  nullableBytes(value: Uint8Array | null): void {
    if (value === null) this.int32(-1)
    else this.bytes(value)
  }

  compactBytes(value: Uint8Array): void {
    this.uvarint(value.length + 1)
    this.raw(value)
  }

  compactNullableBytes(value: Uint8Array | null): void {
    if (value === null) this.uvarint(0)
    else this.compactBytes(value)
  }

  /** Bytes as they are, without a length. */
  raw(value: Uint8Array): void {
    const at = this.take(value.length)
    this.buffer.set(value, at)
  }

  /** A section of tagged fields of which none has a definition. */
  unknownTags(tags: readonly UnknownTag[] | undefined): void {
    if (tags === undefined) {
      this.uvarint(0)
      return
    }
    this.uvarint(tags.length)
    for (const tag of tags) this.unknownTag(tag)
  }

  /** Refuses unknown tags in a version that has no room for any. */
  noTags(tags: readonly UnknownTag[], version: number): void {
    if (tags.length > 0) this.unsupported('unknownTags', version)
  }

  unknownTag(tag: UnknownTag): void {
    this.uvarint(tag.tag)
    this.uvarint(tag.data.length)
    this.raw(tag.data)
  }

  /** Writes the unknown tags from index `next` on whose number is below `below`; returns the first index not written. */
  tagsBelow(tags: readonly UnknownTag[] | undefined, next: number, below: number): number {
    if (tags === undefined) return next
    for (; next < tags.length; next++) {
      const tag = tags[next]
      if (tag === undefined || tag.tag >= below) return next
      this.unknownTag(tag)
    }
    return next
  }

  /** Opens a known tagged field: its size is filled in by {@link closeTag}, which gets the returned position. */
  openTag(tag: number): number {
    this.uvarint(tag)
    return this.take(1) + 1
  }

  /** Fills in the size of the tagged field whose content starts at `from`, moving it when the size needs more bytes. */
  closeTag(from: number): void {
    const size = this.at - from
    const width = uvarintSize(size)
    if (width > 1) {
      this.take(width - 1)
      this.buffer.copyWithin(from + width - 1, from, from + size)
    }
    const end = this.at
    this.at = from - 1
    this.uvarint(size)
    this.at = end
  }
}

/** Bytes that `value` (below 2³²) takes as an unsigned varint. */
export function uvarintSize(value: number): number {
  return value < 0x80 ? 1 : Math.ceil((32 - Math.clz32(value)) / 7)
}
