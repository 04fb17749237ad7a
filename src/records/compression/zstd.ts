/**
 * zstd frames, with or without a content size (Java's stream writer leaves it out). node:zlib inflates where it can
 * (Node ≥ 22.15), fzstd otherwise. Both are given one frame at a time, whose blocks were walked before: so its largest
 * possible size is known, and neither package sees a frame that ends early.
 *
 *   frame: magic int32le · descriptor · (window) · (dictionary id) · (content size)
 *          · (block header int24le: last, type, size · block)* · (checksum)
 */
import * as zlib from 'node:zlib'
import * as fzstd from 'fzstd'
import { RecordsError } from '../errors.ts'
import { notOfCodec, tooLarge } from './errors.ts'
import { skippableEnd } from './skippable.ts'

type ZstdSync = (input: Uint8Array, options: { maxOutputLength: number; chunkSize: number }) => Buffer

export const ZSTD_MAGIC = 0xfd2fb528
const MAX_BLOCK = 128 * 1024
/** What the reference library agrees to without being asked, and with it every client. */
const MAX_WINDOW = 2 ** 27
/** What is given to zlib as `chunkSize` at least (it insists on 64), and at most on the word of a header. */
const MIN_CHUNK = 1024
const MAX_CHUNK = 1024 * 1024
const USUAL_RATIO = 4
const SINGLE_SEGMENT = 0x20
const CHECKSUM = 0x04

const builtIn =
  process.env['HEADGATE_NATIVE'] === 'off'
    ? undefined
    : (zlib as unknown as { zstdDecompressSync?: ZstdSync }).zstdDecompressSync

interface Frame {
  readonly start: number
  readonly end: number
  /** Position of the first block header. */
  readonly blocksAt: number
  readonly checksum: boolean
  /** -1 when the frame does not tell it. */
  readonly contentBytes: number
  readonly windowBytes: number
  /** What its blocks can hold at most. */
  readonly mostBytes: number
}

/** @throws RecordsError when the frames are broken or hold more than `maxBytes`. */
export function inflateZstd(bytes: Buffer, maxBytes: number): Buffer {
  const parts: Uint8Array[] = []
  let total = 0
  for (let at = 0; at < bytes.length; ) {
    const skipped = skippableEnd('zstd', bytes, at)
    if (skipped >= 0) {
      at = skipped
      continue
    }
    const frame = scanFrame(bytes, at)
    const part = inflateFrame(bytes, frame, maxBytes - total)
    total += part.length
    parts.push(part)
    at = frame.end
  }
  if (parts.length === 0) throw notOfCodec('zstd', 'no frame')
  if (parts.length > 1) return Buffer.concat(parts, total)
  const only = parts[0]!
  return Buffer.from(only.buffer, only.byteOffset, only.length)
}

/** Reads the header of the frame at `at` and steps over its blocks. */
function scanFrame(bytes: Buffer, at: number): Frame {
  if (bytes.length - at < 6 || bytes.readUInt32LE(at) !== ZSTD_MAGIC) throw notOfCodec('zstd', 'no frame')
  const descriptor = bytes[at + 4]!
  if ((descriptor & 0x08) !== 0) throw notOfCodec('zstd', 'reserved bit in the frame header')
  if ((descriptor & 3) !== 0) throw notOfCodec('zstd', 'frame needs a dictionary')
  const single = (descriptor & SINGLE_SEGMENT) !== 0
  const sizeCode = descriptor >>> 6
  const sizeBytes = sizeCode === 0 ? (single ? 1 : 0) : 1 << sizeCode
  const blocksAt = at + (single ? 5 : 6) + sizeBytes
  if (blocksAt > bytes.length) throw notOfCodec('zstd', 'frame ends early')
  const contentBytes = contentSize(bytes, blocksAt - sizeBytes, sizeBytes)
  const windowBytes = single ? contentBytes : windowSize(bytes[at + 5]!)
  if (!single && windowBytes > MAX_WINDOW) throw notOfCodec('zstd', `window of ${windowBytes} bytes`)
  const checksum = (descriptor & CHECKSUM) !== 0
  const { end, mostBytes } = scanBlocks(bytes, blocksAt, Math.min(windowBytes, MAX_BLOCK))
  const frameEnd = end + (checksum ? 4 : 0)
  if (frameEnd > bytes.length) throw notOfCodec('zstd', 'frame ends early')
  if (contentBytes > mostBytes) throw notOfCodec('zstd', `blocks cannot hold ${contentBytes} bytes`)
  return { start: at, end: frameEnd, blocksAt, checksum, contentBytes, windowBytes, mostBytes }
}

function scanBlocks(bytes: Buffer, at: number, blockLimit: number): { end: number; mostBytes: number } {
  let mostBytes = 0
  for (;;) {
    if (at + 3 > bytes.length) throw notOfCodec('zstd', 'frame ends early')
    const header = bytes.readUIntLE(at, 3)
    const type = (header >>> 1) & 3
    const size = header >>> 3
    if (type === 3 || size > MAX_BLOCK) throw notOfCodec('zstd', 'broken block header')
    at += 3 + (type === 1 ? 1 : size)
    mostBytes += type === 2 ? blockLimit : size
    if (at > bytes.length) throw notOfCodec('zstd', 'frame ends early')
    if ((header & 1) !== 0) return { end: at, mostBytes }
  }
}

function contentSize(bytes: Buffer, at: number, sizeBytes: number): number {
  switch (sizeBytes) {
    case 0:
      return -1
    case 1:
      return bytes[at]!
    case 2:
      return bytes.readUInt16LE(at) + 256
    case 4:
      return bytes.readUInt32LE(at)
    default:
      return Number(bytes.readBigUInt64LE(at))
  }
}

function windowSize(code: number): number {
  const base = 2 ** (10 + (code >>> 3))
  return base + (base / 8) * (code & 7)
}

function inflateFrame(bytes: Buffer, frame: Frame, maxBytes: number): Uint8Array {
  if (frame.contentBytes > maxBytes) throw tooLarge('zstd', maxBytes)
  try {
    const input = bytes.subarray(frame.start, frame.end)
    if (builtIn !== undefined)
      return builtIn(input, { maxOutputLength: Math.max(maxBytes, 1), chunkSize: chunkSize(frame) })
    return frame.contentBytes >= 0 ? fzstd.decompress(input) : inflateStream(bytes, frame, maxBytes)
  } catch (error) {
    if (error instanceof RecordsError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge('zstd', maxBytes)
    throw notOfCodec('zstd', error)
  }
}

/**
 * How much node:zlib inflates at a time: the whole frame where it is of a usual size, for pieces of its usual 16 KiB cost
 * a fifth more in all. One byte too many, or it would make room for the next piece. Java does not tell the size: then
 * in proportion to the input, so that small batches cost little.
 */
function chunkSize({ start, end, contentBytes, mostBytes }: Frame): number {
  const expected = contentBytes >= 0 ? contentBytes : Math.min(mostBytes, USUAL_RATIO * (end - start))
  return Math.max(MIN_CHUNK, Math.min(expected + 1, MAX_CHUNK))
}

/**
 * fzstd on a frame of unknown size, block by block. It allocates the window that the header asks for and moves it once
 * per block, so it gets a header with the smallest window that the blocks can fill: Java asks for 2 MiB, a hostile
 * sender for 128.
 */
function inflateStream(bytes: Buffer, frame: Frame, maxBytes: number): Uint8Array {
  const parts: Uint8Array[] = []
  let total = 0
  const stream = new fzstd.Decompress((chunk) => {
    total += chunk.length
    if (total > maxBytes) throw tooLarge('zstd', maxBytes)
    parts.push(chunk)
  })
  const header = Buffer.alloc(6)
  header.writeUInt32LE(ZSTD_MAGIC, 0)
  header[4] = frame.checksum ? CHECKSUM : 0
  header[5] = windowCode(Math.min(frame.windowBytes, Math.max(frame.mostBytes, MAX_BLOCK)))
  stream.push(Buffer.concat([header, bytes.subarray(frame.blocksAt, frame.end)]), true)
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, total)
}

/** The code of the smallest window of at least `bytes`. */
function windowCode(bytes: number): number {
  let code = 0
  while (windowSize(code) < bytes) code++
  return code
}
