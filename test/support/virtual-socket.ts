/**
 * One end of a virtual TCP connection. Bytes written stay the writer's until the "kernel" takes them, so that a buffer
 * reused too early shows as corrupted data; the kernel holds a bounded number of bytes, so that a peer that does not
 * read makes `pendingBytes` grow. As in Node, 'drain' comes only after 64 KiB or more had been pending.
 */
import type { AcceptHandler, DialOptions, Socket, SocketHandler } from '../../src/runtime/socket.ts'
import type { VirtualRuntime } from './virtual-runtime.ts'
import { systemError } from './virtual-runtime.ts'

const DRAIN_BYTES = 64 * 1024

interface Write {
  bytes: Uint8Array
  at: number
  taken: (() => void) | undefined
}

export class VirtualSocket implements Socket {
  remoteAddress = ''
  remotePort = 0
  localAddress = ''
  localPort = 0
  pendingBytes = 0
  /** The most that was ever pending. */
  peakBytes = 0
  closed = false
  readonly runtime: VirtualRuntime
  private handler: SocketHandler
  private peer: VirtualSocket | undefined
  private paused = false
  private readonly writes: Write[] = []
  private needsDrain = false
  private ending = false
  private endSent = false
  private endSeen = false
  /** What the kernel holds for this end to read. */
  private readonly inbox: Buffer[] = []
  private inboxBytes = 0
  private inboxEnds = false
  private moving = false
  private reading = false

  constructor(runtime: VirtualRuntime, handler: SocketHandler) {
    this.runtime = runtime
    this.handler = handler
    runtime.sockets.add(this)
  }

  /** Joins two ends; the accepted one is paused. */
  join(peer: VirtualSocket, local: [string, number], remote: [string, number]): void {
    this.peer = peer
    ;[this.localAddress, this.localPort] = local
    ;[this.remoteAddress, this.remotePort] = remote
  }

  adopt(handler: SocketHandler): void {
    this.handler = handler
    this.paused = true
  }

  connected(): void {
    this.guard(() => this.handler.onConnect?.())
    this.move()
  }

  write(bytes: Uint8Array, taken?: () => void): void {
    if (this.closed || this.ending) {
      taken?.()
      if (!this.closed) this.fail(systemError('ERR_STREAM_WRITE_AFTER_END', 'write after end'))
      return
    }
    this.writes.push({ bytes, at: 0, taken })
    this.pendingBytes += bytes.length
    this.peakBytes = Math.max(this.peakBytes, this.pendingBytes)
    if (this.pendingBytes >= DRAIN_BYTES) this.needsDrain = true
    this.move()
  }

  cork(): void {
    // writes leave in a later event in any case
  }

  uncork(): void {
    // see cork
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
    this.read()
  }

  end(): void {
    if (this.closed || this.ending) return
    this.ending = true
    this.move()
  }

  destroy(reset = false): void {
    if (this.closed) return
    this.closeWith(undefined)
    this.peer?.peerGone(reset)
  }

  fail(error: NodeJS.ErrnoException): void {
    if (this.closed) return
    this.closeWith(error)
    this.peer?.peerGone(true)
  }

  private closeWith(error: NodeJS.ErrnoException | undefined): void {
    this.closed = true
    this.runtime.sockets.delete(this)
    for (const write of this.writes.splice(0)) write.taken?.()
    this.pendingBytes = 0
    this.runtime.soon(() => this.handler.onClose(error))
  }

  /** The other end is closed: its last bytes and the end are still read here, unless it was reset. */
  private peerGone(reset: boolean): void {
    if (this.closed) return
    this.runtime.schedule(this.runtime.prng.below(2), () => {
      if (this.closed) return
      if (reset) this.fail(systemError('ECONNRESET', 'read'))
      else {
        this.inboxEnds = true
        this.read()
      }
    })
  }

  /** Moves what was written into the peer's kernel buffer, a random piece at a time. */
  private move(): void {
    if (this.moving || this.closed || this.peer === undefined) return
    if (this.writes.length === 0 && !(this.ending && !this.endSent)) return
    this.moving = true
    this.runtime.schedule(this.runtime.prng.below(2), () => {
      this.moving = false
      this.moveSome()
    })
  }

  private moveSome(): void {
    const { peer, runtime } = this
    if (this.closed || peer === undefined) return
    if (peer.closed) {
      if (this.writes.length > 0) this.fail(systemError('EPIPE', 'write'))
      this.endSent = this.ending
      this.maybeClose()
      return
    }
    let room = Math.min(runtime.kernelBytes - peer.inboxBytes, 1 + runtime.prng.below(runtime.kernelBytes))
    while (room > 0 && this.writes[0] !== undefined) room -= this.take(this.writes[0], room, peer)
    if (this.writes.length === 0 && this.ending && !this.endSent) {
      this.endSent = true
      peer.inboxEnds = true
    }
    peer.read()
    if (this.pendingBytes === 0 && this.needsDrain) {
      this.needsDrain = false
      this.guard(() => this.handler.onDrain())
    }
    if (peer.inboxBytes < runtime.kernelBytes) this.move()
    this.maybeClose()
  }

  private take(write: Write, room: number, peer: VirtualSocket): number {
    const step = Math.min(room, write.bytes.length - write.at)
    peer.inbox.push(Buffer.from(write.bytes.subarray(write.at, write.at + step)))
    peer.inboxBytes += step
    write.at += step
    this.pendingBytes -= step
    if (write.at === write.bytes.length) {
      this.writes.shift()
      write.taken?.()
    }
    return step
  }

  private read(): void {
    if (this.reading || this.closed || this.paused) return
    if (this.inboxBytes === 0 && !(this.inboxEnds && !this.endSeen)) return
    this.reading = true
    this.runtime.schedule(this.runtime.prng.below(2), () => {
      this.reading = false
      if (!this.closed && !this.paused) this.readSome()
    })
  }

  private readSome(): void {
    const bytes = this.inbox[0]
    if (bytes === undefined) {
      if (!this.inboxEnds || this.endSeen) return
      this.endSeen = true
      this.guard(() => this.handler.onEnd())
      this.maybeClose()
      return
    }
    const target = this.handler.buffer()
    const length = Math.min(target.length, bytes.length, 1 + this.runtime.prng.below(this.runtime.kernelBytes))
    target.set(bytes.subarray(0, length))
    if (length === bytes.length) this.inbox.shift()
    else this.inbox[0] = bytes.subarray(length)
    this.inboxBytes -= length
    this.guard(() => this.handler.onData(length))
    this.peer?.move()
    this.read()
  }

  private maybeClose(): void {
    if (!this.closed && this.endSent && this.endSeen && this.writes.length === 0) this.closeWith(undefined)
  }

  private guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.fail(error as NodeJS.ErrnoException)
    }
  }
}

export function connectPair(dialled: VirtualSocket, options: DialOptions, port: number, accept: AcceptHandler): void {
  const accepted = new VirtualSocket(dialled.runtime, idle)
  const client: [string, number] = ['127.0.0.1', port]
  const server: [string, number] = [options.host, options.port]
  dialled.join(accepted, client, server)
  accepted.join(dialled, server, client)
  const handler = accept(accepted)
  if (handler === undefined) {
    accepted.destroy()
    return
  }
  accepted.adopt(handler)
  accepted.connected()
  dialled.connected()
}

const idle: SocketHandler = {
  buffer: () => Buffer.alloc(1),
  onData: () => undefined,
  onDrain: () => undefined,
  onEnd: () => undefined,
  onClose: () => undefined,
}
