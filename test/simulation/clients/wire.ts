/**
 * One connection of a model client: requests out, answers in, matched by correlation id, with a time-out each. It
 * begins with ApiVersions and uses the highest version that both the family and the other side know.
 */
import type { Codec, Draft } from '../../../src/protocol/codec.ts'
import { apiVersions } from '../../../src/protocol/generated/18-api-versions.ts'
import { decodeResponseHeader, encodeRequestHeader } from '../../../src/protocol/headers.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'
import type { Runtime, Timer } from '../../../src/runtime/runtime.ts'
import type { Socket, SocketHandler } from '../../../src/runtime/socket.ts'

export interface WireOptions {
  clientId: string
  /** API key → highest version the family uses. */
  versions: Readonly<Record<number, number>>
  requestTimeoutMs: number
}

/** The connection is gone, or was given up because an answer did not come. */
export class ConnectionLost extends Error {}

interface Waiting {
  settle: (frame: Buffer | ConnectionLost) => void
  timer: Timer
}

const DIAL_TIMEOUT_MS = 5_000
/** Of all connections: what is read is copied at once. */
const scratch = Buffer.alloc(64 * 1024)

export class Wire implements SocketHandler {
  readonly ready: Promise<void>
  closed = false
  readonly #runtime: Runtime
  readonly #options: WireOptions
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  #offered = new Map<number, number>()
  #input = Buffer.alloc(0)
  #correlation = 0
  #connected: () => void = () => undefined

  constructor(runtime: Runtime, host: string, port: number, options: WireOptions) {
    this.#runtime = runtime
    this.#options = options
    const connected = new Promise<void>((resolve) => {
      this.#connected = resolve
    })
    this.#socket = runtime.dial({ host, port, timeoutMs: DIAL_TIMEOUT_MS }, this)
    this.ready = connected.then(() => this.#negotiate())
    this.ready.catch(() => undefined)
  }

  /** Sends a request and waits for its answer. `extraMs`: how long the other side is allowed to sit on it. */
  async ask<Q, R>(codec: Codec<Q, R>, request: Draft<Q>, extraMs = 0): Promise<R> {
    await this.ready
    return this.#send(codec, this.versionOf(codec), request, extraMs)
  }

  versionOf(codec: { key: number; maxVersion: number }): number {
    return Math.min(
      codec.maxVersion,
      this.#options.versions[codec.key] ?? codec.maxVersion,
      this.#offered.get(codec.key) ?? codec.maxVersion,
    )
  }

  /** Sends a request that gets no answer (acks=0). */
  async tell<Q, R>(codec: Codec<Q, R>, request: Draft<Q>): Promise<void> {
    await this.ready
    this.#write(codec, this.versionOf(codec), ++this.#correlation, request)
  }

  close(): void {
    if (!this.closed) this.#socket.destroy()
  }

  onConnect(): void {
    this.#connected()
  }

  buffer(): Uint8Array {
    return scratch
  }

  onData(length: number): void {
    this.#input = Buffer.concat([this.#input, scratch.subarray(0, length)])
    while (this.#input.length >= 4) {
      const size = this.#input.readInt32BE(0)
      if (this.#input.length < 4 + size) return
      const frame = this.#input.subarray(4, 4 + size)
      this.#input = this.#input.subarray(4 + size)
      const id = frame.readInt32BE(0)
      const waiting = this.#waiting.get(id)
      if (waiting === undefined) throw new Error(`an answer to nothing: correlation id ${id}`)
      this.#waiting.delete(id)
      waiting.timer.cancel()
      waiting.settle(frame)
    }
  }

  onDrain(): void {
    // Requests are few and small: nothing is held back.
  }

  onEnd(): void {
    this.#socket.destroy()
  }

  onClose(): void {
    this.closed = true
    this.#connected()
    const waiting = Array.from(this.#waiting.values())
    this.#waiting.clear()
    for (const { timer, settle } of waiting) {
      timer.cancel()
      settle(new ConnectionLost('closed'))
    }
  }

  async #negotiate(): Promise<void> {
    const version = this.#options.versions[apiVersions.key] ?? 0
    const answer = await this.#send(
      apiVersions,
      Math.min(version, 4),
      { clientSoftwareName: this.#options.clientId },
      0,
    )
    this.#offered = new Map(answer.apiKeys.map(({ apiKey, maxVersion }) => [apiKey, maxVersion]))
  }

  async #send<Q, R>(codec: Codec<Q, R>, version: number, request: Draft<Q>, extraMs: number): Promise<R> {
    if (this.closed) throw new ConnectionLost('closed')
    const id = ++this.#correlation
    const frame = await new Promise<Buffer | ConnectionLost>((settle) => {
      const timer = this.#runtime.timer(this.#options.requestTimeoutMs + extraMs, () => {
        this.#socket.destroy()
      })
      this.#waiting.set(id, { settle, timer })
      this.#write(codec, version, id, request)
    })
    if (frame instanceof ConnectionLost) throw frame
    const reader = new Reader(frame)
    decodeResponseHeader(reader, codec.key, version)
    const answer = codec.decodeResponse(reader, version)
    reader.expectEnd()
    return answer
  }

  #write<Q, R>(codec: Codec<Q, R>, version: number, correlationId: number, request: Draft<Q>): void {
    const writer = new Writer()
    writer.int32(0)
    const { clientId } = this.#options
    encodeRequestHeader(writer, { apiKey: codec.key, apiVersion: version, correlationId, clientId })
    codec.encodeRequest(writer, request, version)
    const frame = writer.finish()
    frame.writeInt32BE(frame.length - 4, 0)
    this.#socket.write(frame)
  }
}
