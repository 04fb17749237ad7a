/**
 * Which of the 65,536 buckets a record belongs to; ranges of keys are intervals of buckets. The rules are public and
 * never change (docs/key-hash.md): the top 16 bits of xxHash64 of the raw key bytes, seed "Headgate" in ASCII. A fixed
 * function of its own: within a partition all keys share the producer's hash modulo the partition count.
 */
import { xxh64, xxh64High } from './xxh64.ts'

export const BUCKETS = 65_536

const SEED_HI = 0x48656164 // "Head"
const SEED_LO = 0x67617465 // "gate"

/** Odd, so that 65,536 offsets in a row meet each bucket once; near 2¹⁶/φ, so that few in a row are already spread. */
const OFFSET_STEP = 40_503

/** The part of a record that its bucket depends on; a RecordView is one. */
export interface Bucketed {
  readonly bytes: Uint8Array
  readonly offset: number
  /** -1 for a null key. */
  readonly keyStart: number
  readonly keyEnd: number
}

/** The bucket of a record: by its key, an empty one too; by its offset where the key is null. */
export function bucketOf(record: Bucketed): number {
  return record.keyStart < 0 ? bucketOfOffset(record.offset) : bucketOfKey(record.bytes, record.keyStart, record.keyEnd)
}

/** The bucket of the key `bytes[start, end)`. */
export function bucketOfKey(bytes: Uint8Array, start: number, end: number): number {
  return xxh64High(bytes, start, end, SEED_HI, SEED_LO) >>> 16
}

/** The bucket of a record without a key: (offset · 40503) mod 65536. */
export function bucketOfOffset(offset: number): number {
  return Math.imul(offset % BUCKETS, OFFSET_STEP) & 0xffff
}

/** All 64 bits of the key's hash, for tools and published vectors. */
export function keyHash(key: Uint8Array): bigint {
  return xxh64(key, 0, key.length, (BigInt(SEED_HI) << 32n) | BigInt(SEED_LO))
}

/**
 * The bucket of a point in the hash space [0, 2⁶³) of the individual-commit proposal: its top 16 bits, so that
 * [0, Long.MAX / 2] is the buckets 0 to 7fff.
 */
export function bucketOfHashSpace(point: bigint): number {
  return Number(BigInt.asUintN(63, point) >> 47n)
}
