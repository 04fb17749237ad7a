/**
 * What one socket is to send, gathered over one event and written at its end, in as few writes as possible.
 *
 * Lent bytes (in the shared scratch buffer) are copied before the event ends; neighbours are copied and written as one.
 */
import type { Socket } from '../runtime/socket.ts'
import { CHUNK_BYTES, type ChunkPool } from './chunk-pool.ts'

export class Outgoing {
  private readonly pool: ChunkPool
  private socket: Socket | undefined
  /** Bytes gathered while there is no socket yet. */
  private waiting = 0
  private source: Buffer | undefined
  private from = 0
  private to = 0
  private pieces: Piece[] = []

  /** @param socket undefined while it is still being dialled: everything waits until `attach` */
  constructor(socket: Socket | undefined, pool: ChunkPool) {
    this.socket = socket
    this.pool = pool
  }

  attach(socket: Socket): void {
    this.socket = socket
    this.waiting = 0
    this.flush()
  }

  /** Bytes that the kernel has not taken yet. */
  get pendingBytes(): number {
    return this.socket === undefined ? this.waiting : this.socket.pendingBytes
  }

  /** Bytes that are valid until this event ends. */
  lend(bytes: Buffer, from: number, to: number): void {
    if (this.source === bytes && this.to === from) {
      this.to = to
      return
    }
    this.settle()
    this.source = bytes
    this.from = from
    this.to = to
  }

  /** The first `length` bytes of a buffer that nobody else uses any more. */
  push(buffer: Buffer, length: number): void {
    this.settle()
    this.pieces.push({ buffer, length })
  }

  /** Hands everything to the socket. */
  flush(): void {
    this.settle()
    const { pieces, socket } = this
    if (pieces.length === 0) return
    if (socket === undefined) {
      this.waiting = pieces.reduce((sum, piece) => sum + piece.length, 0)
      return
    }
    this.pieces = []
    if (pieces.length > 1) socket.cork()
    for (const piece of pieces) this.write(socket, piece)
    if (pieces.length > 1) socket.uncork()
  }

  /** Everything that still waits is dropped. */
  drop(): void {
    this.source = undefined
    for (const piece of this.pieces) this.pool.give(piece.buffer)
    this.pieces = []
  }

  private settle(): void {
    if (this.source === undefined) return
    const length = this.to - this.from
    const buffer = ownBuffer(this.pool, length)
    this.source.copy(buffer, 0, this.from, this.to)
    this.source = undefined
    this.pieces.push({ buffer, length })
  }

  private write(socket: Socket, { buffer, length }: Piece): void {
    const bytes = length === buffer.length ? buffer : buffer.subarray(0, length)
    if (buffer.length === CHUNK_BYTES) socket.write(bytes, () => this.pool.give(buffer))
    else socket.write(bytes)
  }
}

interface Piece {
  buffer: Buffer
  length: number
}

/** @returns a buffer of at least `length` bytes: from the pool where that saves page faults, else of its own size */
export function ownBuffer(pool: ChunkPool, length: number): Buffer {
  return length > 4096 && length <= CHUNK_BYTES ? pool.take() : Buffer.allocUnsafe(length)
}
