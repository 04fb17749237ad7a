/** A broker connection of our own: requests and their answers, one after the other, without any client behind it. */
import { requestFrameOf } from '../protocol/encode.ts'
import { peekResponseBodyStart } from '../protocol/peek.ts'
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { DialOptions, Socket, SocketHandler } from '../runtime/socket.ts'
import type { ChunkPool } from './chunk-pool.ts'
import { FrameReader, type FrameSink } from './frame-reader.ts'
import { Ring } from './ring.ts'

/** Longest answer to a request of our own, in bytes. */
const ANSWER_BYTES_MAX = 100 * 1024 * 1024

export interface LinkOptions extends DialOptions {
  readonly clientId: string | null
}

/** An answer; the body is `bytes[bodyAt, bytes.length)`. */
export interface LinkReply {
  readonly bytes: Buffer
  readonly bodyAt: number
}

interface Pending {
  readonly id: number
  readonly apiKey: number
  readonly apiVersion: number
  readonly timer: Timer
  resolve(reply: LinkReply): void
  reject(error: Error): void
}

export class RequestLink implements SocketHandler, FrameSink {
  private readonly runtime: Runtime
  private readonly reader: FrameReader
  private readonly pool: ChunkPool
  private readonly clientId: string | null
  private readonly pending = new Ring<Pending>()
  private readonly socket: Socket
  private readonly where: string
  private lastId = 0
  private opened: { resolve(link: RequestLink): void; reject(error: Error): void } | undefined
  private failure: Error | undefined

  /** Dials; rejects with the system's error. */
  static open(runtime: Runtime, pool: ChunkPool, options: LinkOptions): Promise<RequestLink> {
    return new Promise((resolve, reject) => new RequestLink(runtime, pool, options, { resolve, reject }))
  }

  private constructor(runtime: Runtime, pool: ChunkPool, options: LinkOptions, opened: RequestLink['opened']) {
    this.runtime = runtime
    this.pool = pool
    this.clientId = options.clientId
    this.where = `${options.host}:${options.port}`
    this.opened = opened
    this.reader = new FrameReader(this, pool)
    this.socket = runtime.dial(options, this)
  }

  get closed(): boolean {
    return this.failure !== undefined
  }

  /**
   * Sends a request and waits for its answer.
   * @param body the encoded request without header
   * @throws Error when the connection closes or `timeoutMs` passes; the connection is closed then, as its order is lost
   */
  request(apiKey: number, apiVersion: number, body: Buffer, timeoutMs: number): Promise<LinkReply> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    return new Promise((resolve, reject) => {
      const id = (this.lastId = (this.lastId + 1) & 0x7fffffff)
      const timer = this.runtime.timer(timeoutMs, () =>
        this.fail(new Error(`broker ${this.where} did not answer within ${timeoutMs} ms`)),
      )
      this.pending.push({ id, apiKey, apiVersion, timer, resolve, reject })
      this.socket.write(requestFrameOf({ apiKey, apiVersion, correlationId: id, clientId: this.clientId }, body))
    })
  }

  close(): void {
    this.fail(new Error(`the connection to broker ${this.where} was closed`))
  }

  buffer(): Uint8Array {
    return this.reader.buffer()
  }

  onConnect(): void {
    this.opened?.resolve(this)
    this.opened = undefined
  }

  onData(length: number): void {
    this.reader.onData(length, this.runtime.now())
  }

  onDrain(): void {
    // nothing is held back here: requests of our own are small and few
  }

  onEnd(): void {
    this.fail(new Error(`broker ${this.where} closed the connection`))
  }

  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.fail(error ?? new Error(`broker ${this.where} closed the connection`))
  }

  onSize(size: number): boolean {
    if (size >= 4 && size <= ANSWER_BYTES_MAX) return true
    this.fail(new Error(`broker ${this.where} sent a frame of ${size} bytes`))
    return false
  }

  onFrame(bytes: Buffer, at: number, total: number): void {
    this.answer(Buffer.from(bytes.subarray(at, at + total)))
  }

  onOwnedFrame(buffer: Buffer, total: number): void {
    this.answer(Buffer.from(buffer.subarray(0, total)))
    this.pool.give(buffer)
  }

  onLongFrame(): 'gather' {
    return 'gather'
  }

  onChunk(): void {
    // long frames are gathered
  }

  private answer(bytes: Buffer): void {
    const pending = this.pending.shift()
    if (pending === undefined || pending.id !== bytes.readInt32BE(4)) {
      if (pending !== undefined) this.settle(pending, new Error('out of order'))
      this.fail(new Error(`broker ${this.where} answered out of order`))
      return
    }
    pending.timer.cancel()
    const bodyAt = peekResponseBodyStart(pending.apiKey, pending.apiVersion, bytes, 4, bytes.length)
    pending.resolve({ bytes, bodyAt })
  }

  private settle(pending: Pending, error: Error): void {
    pending.timer.cancel()
    pending.reject(error)
  }

  private fail(error: Error): void {
    if (this.failure !== undefined) return
    this.failure = error
    this.reader.stop()
    this.socket.destroy()
    this.opened?.reject(error)
    this.opened = undefined
    for (let pending = this.pending.shift(); pending !== undefined; pending = this.pending.shift())
      this.settle(pending, error)
  }
}
