/**
 * Headers of what lies in a `records` slice, read where they are. An entry is a v2 batch (magic 2) or one message of a
 * v0/v1 set (magic 0, 1); both begin with an offset and a length, and have the magic at byte 16.
 *
 *   magic 2:    0 base offset · 8 length · 12 leader epoch · 16 magic · 17 CRC-32C · 21 attributes · 23 last offset delta
 *               27 base timestamp · 35 max timestamp · 43 producer id · 51 epoch · 53 base sequence · 57 count · 61 records
 *   magic 0, 1: 0 offset · 8 length · 12 CRC-32 · 16 magic · 17 attributes · 18 timestamp (magic 1) · key · value
 *
 * The CRC of magic 2 covers everything from the attributes on: base offset and leader epoch may be changed freely.
 * `at` is always the position of an entry's first byte; entries must be complete (`entryEnd`) before fields are read.
 */
import { crc32, crc32c } from './crc.ts'
import { corrupt, RecordsError } from './errors.ts'

export const HEADER_SIZE = 61
/** Position of what the CRC covers, and of the length's end: `length` counts the bytes after itself. */
export const CRC_FROM = 21
export const LENGTH_END = 12

const SMALLEST_BATCH = HEADER_SIZE - LENGTH_END
const SMALLEST_MESSAGE = 14

export const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const
export type Codec = (typeof codecs)[keyof typeof codecs]

const CODEC_MASK = 0x07
const LOG_APPEND_TIME = 0x08
const TRANSACTIONAL = 0x10
const CONTROL = 0x20
const DELETE_HORIZON = 0x40

export const attributeBits = { CODEC_MASK, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON } as const

/**
 * Where the entry at `at` ends, or -1 if the slice ends inside it: a Fetch answer may end in a partial batch, which
 * consumers ignore and ask for again.
 * @throws RecordsError when the length cannot be that of a batch or message, or the magic is unknown.
 */
export function entryEnd(bytes: Buffer, at: number): number {
  const remaining = bytes.length - at
  if (remaining < LENGTH_END) return -1
  const length = bytes.readInt32BE(at + 8)
  if (length < SMALLEST_MESSAGE) throw corrupt(at, `length ${length}`)
  if (remaining > 16) {
    const magic = magicOf(bytes, at)
    if (magic > 2) throw corrupt(at, `magic ${magic}`)
    if (magic === 2 && length < SMALLEST_BATCH) throw corrupt(at, `length ${length} of a batch`)
  }
  const end = at + LENGTH_END + length
  return end > bytes.length ? -1 : end
}

/** Bytes the entry at `at` says it has, its offset and length included; 0 when the slice ends before its length. */
export function entrySize(bytes: Buffer, at: number): number {
  return bytes.length - at < LENGTH_END ? 0 : bytes.readInt32BE(at + 8) + LENGTH_END
}

export function magicOf(bytes: Buffer, at: number): number {
  return bytes[at + 16] ?? -1
}

/** Offset of the first record the batch had when it was written (compaction may have taken it out). Magic 2. */
export function baseOffsetOf(bytes: Buffer, at: number): number {
  return readLong(bytes, at, at)
}

/** Last offset of the entry, whether or not a record still has it: consumers that count batches go on one after it. */
export function lastOffsetOf(bytes: Buffer, at: number): number {
  const offset = readLong(bytes, at, at)
  return magicOf(bytes, at) < 2 ? offset : offset + lastOffsetDeltaOf(bytes, at)
}

export function lastOffsetDeltaOf(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at + 23)
}

/** Epoch of the leader that wrote the batch; -1 in magic 0 and 1, which have none. */
export function leaderEpochOf(bytes: Buffer, at: number): number {
  return magicOf(bytes, at) < 2 ? -1 : bytes.readInt32BE(at + 12)
}

/** int16 in magic 2, int8 before; the bits have the same meaning in both. */
export function attributesOf(bytes: Buffer, at: number): number {
  return magicOf(bytes, at) < 2 ? (bytes[at + 17] ?? 0) : bytes.readInt16BE(at + 21)
}

/**
 * The compression of the entry's records.
 * @throws RecordsError for a number that no codec has.
 */
export function codecOf(bytes: Buffer, at: number): Codec {
  const codec = attributesOf(bytes, at) & CODEC_MASK
  if (codec > codecs.zstd) throw new RecordsError('HG_RECORDS_CODEC', `unknown codec ${codec}`, at)
  return codec as Codec
}

/** Whether the entry holds a transaction marker (or another control record), which no application sees. */
export function isControl(bytes: Buffer, at: number): boolean {
  return magicOf(bytes, at) === 2 && (bytes.readInt16BE(at + 21) & CONTROL) !== 0
}

export function isTransactional(bytes: Buffer, at: number): boolean {
  return magicOf(bytes, at) === 2 && (bytes.readInt16BE(at + 21) & TRANSACTIONAL) !== 0
}

/** -1 for a producer that is neither idempotent nor transactional. Magic 2. */
export function producerIdOf(bytes: Buffer, at: number): number {
  return readLong(bytes, at + 43, at)
}

/** Everything a v2 header says. One object per batch: not for hot paths, which read the fields they need. */
export interface BatchHeader {
  readonly baseOffset: number
  readonly lastOffset: number
  /** Whole batch, from the base offset's first byte on. */
  readonly sizeBytes: number
  /** Epoch of the leader that appended it, -1 on the way from a producer. */
  readonly leaderEpoch: number
  readonly crc: number
  readonly codec: Codec
  /** The broker's clock: `maxTimestamp` is then the timestamp of every record, whatever the records say. */
  readonly logAppendTime: boolean
  readonly transactional: boolean
  readonly control: boolean
  /** Set by compaction (KIP-534): `baseTimestamp` is then the time from which tombstones may go. */
  readonly deleteHorizon: boolean
  readonly lastOffsetDelta: number
  readonly baseTimestamp: number
  readonly maxTimestamp: number
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly recordCount: number
}

/**
 * The header of the complete v2 batch at `at`.
 * @throws RecordsError for another magic, an unknown codec, or numbers of 2⁵³ and more.
 */
export function readHeader(bytes: Buffer, at: number): BatchHeader {
  if (magicOf(bytes, at) !== 2) throw corrupt(at, `magic ${magicOf(bytes, at)} where a v2 batch was expected`)
  const attributes = attributesOf(bytes, at)
  const baseOffset = baseOffsetOf(bytes, at)
  const lastOffsetDelta = lastOffsetDeltaOf(bytes, at)
  return {
    baseOffset,
    lastOffset: baseOffset + lastOffsetDelta,
    sizeBytes: entrySize(bytes, at),
    leaderEpoch: bytes.readInt32BE(at + 12),
    crc: bytes.readUInt32BE(at + 17),
    codec: codecOf(bytes, at),
    logAppendTime: (attributes & LOG_APPEND_TIME) !== 0,
    transactional: (attributes & TRANSACTIONAL) !== 0,
    control: (attributes & CONTROL) !== 0,
    deleteHorizon: (attributes & DELETE_HORIZON) !== 0,
    lastOffsetDelta,
    baseTimestamp: readLong(bytes, at + 27, at),
    maxTimestamp: readLong(bytes, at + 35, at),
    producerId: producerIdOf(bytes, at),
    producerEpoch: bytes.readInt16BE(at + 51),
    baseSequence: bytes.readInt32BE(at + 53),
    recordCount: bytes.readInt32BE(at + 57),
  }
}

/**
 * Checks the checksum of the complete entry [at, end), of any magic.
 * @throws RecordsError with code HG_RECORDS_CRC.
 */
export function checkCrc(bytes: Buffer, at: number, end: number): void {
  const legacy = magicOf(bytes, at) < 2
  const written = bytes.readUInt32BE(legacy ? at + 12 : at + 17)
  const computed = legacy ? crc32(bytes, at + 16, end) : crc32c(bytes, at + CRC_FROM, end)
  if (written !== computed) {
    throw new RecordsError('HG_RECORDS_CRC', `CRC is ${written.toString(16)}, bytes have ${computed.toString(16)}`, at)
  }
}

/** Sets the checksum of the complete v2 batch at `at` after a change behind byte 21. */
export function writeCrc(bytes: Buffer, at: number, end: number): void {
  bytes.writeUInt32BE(crc32c(bytes, at + CRC_FROM, end), at + 17)
}

/** Puts the complete v2 batch at `at` at its place in a log, as a leader does; the CRC does not cover these fields. */
export function placeBatch(bytes: Buffer, at: number, baseOffset: number, leaderEpoch: number): void {
  bytes.writeBigInt64BE(BigInt(baseOffset), at)
  bytes.writeInt32BE(leaderEpoch, at + 12)
}

/**
 * Calls `visit` for each complete entry in order; the position after the last one.
 * Less than `bytes.length` is left over when the slice ends in a partial batch.
 * @throws RecordsError as `entryEnd`.
 */
export function walkEntries(bytes: Buffer, visit: (at: number, end: number) => void): number {
  let at = 0
  for (;;) {
    const end = entryEnd(bytes, at)
    if (end < 0) return at
    visit(at, end)
    at = end
  }
}

/** int64 at `position` as a number; `at` names the batch in the error when it is 2⁵³ or more. */
export function readLong(bytes: Buffer, position: number, at: number): number {
  const value = bytes.readInt32BE(position) * 0x1_0000_0000 + bytes.readUInt32BE(position + 4)
  if (!Number.isSafeInteger(value)) throw corrupt(at, `int64 beyond 2^53 at byte ${position - at}`)
  return value
}
