/**
 * Snappy as Kafka has it: a raw block (librdkafka, franz-go, …), or the xerial framing of the Java library: a header of
 * 16 bytes, then raw blocks, each behind its length. Our own decoder: faster than calling the native packages (measured), and it
 * cannot write beyond the size it was given.
 */
import { type RecordsError } from '../errors.ts'
import { copyBack } from './copy-back.ts'
import { notOfCodec, tooLarge } from './errors.ts'

export const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
export const XERIAL_HEADER_SIZE = 16

/** A copy of 3 bytes gives at most 64: what says more than this per byte is not a block. */
const MAX_RATIO = 22

/** @throws RecordsError when the blocks are broken or hold more than `maxBytes`. */
export function inflateSnappy(bytes: Buffer, maxBytes: number): Buffer {
  const framed = bytes.length >= XERIAL_HEADER_SIZE && bytes.subarray(0, 8).equals(XERIAL_MAGIC)
  return framed ? inflateXerial(bytes, maxBytes) : inflateBlock(bytes, 0, bytes.length, maxBytes)
}

function inflateXerial(bytes: Buffer, maxBytes: number): Buffer {
  const blocks: Buffer[] = []
  let total = 0
  for (let at = XERIAL_HEADER_SIZE; at < bytes.length; ) {
    if (bytes.length - at < 4) throw notOfCodec('snappy', 'frame ends inside a block length')
    const length = bytes.readInt32BE(at)
    at += 4
    // A stream that was flushed and written on may hold the header again: skip what cannot be a length.
    if (length < 0 || length > bytes.length - at) {
      if (bytes.length - at < 12 || !bytes.subarray(at - 4, at + 4).equals(XERIAL_MAGIC)) {
        throw notOfCodec('snappy', `block of ${length} bytes`)
      }
      at += XERIAL_HEADER_SIZE - 4
      continue
    }
    const block = inflateBlock(bytes, at, at + length, maxBytes - total)
    total += block.length
    blocks.push(block)
    at += length
  }
  return blocks.length === 1 ? blocks[0]! : Buffer.concat(blocks, total)
}

function inflateBlock(bytes: Buffer, start: number, end: number, maxBytes: number): Buffer {
  let size = 0
  let at = start
  for (let shift = 0; ; shift += 7) {
    if (at >= end || shift > 28) throw notOfCodec('snappy', 'block without a size')
    const byte = bytes[at++]!
    size += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  if (size > (end - at) * MAX_RATIO) throw notOfCodec('snappy', `${end - at} bytes say they are ${size}`)
  if (size > maxBytes) throw tooLarge('snappy', maxBytes)
  const out = Buffer.allocUnsafeSlow(size)
  if (decodeElements(bytes, at, end, out) !== size) throw notOfCodec('snappy', 'block is shorter than it says')
  return out
}

/** Decodes literals and copies into `out`; the position reached in it. Never writes beyond its end. */
function decodeElements(bytes: Buffer, at: number, end: number, out: Buffer): number {
  let position = 0
  while (at < end) {
    const tag = bytes[at++]!
    let length: number
    let distance: number
    switch (tag & 3) {
      case 0: {
        length = (tag >>> 2) + 1
        if (length > 60) {
          const extra = length - 60
          if (at + extra > end) throw broken()
          length = bytes.readUIntLE(at, extra) + 1
          at += extra
        }
        if (length > end - at || length > out.length - position) throw broken()
        bytes.copy(out, position, at, at + length)
        at += length
        position += length
        continue
      }
      case 1:
        if (at + 1 > end) throw broken()
        length = ((tag >>> 2) & 7) + 4
        distance = ((tag >>> 5) << 8) | bytes[at++]!
        break
      case 2:
        if (at + 2 > end) throw broken()
        length = (tag >>> 2) + 1
        distance = bytes.readUInt16LE(at)
        at += 2
        break
      default:
        if (at + 4 > end) throw broken()
        length = (tag >>> 2) + 1
        distance = bytes.readUInt32LE(at)
        at += 4
    }
    if (distance === 0 || distance > position || length > out.length - position) throw broken()
    position = copyBack(out, position, distance, length)
  }
  return position
}

function broken(): RecordsError {
  return notOfCodec('snappy', 'broken block')
}
