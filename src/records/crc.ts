/**
 * The two checksums of record formats: CRC-32C (Castagnoli) of magic 2, CRC-32 (IEEE) of magic 0 and 1 and of
 * librdkafka's partitioner. Long inputs go to @node-rs/crc32 where it is installed, the rest through slicing-by-16.
 */
import { loadOptional } from './optional.ts'

type Native = (input: Uint8Array) => number

/** Calling native code costs more than it saves below this many bytes. */
const NATIVE_FROM_BYTES = 128

const native = loadOptional('@node-rs/crc32') as { crc32: Native; crc32c: Native } | undefined

const castagnoli = sixteenTables(0x82f63b78)
const ieee = sixteenTables(0xedb88320)

/** CRC-32C of `bytes[start, end)`, unsigned. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  if (native !== undefined && end - start >= NATIVE_FROM_BYTES) return native.crc32c(bytes.subarray(start, end)) >>> 0
  return sliceBySixteen(castagnoli, bytes, start, end)
}

/** CRC-32 (the one of zlib) of `bytes[start, end)`, unsigned. */
export function crc32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  if (native !== undefined && end - start >= NATIVE_FROM_BYTES) return native.crc32(bytes.subarray(start, end)) >>> 0
  return sliceBySixteen(ieee, bytes, start, end)
}

/** Table t (of 256 entries each, one after the other) advances a byte over t further zero bytes. */
function sixteenTables(reflectedPolynomial: number): Uint32Array {
  const tables = new Uint32Array(16 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ reflectedPolynomial : crc >>> 1
    tables[byte] = crc
  }
  for (let i = 256; i < tables.length; i++) {
    const previous = tables[i - 256] ?? 0
    tables[i] = (previous >>> 8) ^ (tables[previous & 0xff] ?? 0)
  }
  return tables
}

function sliceBySixteen(tables: Uint32Array, bytes: Uint8Array, start: number, end: number): number {
  // Indexes below are within the table by their masks and within the input by the loop's bound: `!` costs nothing.
  const t = tables
  const b = bytes
  let crc = -1
  let i = start
  for (const last = end - 16; i <= last; i += 16) {
    crc ^= b[i]! | (b[i + 1]! << 8) | (b[i + 2]! << 16) | (b[i + 3]! << 24)
    crc =
      t[3840 + (crc & 0xff)]! ^
      t[3584 + ((crc >>> 8) & 0xff)]! ^
      t[3328 + ((crc >>> 16) & 0xff)]! ^
      t[3072 + (crc >>> 24)]! ^
      t[2816 + b[i + 4]!]! ^
      t[2560 + b[i + 5]!]! ^
      t[2304 + b[i + 6]!]! ^
      t[2048 + b[i + 7]!]! ^
      t[1792 + b[i + 8]!]! ^
      t[1536 + b[i + 9]!]! ^
      t[1280 + b[i + 10]!]! ^
      t[1024 + b[i + 11]!]! ^
      t[768 + b[i + 12]!]! ^
      t[512 + b[i + 13]!]! ^
      t[256 + b[i + 14]!]! ^
      t[b[i + 15]!]!
  }
  for (; i < end; i++) crc = (crc >>> 8) ^ t[(crc ^ b[i]!) & 0xff]!
  return ~crc >>> 0
}
