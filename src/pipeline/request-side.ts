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
import type { Plan } from './plan.ts'
import { recognise } from './stranger.ts'

/** Size, api key, version, correlation id and the length of the client id. */
const SHORTEST_REQUEST_BYTES = 14
/** A TLS record begins with 0x1603, which read as a size is 352 MiB; letters are larger still. */
const SMALLEST_STRANGER_SIZE = 0x1603_0000
/** Longest Fetch request that is kept so that it can be answered early at the end. */
const KEPT_FETCH_BYTES = 64 * 1024

export class RequestSide implements SocketHandler, FrameSink {
  readonly reader: FrameReader
  private readonly connection: Connection
  private streaming: Exchange | undefined
  /** Frames that became ready while a long one was streaming upstream. */
  private deferred: { exchange: Exchange; frame: Frame }[] = []
  /** Requests that handlers have taken and not yet ended. */
  private readonly taken = new Set<Exchange>()
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

  /** How many requests were read since the oldest that a handler still has, itself included; 0 if it has none. */
  get readWhileTaken(): number {
    if (this.taken.size === 0) return 0
    let oldest = Infinity
    for (const exchange of this.taken) oldest = Math.min(oldest, exchange.number)
    return this.connection.requestCount - oldest + 1
  }

  /** Requests that are not upstream yet and not answered either. */
  get pending(): boolean {
    return this.taken.size > 0 || this.deferred.length > 0
  }

  /** A long request is on its way through: nothing else can go upstream before its end. */
  get isStreaming(): boolean {
    return this.streaming !== undefined
  }

  /** Something cannot go upstream before the client has sent the rest of a long request, so it must be read. */
  get mustRead(): boolean {
    return this.deferred.length > 0
  }

  onSize(size: number, bytes: Buffer, at: number, available: number): boolean {
    const { limits } = this.connection.context
    const fits = size >= SHORTEST_REQUEST_BYTES - 4 - 2 && size <= limits.requestBytes
    if (fits && size < SMALLEST_STRANGER_SIZE) return true
    const stranger = recognise(bytes, at, available)
    if (fits && stranger === undefined) return true
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
    const plan = this.connection.context.plans.find(head.readInt16BE(4), head.readInt16BE(6))
    if (plan !== undefined && !this.mayStream(plan, head)) return 'gather'
    const exchange = this.open(head, 0, head.length, total)
    if (exchange === undefined) return 'stop'
    this.admit(exchange)
    this.send(exchange, head, 0)
    this.streaming = exchange
    return 'stream'
  }

  /** A long request that somebody asks for is gathered, unless each of them lets this one stream by. */
  private mayStream(plan: Plan, head: Buffer): boolean {
    return plan.request.every((handler) => handler.letsStream?.(this.connection, head) === true)
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
    const plan = context.plans.find(apiKey, apiVersion) ?? this.tooNewApiVersions(apiKey, apiVersion)
    if (plan === undefined) {
      connection.close('unsupported_api', unsupported(apiKey, apiVersion))
      return undefined
    }
    if (connection.requestCount === 0) this.introduce(bytes, at, end)
    connection.requestCount++
    context.meter.request(apiKey, apiVersion, total)
    const exchange = new Exchange(connection, plan, apiKey, apiVersion, bytes.readInt32BE(at + 8), total, this.now)
    exchange.number = connection.requestCount
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
    if (context.tap.active) context.tap.request(exchange, bytes, at, end)
    return exchange
  }

  /** ApiVersions is answered in whatever version it comes (KIP-511). */
  private tooNewApiVersions(apiKey: number, apiVersion: number) {
    return apiKey === apiKeys.ApiVersions && apiVersion > 0 ? this.connection.context.plans.find(apiKey, 0) : undefined
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
    else if (verdict.kind === 'answer') this.answer(exchange, verdict.frame)
    else {
      exchange.taken = true
      this.taken.add(exchange)
      if (exchange.request !== undefined) exchange.request = own(exchange.request)
    }
    return true
  }

  private answer(exchange: Exchange, frame: Frame): void {
    exchange.request = undefined
    if (!exchange.noReply) this.connection.reply(exchange, frame)
    else this.connection.close('refused_produce', 'a Produce with acks=0, which has no answer that could say so')
  }

  /** A handler ends what it has taken. */
  finish(exchange: Exchange, outcome: Outcome): void {
    this.untake(exchange)
    this.connection.holds.ended(exchange)
    if (outcome === 'forward') this.ask(exchange, exchange.step + 1)
    else this.obey(exchange, outcome)
    if (!exchange.taken) this.connection.holds.release(exchange)
  }

  /** The request waited behind a held one and is free now. */
  again(exchange: Exchange): void {
    this.untake(exchange)
    this.ask(exchange, exchange.step)
  }

  private untake(exchange: Exchange): void {
    exchange.taken = false
    this.taken.delete(exchange)
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

  /** Everything gathered so far has been given to the socket; of a request that streams, not yet the end. */
  stamp(): void {
    const streaming = this.streaming === undefined || this.streaming.noReply ? 0 : 1
    if (this.unstamped <= streaming) return
    const { sent, context } = this.connection
    const now = context.runtime.now()
    for (let i = Math.max(0, sent.length - this.unstamped); i < sent.length - streaming; i++) {
      const exchange = sent.at(i)
      if (exchange !== undefined) exchange.sentAt = now
    }
    this.unstamped = streaming
  }
}

function unsupported(apiKey: number, apiVersion: number): string {
  const api = apiByKey(apiKey)
  if (api === undefined || !api.client) return `api key ${apiKey} is not a Kafka API for clients`
  return `${apiName(apiKey)} v${apiVersion} is outside v${api.minVersion}–v${api.maxVersion}`
}
