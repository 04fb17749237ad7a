/**
 * Cuts one direction of a connection into Kafka frames (int32 size, then that many bytes).
 *
 * All readers share one scratch buffer: whatever is not consumed when `onData` returns is copied out, so an idle
 * connection owns no buffer. A frame that fits into one chunk reaches the sink whole; a longer one is streamed in chunks,
 * or gathered if the sink asks for that. Invariant between calls: either nothing is held (`frame` is undefined), or
 * `frame` holds the first `have` bytes of exactly one frame.
 */
import { CHUNK_BYTES, type ChunkPool } from './chunk-pool.ts'

const SCRATCH_BYTES = 64 * 1024
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
/** Below this, a split frame gets a buffer of its own size instead of a chunk. */
const SMALL_BYTES = 16 * 1024
/** Size, api key, version, correlation id and the length of the client id: what "the header" of the time-outs means. */
const HEADER_BYTES = 14

export interface FrameSink {
  /** A whole frame in `bytes[at, at + total)`, size field included. The bytes are lent: gone when this returns. */
  onFrame(bytes: Buffer, at: number, total: number): void
  /** A whole frame at the start of a buffer that is now the sink's; a pooled chunk is given back by `ChunkPool.give`. */
  onOwnedFrame(buffer: Buffer, total: number): void
  /** A frame longer than a chunk has begun; its first chunk is here to look at. What is to be done with the frame? */
  onLongFrame(head: Buffer, total: number): 'stream' | 'gather' | 'stop'
  /** The next `length` bytes of a streamed frame, in a chunk that is now the sink's. */
  onChunk(chunk: Buffer, length: number, last: boolean): void
  /** The size field of a frame, before anything else of it is looked at. False: stop reading (the sink closes). */
  onSize(size: number, first: Buffer, at: number, available: number): boolean
}

export class FrameReader {
  /** When the first byte of an incomplete frame came, and the latest one; 0 where nothing is incomplete. Milliseconds. */
  partialSince = 0
  lastByteAt = 0
  /** The size of the incomplete frame is not known yet. */
  private sizing = false
  private frame: Buffer | undefined
  private have = 0
  private total = 0
  private streaming = false
  /** Bytes of a streamed frame that are still to come, the open chunk's included. */
  private left = 0
  private stopped = false
  private readonly sink: FrameSink
  private readonly pool: ChunkPool

  constructor(sink: FrameSink, pool: ChunkPool) {
    this.sink = sink
    this.pool = pool
  }

  /** A frame has begun and not even its header is here, for which there is a time-out of its own. */
  get waitsForHeader(): boolean {
    return this.frame !== undefined && !this.streaming && (this.sizing || this.have < HEADER_BYTES)
  }

  get incomplete(): boolean {
    return this.frame !== undefined
  }

  /** Nothing was read for `ms` because we paused: the times move on by as much. */
  shift(ms: number): void {
    if (this.partialSince !== 0) this.partialSince += ms
    this.lastByteAt += ms
  }

  /** Stops for good: whatever arrives from now on is dropped. */
  stop(): void {
    this.stopped = true
    this.frame = undefined
  }

  buffer(): Uint8Array {
    if (this.frame === undefined) return scratch
    return this.frame.subarray(this.have, this.openEnd())
  }

  /** @param now milliseconds on the runtime's clock */
  onData(length: number, now: number): void {
    if (this.stopped) return
    this.lastByteAt = now
    if (this.frame === undefined) this.cut(scratch, 0, length)
    else {
      this.have += length
      if (this.have === this.openEnd()) this.filled(this.frame)
    }
    if (this.frame === undefined) this.partialSince = 0
    else if (this.partialSince === 0) this.partialSince = now
  }

  private openEnd(): number {
    return this.streaming ? Math.min(CHUNK_BYTES, this.left) : this.total
  }

  /** Whole frames at the front of the scratch buffer go to the sink; what is left is copied out. */
  private cut(bytes: Buffer, from: number, end: number): void {
    let at = from
    while (end - at >= 4) {
      const size = bytes.readInt32BE(at)
      if (!this.sink.onSize(size, bytes, at, end - at)) return this.stop()
      const total = size + 4
      if (total > end - at) return this.open(total, bytes, at, end)
      this.sink.onFrame(bytes, at, total)
      if (this.stopped) return
      at += total
    }
    if (at < end) this.openUnsized(bytes, at, end)
  }

  private openUnsized(bytes: Buffer, at: number, end: number): void {
    this.frame = Buffer.allocUnsafe(4)
    this.total = 4
    this.sizing = true
    this.have = bytes.copy(this.frame, 0, at, end)
  }

  private open(total: number, bytes: Buffer, at: number, end: number): void {
    this.sizing = false
    this.total = total
    this.frame = total <= SMALL_BYTES ? Buffer.allocUnsafe(total) : this.pool.take()
    if (total > CHUNK_BYTES) this.total = CHUNK_BYTES // until the sink has seen the first chunk
    this.left = total
    this.have = bytes.copy(this.frame, 0, at, end)
  }

  private filled(frame: Buffer): void {
    if (this.sizing) this.sized(frame)
    else if (this.streaming) this.chunkFilled(frame)
    else if (this.left > this.total) this.longFrame(frame)
    else {
      this.close()
      this.sink.onOwnedFrame(frame, this.total)
    }
  }

  private sized(four: Buffer): void {
    const size = four.readInt32BE(0)
    if (!this.sink.onSize(size, four, 0, 4)) return this.stop()
    this.open(size + 4, four, 0, 4)
  }

  private longFrame(first: Buffer): void {
    const total = this.left
    const way = this.sink.onLongFrame(first, total)
    if (way === 'stop') return this.stop()
    if (way === 'stream') {
      this.streaming = true
      this.chunkFilled(first)
      return
    }
    this.frame = Buffer.allocUnsafeSlow(total)
    this.total = total
    first.copy(this.frame, 0, 0, this.have)
    this.pool.give(first)
  }

  private chunkFilled(chunk: Buffer): void {
    const length = this.have
    this.left -= length
    const last = this.left === 0
    if (last) this.close()
    else {
      this.frame = this.pool.take()
      this.have = 0
    }
    this.sink.onChunk(chunk, length, last)
  }

  private close(): void {
    this.frame = undefined
    this.streaming = false
    this.have = 0
  }
}
