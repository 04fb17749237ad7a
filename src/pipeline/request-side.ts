/**
 * Reads a client's requests: checks each header, asks the handlers that want this API and version, and sends the frame
 * on with a correlation id of our own. A frame that nobody asks for is never copied apart from its neighbours.
 */
import { FrameReader, type FrameSink } from '../net/frame-reader.ts'
import { apiByKey, apiKeys, apiName } from '../protocol/api-table.ts'
import { peekAcks, peekBodyStart, peekClientId } from '../protocol/peek.ts'
import type { SocketHandler } from '../runtime/socket.ts'
import type { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import { type Frame, own } from './frame.ts'
import type { Outcome, Verdict } from './handler.ts'
import { recognise } from './stranger.ts'

/** Size, api key, version, correlation id and the length of the client id. */
const SHORTEST_REQUEST_BYTES = 14
/** Longest Fetch request that is kept so that it can be answered early at the end. */
const KEPT_FETCH_BYTES = 64 * 1024

export class RequestSide implements SocketHandler, FrameSink {
  readonly reader: FrameReader
  private readonly connection: Connection
  private streaming: Exchange | undefined
  /** Frames that became ready while a long one was streaming upstream. */
  private deferred: { exchange: Exchange; frame: Frame }[] = []
  /** How many of the youngest entries of `sent` have not left yet. */
  private unstamped = 0
  private now = 0

  constructor(connection: Connection) {
    this.connection = connection
    this.reader = new FrameReader(this, connection.context.pool)
  }

  buffer(): Uint8Array {
    return this.reader.buffer()
  }

  onConnect(): void {
    this.connection.open()
  }

  onData(length: number): void {
    this.now = this.connection.context.runtime.now()
    this.reader.onData(length, this.now)
    this.connection.settle()
  }

  onDrain(): void {
    this.connection.settle()
  }

  onEnd(): void {
    this.connection.onClientEnd()
  }

  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.connection.onClientClose(error)
  }

  onSize(size: number, bytes: Buffer, at: number, available: number): boolean {
    const { limits } = this.connection.context
    if (size >= SHORTEST_REQUEST_BYTES - 4 - 2 && size <= limits.requestBytes) return true
    const stranger = recognise(bytes, at, available)
    if (stranger !== undefined) {
      if (stranger.answer !== undefined) this.connection.toClient.push(stranger.answer, stranger.answer.length)
      this.connection.close(stranger.reason, stranger.detail)
    } else if (size > limits.requestBytes)
      this.connection.close(
        'frame_too_large',
        `a request of ${size} bytes; limits.requestBytes is ${limits.requestBytes}`,
      )
    else this.connection.close('malformed_request', `a request of ${size} bytes is shorter than its header`)
    return false
  }

  onFrame(bytes: Buffer, at: number, total: number): void {
    this.begin({ bytes, at, total, owned: false })
  }

  onOwnedFrame(bytes: Buffer, total: number): void {
    this.begin({ bytes, at: 0, total, owned: true })
  }

  onLongFrame(head: Buffer, total: number): 'stream' | 'gather' | 'stop' {
    const exchange = this.open(head, 0, head.length, total)
    if (exchange === undefined) return 'stop'
    if (exchange.plan.request.length > 0) return 'gather'
    this.admit(exchange)
    this.send(exchange, head, 0)
    this.streaming = exchange
    return 'stream'
  }

  onChunk(chunk: Buffer, length: number, last: boolean): void {
    this.connection.toUpstream.push(chunk, length)
    if (!last) return
    this.streaming = undefined
    const deferred = this.deferred
    this.deferred = []
    for (const { exchange, frame } of deferred) this.forward(exchange, frame)
  }

  private begin(frame: Frame): void {
    const exchange = this.open(frame.bytes, frame.at, frame.at + frame.total, frame.total)
    if (exchange === undefined) return
    this.admit(exchange)
    if (exchange.plan.request.length === 0) this.forward(exchange, frame)
    else {
      exchange.request = frame
      this.ask(exchange, 0)
    }
  }

  /** Reads the header; undefined if the connection was closed for it. `end`: of the bytes at hand. */
  private open(bytes: Buffer, at: number, end: number, total: number): Exchange | undefined {
    const { connection } = this
    const { context } = connection
    const apiKey = bytes.readInt16BE(at + 4)
    const apiVersion = bytes.readInt16BE(at + 6)
    const plan = context.plans.find(apiKey, apiVersion) ?? this.tooNewApiVersions(apiKey)
    if (plan === undefined) {
      connection.close('unsupported_api', unsupported(apiKey, apiVersion))
      return undefined
    }
    if (connection.requestCount === 0) this.introduce(bytes, at, end)
    connection.requestCount++
    context.meter.request(apiKey, apiVersion, total)
    const exchange = new Exchange(connection, plan, apiKey, apiVersion, bytes.readInt32BE(at + 8), total, this.now)
    if (apiKey === apiKeys.Produce) {
      const bodyAt = peekBodyStart(bytes, at + 4, end)
      const acks = bodyAt < 0 ? undefined : peekAcks(bytes, bodyAt, apiVersion, end)
      if (acks === undefined) {
        connection.close('malformed_request', `Produce v${apiVersion}: the header or the transactional id is malformed`)
        return undefined
      }
      exchange.noReply = acks === 0
    } else if (apiKey === apiKeys.SaslHandshake) connection.authenticates = true
    else if (apiKey === apiKeys.Fetch && total <= KEPT_FETCH_BYTES)
      exchange.kept = own({ bytes, at, total, owned: false })
    return exchange
  }

  /** ApiVersions is answered in whatever version it comes (KIP-511). */
  private tooNewApiVersions(apiKey: number) {
    return apiKey === apiKeys.ApiVersions ? this.connection.context.plans.find(apiKey, 0) : undefined
  }

  private introduce(bytes: Buffer, at: number, end: number): void {
    const { connection } = this
    connection.clientId = peekClientId(bytes, at + 4, end)
    connection.instance = connection.context.instances.named(connection, connection.clientId)
  }

  private admit(exchange: Exchange): void {
    if (!exchange.noReply) this.connection.order.push(exchange)
  }

  /** Asks the handlers from `step` on, then sends the request upstream. */
  private ask(exchange: Exchange, step: number): void {
    const { request } = exchange.plan
    for (let i = step; i < request.length; i++) {
      exchange.step = i
      if (this.obey(exchange, request[i]?.onRequest?.(exchange))) return
    }
    const frame = exchange.request
    exchange.request = undefined
    if (frame !== undefined) this.forward(exchange, frame)
  }

  /** @returns whether the verdict ended the asking */
  private obey(exchange: Exchange, verdict: Verdict): boolean {
    if (verdict === undefined) return false
    if (verdict.kind === 'close') this.connection.close(verdict.reason, verdict.detail)
    else if (verdict.kind === 'answer') {
      exchange.request = undefined
      this.connection.reply(exchange, verdict.frame)
    } else if (exchange.request !== undefined) exchange.request = own(exchange.request)
    return true
  }

  /** A handler ends what it has taken. */
  finish(exchange: Exchange, outcome: Outcome): void {
    if (outcome === 'forward') this.ask(exchange, exchange.step + 1)
    else this.obey(exchange, outcome)
    this.connection.holds.release(exchange)
  }

  /** The request waited behind a held one and is free now. */
  again(exchange: Exchange): void {
    this.ask(exchange, exchange.step)
  }

  private forward(exchange: Exchange, frame: Frame): void {
    if (this.streaming !== undefined) {
      this.deferred.push({ exchange, frame: own(frame) })
      return
    }
    this.send(exchange, frame.bytes, frame.at)
    if (frame.owned) this.connection.toUpstream.push(frame.bytes, frame.total)
    else this.connection.toUpstream.lend(frame.bytes, frame.at, frame.at + frame.total)
  }

  /** Sends a frame that no client asked for, or that is to be sent as it is. */
  sendOwn(exchange: Exchange, bytes: Buffer): void {
    this.forward(exchange, { bytes, at: 0, total: bytes.length, owned: true })
  }

  private send(exchange: Exchange, bytes: Buffer, at: number): void {
    const { connection } = this
    exchange.stage = 'waiting'
    exchange.upstreamId = connection.own.nextId()
    bytes.writeInt32BE(exchange.upstreamId, at + 8)
    if (exchange.noReply) return
    connection.sent.push(exchange)
    connection.context.meter.inFlight(1)
    this.unstamped++
  }

  /** Everything gathered so far has been given to the socket. */
  stamp(): void {
    if (this.unstamped === 0 || this.streaming !== undefined) return
    const { sent, context } = this.connection
    const now = context.runtime.now()
    for (let i = sent.length - this.unstamped; i < sent.length; i++) {
      const exchange = sent.at(i)
      if (exchange !== undefined) exchange.sentAt = now
    }
    this.unstamped = 0
  }
}

function unsupported(apiKey: number, apiVersion: number): string {
  const api = apiByKey(apiKey)
  if (api === undefined || !api.client) return `api key ${apiKey} is not a Kafka API for clients`
  return `${apiName(apiKey)} v${apiVersion} is outside v${api.minVersion}–v${api.maxVersion}`
}
