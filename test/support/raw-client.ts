/** A plain TCP client for tests: sends bytes, cuts what comes into frames, and knows how the connection ended. */
import net from 'node:net'
import { codecRequest, openResponse } from './codec-frames.ts'
import { requestFrame, Splitter } from './frames.ts'

export class RawClient {
  readonly socket: net.Socket
  readonly frames: Buffer[] = []
  received: Buffer[] = []
  /** The other side has ended. */
  ended = false
  closed = false
  error: NodeJS.ErrnoException | undefined
  private readonly splitter = new Splitter()
  private waiters: (() => void)[] = []
  private lastId = 0

  private constructor(socket: net.Socket) {
    this.socket = socket
    const wake = (): void => {
      for (const waiter of this.waiters.splice(0)) waiter()
    }
    socket.on('data', (bytes: Buffer) => {
      this.received.push(bytes)
      if (this.splitting) this.frames.push(...this.splitter.push(bytes))
      wake()
    })
    socket.on('end', () => {
      this.ended = true
      wake()
    })
    socket.on('error', (error) => (this.error = error))
    socket.on('close', () => {
      this.closed = true
      wake()
    })
  }

  /** What comes is frames; false for a peer that answers something else. */
  splitting = true

  /** @param address host:port; `localAddress` to connect from another loopback address */
  static connect(address: string, localAddress?: string): Promise<RawClient> {
    const colon = address.lastIndexOf(':')
    const where = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)), allowHalfOpen: true }
    return new Promise((resolve, reject) => {
      const socket = net.connect(localAddress === undefined ? where : { ...where, localAddress })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.removeListener('error', reject)
        resolve(new RawClient(socket))
      })
    })
  }

  send(bytes: Buffer): void {
    this.socket.write(bytes)
  }

  /** Resolves when `done` holds; asked after every event of the connection. Rejects if it closes before. */
  async until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.closed) throw new Error(`the connection closed (${this.error?.code ?? 'no error'})`)
      await new Promise<void>((resolve) => this.waiters.push(resolve))
    }
  }

  /** Waits for the end of the connection, whoever brings it. */
  async untilEnd(): Promise<void> {
    while (!this.ended && !this.closed) await new Promise<void>((resolve) => this.waiters.push(resolve))
  }

  /** Sends a request whose body is `body` and waits for its reply. */
  async exchange(apiKey: number, apiVersion: number, body: Buffer): Promise<Buffer> {
    const id = ++this.lastId
    return this.reply(requestFrame({ apiKey, apiVersion, correlationId: id, body }), id)
  }

  /** The same through the generated codecs. */
  async call(apiKey: number, apiVersion: number, draft: object, clientId = 'raw'): Promise<object> {
    const id = ++this.lastId
    return openResponse(apiKey, apiVersion, await this.reply(codecRequest(apiKey, apiVersion, id, draft, clientId), id))
  }

  private async reply(frame: Buffer, id: number): Promise<Buffer> {
    const at = this.frames.length
    this.send(frame)
    await this.until(() => this.frames.length > at || this.ended)
    const reply = this.frames[at]
    if (reply === undefined) throw new Error('the other side ended the connection before it replied')
    if (reply.readInt32BE(4) !== id) throw new Error(`reply ${reply.readInt32BE(4)} to request ${id}`)
    return reply
  }

  close(): void {
    this.socket.destroy()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }
}
