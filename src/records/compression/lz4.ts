/**
 * lz4 frames. Header checksums are not judged: Kafka clients before 0.10 computed them over too many bytes (KIP-57), and
 * the batch's CRC covers the frame anyway. Block and content checksums are stepped over for the same reason.
 *
 *   frame: magic int32le · flags · block size · (content size int64le) · (dictionary id) · header checksum
 *          · (block length int32le, top bit: stored · block · (checksum))* · 0 · (content checksum)
 *
 * Our own decoder: faster than calling the native packages (measured), and it cannot write beyond the limit.
 */
import { copyBack } from './copy-back.ts'
import { notOfCodec, tooLarge } from './errors.ts'
import { skippableEnd } from './skippable.ts'

export const LZ4_MAGIC = 0x184d2204
const CONTENT_SIZE = 0x08
const BLOCK_CHECKSUM = 0x10
const CONTENT_CHECKSUM = 0x04
const DICTIONARY = 0x01
const STORED = 0x80000000

/** A length byte of 255 adds 255: no byte of a block gives more. */
const MAX_RATIO = 255

interface Frame {
  /** Position of the first block's length. */
  readonly blocksAt: number
  readonly end: number
  readonly blockChecksums: boolean
  /** What its blocks can hold at most: the content size where it is told, else by the number of blocks. */
  readonly mostBytes: number
}

/** @throws RecordsError when the frames are broken or hold more than `maxBytes`. */
export function inflateLz4(bytes: Buffer, maxBytes: number): Buffer {
  const frames: Frame[] = []
  for (let at = 0; at < bytes.length; ) {
    const skipped = skippableEnd('lz4', bytes, at)
    if (skipped >= 0) at = skipped
    else {
      const frame = scanFrame(bytes, at)
      frames.push(frame)
      at = frame.end
    }
  }
  if (frames.length === 0) throw notOfCodec('lz4', 'no frame')
  const mostBytes = frames.reduce((sum, frame) => sum + frame.mostBytes, 0)
  const out = Buffer.allocUnsafeSlow(Math.min(mostBytes, maxBytes))
  let position = 0
  for (const frame of frames) position = inflateFrame(bytes, frame, out, position, mostBytes > maxBytes)
  return position === out.length ? out : out.subarray(0, position)
}

/** Steps over the blocks of the frame at `at` without looking into them. */
function scanFrame(bytes: Buffer, at: number): Frame {
  if (bytes.length - at < 7 || bytes.readUInt32LE(at) !== LZ4_MAGIC) throw notOfCodec('lz4', 'no frame')
  const flags = bytes[at + 4]!
  const blockCode = (bytes[at + 5]! >>> 4) & 7
  if (flags >>> 6 !== 1 || blockCode < 4) throw notOfCodec('lz4', 'unknown frame version or block size')
  if ((flags & DICTIONARY) !== 0) throw notOfCodec('lz4', 'frame needs a dictionary')
  const blockBytes = 1 << (8 + 2 * blockCode)
  const blockChecksums = (flags & BLOCK_CHECKSUM) !== 0
  const hasSize = (flags & CONTENT_SIZE) !== 0
  const blocksAt = at + 7 + (hasSize ? 8 : 0)
  let end = blocksAt
  let mostBytes = 0
  for (;;) {
    if (end + 4 > bytes.length) throw notOfCodec('lz4', 'frame ends early')
    const word = bytes.readUInt32LE(end)
    end += 4
    if (word === 0) break
    const length = word & ~STORED
    mostBytes += word >= STORED ? length : Math.min(blockBytes, length * MAX_RATIO)
    end += length + (blockChecksums ? 4 : 0)
  }
  if ((flags & CONTENT_CHECKSUM) !== 0) end += 4
  if (end > bytes.length) throw notOfCodec('lz4', 'frame ends early')
  if (hasSize) mostBytes = Math.min(mostBytes, Number(bytes.readBigUInt64LE(at + 6)))
  return { blocksAt, end, blockChecksums, mostBytes }
}

/** Inflates one frame into `out` from `position` on; `limited` says which error a full buffer means. */
function inflateFrame(bytes: Buffer, frame: Frame, out: Buffer, position: number, limited: boolean): number {
  const overflow = () => (limited ? tooLarge('lz4', out.length) : notOfCodec('lz4', 'block is larger than it may be'))
  const first = position
  let at = frame.blocksAt
  for (;;) {
    const word = bytes.readUInt32LE(at)
    at += 4
    if (word === 0) return position
    const length = word & ~STORED
    if (word >= STORED) {
      if (length > out.length - position) throw overflow()
      position += bytes.copy(out, position, at, at + length)
    } else {
      const reached = decodeBlock(bytes, at, at + length, out, position, first)
      if (reached < 0) throw overflow()
      position = reached
    }
    at += length + (frame.blockChecksums ? 4 : 0)
  }
}

/** Decodes the block [at, end); the position reached in `out`, or -1 when it does not fit. Matches reach to `first`. */
function decodeBlock(bytes: Buffer, at: number, end: number, out: Buffer, position: number, first: number): number {
  const room = out.length
  while (at < end) {
    const token = bytes[at++]!
    let literals = token >>> 4
    if (literals === 15) {
      let byte = 255
      while (byte === 255 && at < end) literals += byte = bytes[at++]!
      if (byte === 255) throw notOfCodec('lz4', 'broken block')
    }
    if (literals > end - at) throw notOfCodec('lz4', 'broken block')
    if (literals > room - position) return -1
    if (literals > 32) bytes.copy(out, position, at, at + literals)
    else for (let i = 0; i < literals; i++) out[position + i] = bytes[at + i]!
    at += literals
    position += literals
    if (at === end) return position
    if (at + 2 > end) throw notOfCodec('lz4', 'broken block')
    const distance = bytes[at]! | (bytes[at + 1]! << 8)
    at += 2
    let length = (token & 15) + 4
    if (length === 19) {
      let byte = 255
      while (byte === 255 && at < end) length += byte = bytes[at++]!
      if (byte === 255) throw notOfCodec('lz4', 'broken block')
    }
    if (distance === 0 || distance > position - first) throw notOfCodec('lz4', 'match before the start')
    if (length > room - position) return -1
    position = copyBack(out, position, distance, length)
  }
  return position
}
