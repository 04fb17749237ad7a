/**
 * Compressing records: for the fake broker and tests; the proxy itself writes uncompressed batches. Where a package is
 * missing, the codec's stored form is written, which every reader takes.
 */
import * as zlib from 'node:zlib'
import { type Codec, codecs } from '../batch.ts'
import { loadOptional } from '../optional.ts'
import { LZ4_MAGIC } from './lz4.ts'
import { XERIAL_HEADER_SIZE, XERIAL_MAGIC } from './snappy.ts'
import { shortXxh32 } from './xxh32.ts'
import { ZSTD_MAGIC } from './zstd.ts'

const nativeSnappy = loadOptional('snappy') as { compressSync(input: Uint8Array): Buffer } | undefined
const nativeLz4 = loadOptional('lz4-napi') as { compressFrameSync(input: Buffer): Buffer } | undefined
const nativeZstd = (zlib as unknown as { zstdCompressSync?: (input: Uint8Array) => Buffer }).zstdCompressSync

/** `bytes` in the given codec; snappy as a raw block. */
export function compress(codec: Codec, bytes: Buffer): Buffer {
  switch (codec) {
    case codecs.none:
      return bytes
    case codecs.gzip:
      return zlib.gzipSync(bytes)
    case codecs.snappy:
      return nativeSnappy?.compressSync(bytes) ?? storeSnappy(bytes)
    case codecs.lz4:
      return nativeLz4?.compressFrameSync(bytes) ?? storeLz4(bytes)
    case codecs.zstd:
      return nativeZstd?.(bytes) ?? storeZstd(bytes)
  }
}

/** Snappy in the framing of the Java library, in blocks of 32 KiB as it writes them. */
export function compressXerial(bytes: Buffer): Buffer {
  const header = Buffer.alloc(XERIAL_HEADER_SIZE)
  XERIAL_MAGIC.copy(header)
  header.writeInt32BE(1, 8)
  header.writeInt32BE(1, 12)
  const parts: Buffer[] = [header]
  for (let at = 0; at < bytes.length; at += 32 * 1024) {
    const block = compress(codecs.snappy, bytes.subarray(at, at + 32 * 1024))
    const length = Buffer.alloc(4)
    length.writeInt32BE(block.length)
    parts.push(length, block)
  }
  return Buffer.concat(parts)
}

/** One literal element; its tag says that the length follows in four bytes. */
function storeSnappy(bytes: Buffer): Buffer {
  const size: number[] = []
  for (let rest = bytes.length; ; rest >>>= 7) {
    size.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest)
    if (rest <= 0x7f) break
  }
  if (bytes.length === 0) return Buffer.from(size)
  const tag = Buffer.alloc(5)
  tag[0] = 63 << 2
  tag.writeUInt32LE(bytes.length - 1, 1)
  return Buffer.concat([Buffer.from(size), tag, bytes])
}

/** Stored blocks of 4 MiB, the largest a frame may have. */
function storeLz4(bytes: Buffer): Buffer {
  const header = Buffer.alloc(7)
  header.writeUInt32LE(LZ4_MAGIC, 0)
  header[4] = 0x60
  header[5] = 0x70
  header[6] = (shortXxh32(header.subarray(4, 6)) >>> 8) & 0xff
  const parts: Buffer[] = [header]
  const blockBytes = 4 * 1024 * 1024
  for (let at = 0; at < bytes.length; at += blockBytes) {
    const block = bytes.subarray(at, at + blockBytes)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(0x80000000 + block.length)
    parts.push(length, block)
  }
  parts.push(Buffer.alloc(4))
  return Buffer.concat(parts)
}

/** Stored blocks of 128 KiB in a frame without a content size. */
function storeZstd(bytes: Buffer): Buffer {
  const header = Buffer.alloc(6)
  header.writeUInt32LE(ZSTD_MAGIC, 0)
  header[5] = 7 << 3 // a window of 128 KiB
  const parts: Buffer[] = [header]
  const blockBytes = 128 * 1024
  for (let at = 0; ; at += blockBytes) {
    const block = bytes.subarray(at, at + blockBytes)
    const last = at + blockBytes >= bytes.length
    const blockHeader = Buffer.alloc(3)
    blockHeader.writeUIntLE((block.length << 3) | (last ? 1 : 0), 0, 3)
    parts.push(blockHeader, block)
    if (last) return Buffer.concat(parts)
  }
}
