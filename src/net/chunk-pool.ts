/**
 * Buffers of one size, reused: a fresh 256 KiB buffer costs 64 page faults, which is most of what a slow proxy does.
 * 64 KiB chunks cost 15 to 25 % of the throughput; 256 KiB is near whole frames.
 */

/** Longest frame that is read whole without being asked for, in bytes. */
export const CHUNK_BYTES = 256 * 1024

export class ChunkPool {
  private readonly free: Buffer[] = []
  private readonly kept: number

  /** @param kept how many unused chunks are kept for later */
  constructor(kept = 32) {
    this.kept = kept
  }

  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
  }

  /** Takes a chunk back; other buffers are left to the garbage collector, so that callers need not know the difference. */
  give(buffer: Buffer): void {
    if (buffer.length === CHUNK_BYTES && this.free.length < this.kept) this.free.push(buffer)
  }

  get unused(): number {
    return this.free.length
  }
}
