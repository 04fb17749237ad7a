/**
 * Reads a broker's answers: finds the exchange each belongs to (brokers answer in order), asks the handlers that want
 * it, and hands it to the client under the client's own correlation id.
 */
import { FrameReader, type FrameSink } from '../net/frame-reader.ts'
import { apiName, carriesAddresses } from '../protocol/api-table.ts'
import type { SocketHandler } from '../runtime/socket.ts'
import type { Connection } from './connection.ts'
import type { Exchange } from './exchange.ts'
import { type Frame, own } from './frame.ts'
import type { Outcome, Scanner, Verdict } from './handler.ts'

export class ResponseSide implements SocketHandler, FrameSink {
  readonly reader: FrameReader
  /** Exchanges whose reply was given to the client's socket in this event. */
  readonly finished: Exchange[] = []
  private readonly connection: Connection
  private streaming: Exchange | undefined
  private scanner: Scanner | undefined
  private tail: Buffer = nothing
  /** Answers that handlers have taken and not yet ended. */
  takenCount = 0
  private now = 0

  constructor(connection: Connection) {
    this.connection = connection
    this.reader = new FrameReader(this, connection.context.pool)
  }

  buffer(): Uint8Array {
    return this.reader.buffer()
  }

  onConnect(): void {
    this.connection.onUpstreamConnect()
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
    this.connection.onUpstreamEnd()
  }

  onClose(error: NodeJS.ErrnoException | undefined): void {
    this.connection.onUpstreamClose(error)
  }

  onSize(size: number): boolean {
    if (size >= 4) return true
    this.connection.close('malformed_response', `the broker sent a frame of ${size} bytes`)
    return false
  }

  onFrame(bytes: Buffer, at: number, total: number): void {
    this.take({ bytes, at, total, owned: false })
  }

  onOwnedFrame(bytes: Buffer, total: number): void {
    this.take({ bytes, at: 0, total, owned: true })
  }

  onLongFrame(head: Buffer, total: number): 'stream' | 'gather' | 'stop' {
    const { connection } = this
    const exchange = this.expected(head, 0)
    if (exchange === undefined) return 'stop'
    const { responseDepth, response } = exchange.plan
    const mayGather = total <= connection.context.limits.responseBytes
    this.scanner = undefined
    if (connection.own.owns(exchange)) return mayGather ? 'gather' : this.ownTooLong(total)
    if (exchange.abandoned) return this.stream(exchange, head, total)
    if (responseDepth === 'full' && mayGather) return 'gather'
    if (responseDepth === 'full') return this.tooLong(exchange, total) ? 'stop' : this.stream(exchange, head, total)
    for (const handler of response) {
      const found = handler.scanner?.(exchange)
      if (found === undefined) continue
      if ('kind' in found) {
        exchange.abandoned = true
        connection.reply(exchange, found.frame)
      } else this.scanner = found
      break
    }
    return this.stream(exchange, head, total)
  }

  /** An answer that should be opened is longer than we may gather: unseen it may go on only if it carries no address. */
  private tooLong(exchange: Exchange, total: number): boolean {
    const { apiKey, apiVersion } = exchange
    const { limits, meter } = this.connection.context
    meter.undecodable(apiKey, apiVersion)
    if (!carriesAddresses(apiKey, apiVersion)) return false
    const what = `an answer to ${apiName(apiKey)} of ${total} bytes`
    this.connection.close(
      'frame_too_large',
      `${what} carries addresses; limits.responseBytes is ${limits.responseBytes}`,
    )
    return true
  }

  private ownTooLong(total: number): 'stop' {
    this.connection.close('frame_too_large', `an answer of ${total} bytes to a request of our own`)
    return 'stop'
  }

  private stream(exchange: Exchange, head: Buffer, total: number): 'stream' {
    exchange.responseBytes = total
    exchange.stage = 'response'
    head.writeInt32BE(exchange.correlationId, 4)
    const { tap } = this.connection.context
    if (tap.active && !exchange.abandoned) tap.response(exchange, head, 0, head.length)
    this.streaming = exchange
    return 'stream'
  }

  onChunk(chunk: Buffer, length: number, last: boolean): void {
    const exchange = this.streaming
    if (exchange === undefined) return
    if (this.scanner === undefined) this.emit(exchange, chunk, length)
    else this.scan(this.scanner, exchange, chunk, length, last)
    if (!last || this.connection.closed !== undefined) return
    this.streaming = undefined
    this.scanner = undefined
    this.answered(exchange)
    exchange.complete = true
    if (this.connection.order.peek() === exchange) this.connection.replied()
  }

  /** What the scanner holds back goes on at the end of the frame; usually it lies in the last chunk and stays there. */
  private scan(scanner: Scanner, exchange: Exchange, chunk: Buffer, length: number, last: boolean): void {
    const sendable = scanner.feed(chunk, 0, length)
    if (last && this.tail.length === 0) {
      scanner.finish(chunk.subarray(sendable, length))
      if (this.connection.closed === undefined) this.emit(exchange, chunk, length)
      return
    }
    if (sendable < length) this.tail = Buffer.concat([this.tail, chunk.subarray(sendable, length)])
    this.emit(exchange, chunk, sendable)
    if (!last) return
    scanner.finish(this.tail)
    if (this.connection.closed === undefined && this.tail.length > 0) this.emit(exchange, this.tail, this.tail.length)
    this.tail = nothing
  }

  private emit(exchange: Exchange, chunk: Buffer, length: number): void {
    const { connection } = this
    if (exchange.abandoned) connection.context.pool.give(chunk)
    else if (connection.order.peek() === exchange) connection.toClient.push(chunk, length)
    else connection.park(exchange, chunk, length)
  }

  /** The exchange that the answer at `at` belongs to; undefined if the connection was closed for it. */
  private expected(bytes: Buffer, at: number): Exchange | undefined {
    const exchange = this.connection.sent.peek()
    const id = bytes.readInt32BE(at + 4)
    if (exchange !== undefined && exchange.upstreamId === id) return exchange
    const wanted = exchange === undefined ? 'none was expected' : `${exchange.upstreamId} was expected`
    this.connection.close('malformed_response', `the broker answered correlation id ${id}; ${wanted}`)
    return undefined
  }

  /** The last byte of the oldest answer has come. */
  private answered(exchange: Exchange): void {
    const { connection } = this
    connection.sent.shift()
    exchange.answeredAt = this.now
    connection.context.meter.inFlight(-1)
  }

  private take(frame: Frame): void {
    const exchange = this.expected(frame.bytes, frame.at)
    if (exchange === undefined) return
    this.answered(exchange)
    if (this.connection.own.deliver(exchange, frame) || exchange.abandoned) return
    exchange.stage = 'response'
    if (exchange.plan.response.length === 0) {
      this.connection.reply(exchange, frame)
      return
    }
    exchange.response = frame
    this.ask(exchange, 0)
  }

  private ask(exchange: Exchange, step: number): void {
    const { response } = exchange.plan
    for (let i = step; i < response.length; i++) {
      exchange.step = i
      if (this.obey(exchange, response[i]?.onResponse?.(exchange))) return
    }
    const frame = exchange.response
    exchange.response = undefined
    if (frame !== undefined) this.connection.reply(exchange, frame)
  }

  private obey(exchange: Exchange, verdict: Verdict): boolean {
    if (verdict === undefined) return false
    if (verdict.kind === 'close') this.connection.close(verdict.reason, verdict.detail)
    else if (verdict.kind === 'answer') {
      exchange.response = undefined
      this.connection.reply(exchange, verdict.frame)
    } else {
      exchange.taken = true
      this.takenCount++
      if (exchange.response !== undefined) exchange.response = own(exchange.response)
    }
    return true
  }

  finish(exchange: Exchange, outcome: Outcome): void {
    exchange.taken = false
    this.takenCount--
    if (outcome === 'forward') this.ask(exchange, exchange.step + 1)
    else this.obey(exchange, outcome)
  }

  /** Counts the replies that have been given to the socket in this event. */
  record(): void {
    if (this.finished.length === 0) return
    const { runtime, meter } = this.connection.context
    const now = runtime.now()
    for (const exchange of this.finished) {
      meter.response(exchange.apiKey, exchange.apiVersion, exchange.responseBytes)
      // A broker may answer, with an error, before it has read the request to its end; local answers never went there.
      const sent = exchange.sentAt !== 0 && exchange.answeredAt >= exchange.sentAt
      const brokerMs = sent ? exchange.answeredAt - exchange.sentAt : 0
      meter.latency(exchange.apiKey, now - exchange.receivedAt - brokerMs, brokerMs, exchange.plan.longPoll)
    }
    this.finished.length = 0
  }
}

const nothing = Buffer.alloc(0)
