/**
 * One end of a virtual TCP connection. Bytes travel to the other end in order, late, and in pieces of any size; a reader
 * that pauses fills the window, and the writer then sees bytes pending. Ends, resets and lost links follow TCP: a FIN
 * comes behind the data, an RST overtakes it, and what is sent into a dead link arrives when the link heals, if ever.
 */
import type { Socket, SocketHandler } from '../../../src/runtime/socket.ts'
import type { Network } from './network.ts'
import type { Process } from './process.ts'

/** Bytes that sender and receiver's kernels hold together. */
const WINDOW_BYTES = 256 * 1024

interface Outgoing {
  bytes: Uint8Array
  taken: (() => void) | undefined
}

export class VirtualSocket implements Socket {
  readonly process: Process
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
  peer: VirtualSocket | undefined
  handler: SocketHandler | undefined
  connected = false
  /** When the last piece sent from here arrives; later ones arrive no sooner. */
  arrivesMs = 0
  readonly #network: Network
  readonly #outgoing: Outgoing[] = []
  #received: Uint8Array[] = []
  #inFlightBytes = 0
  #pendingBytes = 0
  #paused = true
  #wantsEnd = false
  #sentEnd = false
  #gotEnd = false
  #toldEnd = false
  #destroyed = false
  #toldClose = false

  constructor(network: Network, process: Process, localPort: number, remoteAddress: string, remotePort: number) {
    this.#network = network
    this.process = process
    this.localPort = localPort
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }

  get localAddress(): string {
    return this.process.address
  }

  get pendingBytes(): number {
    return this.#pendingBytes
  }

  get destroyed(): boolean {
    return this.#destroyed
  }

  write(bytes: Uint8Array, taken?: () => void): void {
    if (this.#destroyed || this.#wantsEnd) return taken?.()
    this.#outgoing.push({ bytes, taken })
    this.#pendingBytes += bytes.length
    this.#flush()
  }

  cork(): void {
    // The network gathers and splits as it likes.
  }

  uncork(): void {
    // See cork.
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.process.soon(() => this.#read())
  }

  end(): void {
    if (this.#destroyed || this.#wantsEnd) return
    this.#wantsEnd = true
    this.#flush()
  }

  destroy(reset = false): void {
    if (this.#destroyed) return
    const unread = this.#received.length > 0
    this.#drop()
    this.process.soon(() => this.#tellClose(undefined))
    const { peer } = this
    if (peer === undefined) return
    if (reset || unread) this.#network.carry(this, () => peer.reset(), true)
    else if (!this.#sentEnd) this.#network.carry(this, () => peer.receiveEnd())
  }

  /** The peer's RST arrived, or the link was given up. */
  reset(code = 'ECONNRESET'): void {
    if (this.#destroyed) return
    this.#drop()
    this.#tellClose(Object.assign(new Error(code), { code }))
  }

  connect(): void {
    this.connected = true
    this.#paused = false
    this.handler?.onConnect?.()
    this.#flush()
  }

  receive(bytes: Uint8Array): void {
    if (this.#destroyed) {
      const { peer } = this
      if (peer !== undefined) this.#network.carry(this, () => peer.reset(), true)
      return
    }
    this.#received.push(bytes)
    this.#read()
  }

  receiveEnd(): void {
    if (this.#destroyed) return
    this.#gotEnd = true
    this.#read()
  }

  /** Somebody may be told when the peer has read on; else nothing depends on when this end learns of it. */
  get awaitsWindow(): boolean {
    return this.#pendingBytes > 0
  }

  /** The peer's reader has taken this many bytes. */
  acknowledge(bytes: number): void {
    this.#inFlightBytes -= bytes
    if (this.#destroyed) return
    const waited = this.#pendingBytes > 0
    this.#flush()
    if (waited && this.#pendingBytes === 0) this.handler?.onDrain()
  }

  #flush(): void {
    const { peer } = this
    if (!this.connected || peer === undefined) return
    while (this.#outgoing.length > 0 && this.#inFlightBytes < WINDOW_BYTES) {
      const { bytes, taken } = this.#outgoing.shift() as Outgoing
      this.#pendingBytes -= bytes.length
      this.#inFlightBytes += bytes.length
      const copy = new Uint8Array(bytes)
      taken?.()
      for (const piece of this.#network.split(copy)) this.#network.carry(this, () => peer.receive(piece))
    }
    if (!this.#wantsEnd || this.#sentEnd || this.#outgoing.length > 0) return
    this.#sentEnd = true
    this.#network.carry(this, () => peer.receiveEnd())
    if (this.#toldEnd) this.process.soon(() => this.#finish())
  }

  #read(): void {
    while (!this.#paused && !this.#destroyed && this.#received.length > 0) {
      const bytes = this.#received[0] as Uint8Array
      const target = this.handler?.buffer()
      if (target === undefined) return
      const length = Math.min(target.length, bytes.length)
      target.set(bytes.subarray(0, length))
      if (length === bytes.length) this.#received.shift()
      else this.#received[0] = bytes.subarray(length)
      const { peer } = this
      if (peer?.awaitsWindow === true) this.#network.carry(this, () => peer.acknowledge(length))
      else peer?.acknowledge(length)
      this.handler?.onData(length)
    }
    if (!this.#gotEnd || this.#toldEnd || this.#destroyed || this.#received.length > 0) return
    if (this.#paused) return
    this.#toldEnd = true
    this.handler?.onEnd()
    if (this.#sentEnd) this.process.soon(() => this.#finish())
  }

  /** Both directions have ended. */
  #finish(): void {
    if (this.#destroyed) return
    this.#drop()
    this.#tellClose(undefined)
  }

  #drop(): void {
    this.#destroyed = true
    this.#received = []
    this.#pendingBytes = 0
    for (const { taken } of this.#outgoing.splice(0)) taken?.()
  }

  #tellClose(error: NodeJS.ErrnoException | undefined): void {
    if (this.#toldClose) return
    this.#toldClose = true
    this.#network.closed(this)
    this.handler?.onClose(error)
  }
}
