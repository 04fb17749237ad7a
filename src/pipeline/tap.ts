/**
 * Where somebody may listen to the frames that pass (`headgate inspect`). Without a listener it costs one look per
 * frame; with one, each frame that it wants is copied for it, whole or as far as it is in memory.
 */
import type { Exchange } from './exchange.ts'

/** A frame as the client sent it, or as it gets it. */
export interface TappedFrame {
  readonly direction: 'request' | 'response'
  readonly exchange: Exchange
  /** The frame from its size field on; cut off where it is longer than a chunk. */
  readonly bytes: Buffer
  /** Length of the whole frame. */
  readonly total: number
  /** From the request's arrival to the answer, in milliseconds; 0 for a request. */
  readonly latencyMs: number
}

export interface TapListener {
  wants(exchange: Exchange): boolean
  onFrame(frame: TappedFrame): void
}

export class Tap {
  private readonly listeners = new Set<TapListener>()

  get active(): boolean {
    return this.listeners.size > 0
  }

  /** @returns how to stop listening */
  listen(listener: TapListener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /** @param end of the bytes at hand, which may be only the beginning of the frame */
  request(exchange: Exchange, bytes: Buffer, at: number, end: number): void {
    this.tell('request', exchange, bytes, at, end, exchange.requestBytes, 0)
  }

  response(exchange: Exchange, bytes: Buffer, at: number, end: number): void {
    const latencyMs = exchange.connection.context.runtime.now() - exchange.receivedAt
    this.tell('response', exchange, bytes, at, end, exchange.responseBytes, latencyMs)
  }

  private tell(
    direction: TappedFrame['direction'],
    exchange: Exchange,
    bytes: Buffer,
    at: number,
    end: number,
    total: number,
    latencyMs: number,
  ): void {
    for (const listener of this.listeners) {
      if (!listener.wants(exchange)) continue
      listener.onFrame({ direction, exchange, bytes: Buffer.from(bytes.subarray(at, end)), total, latencyMs })
    }
  }
}
