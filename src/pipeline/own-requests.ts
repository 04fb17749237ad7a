/** Requests of our own on a client's authenticated broker connection, between the client's own. */
import { requestFrameOf } from '../protocol/encode.ts'
import { peekResponseBodyStart } from '../protocol/peek.ts'
import type { Connection } from './connection.ts'
import { Exchange } from './exchange.ts'
import { type Frame, own } from './frame.ts'

/** An answer to a request of our own. */
export interface Reply {
  readonly frame: Frame
  /** Where the body starts in `frame.bytes`; it ends at `frame.total`. */
  readonly bodyAt: number
}

interface Waiter {
  resolve(reply: Reply): void
  reject(error: Error): void
}

export class OwnRequests {
  private readonly connection: Connection
  private readonly waiters = new Map<Exchange, Waiter>()
  private lastId = 0

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** Correlation ids upstream: ours and the client's requests share one sequence. */
  nextId(): number {
    this.lastId = (this.lastId + 1) & 0x7fffffff
    return this.lastId
  }

  /** Requests of ours that wait for their answer. */
  get size(): number {
    return this.waiters.size
  }

  owns(exchange: Exchange): boolean {
    return this.waiters.has(exchange)
  }

  ask(apiKey: number, apiVersion: number, body: Buffer): Promise<Reply> {
    const { connection } = this
    const plan = connection.context.plans.find(apiKey, apiVersion)
    if (connection.closed !== undefined || plan === undefined)
      return Promise.reject(
        new Error(`request of api ${apiKey} v${apiVersion} on a connection that is closed or too old`),
      )
    return new Promise((resolve, reject) => {
      const bytes = requestFrameOf({ apiKey, apiVersion, correlationId: 0, clientId: connection.clientId }, body)
      const now = connection.context.runtime.now()
      const exchange = new Exchange(connection, plan, apiKey, apiVersion, 0, bytes.length, now)
      this.waiters.set(exchange, { resolve, reject })
      connection.requests.sendOwn(exchange, bytes)
      connection.settle()
    })
  }

  /** Sends a request that brokers do not answer: Produce with acks=0. */
  tell(apiKey: number, apiVersion: number, body: Buffer): void {
    const { connection } = this
    const plan = connection.context.plans.find(apiKey, apiVersion)
    if (connection.closed !== undefined || plan === undefined) return
    const bytes = requestFrameOf({ apiKey, apiVersion, correlationId: 0, clientId: connection.clientId }, body)
    const exchange = new Exchange(
      connection,
      plan,
      apiKey,
      apiVersion,
      0,
      bytes.length,
      connection.context.runtime.now(),
    )
    exchange.noReply = true
    connection.requests.sendOwn(exchange, bytes)
    connection.settle()
  }

  /** @returns whether the answer was for one of ours */
  deliver(exchange: Exchange, frame: Frame): boolean {
    if (this.waiters.size === 0) return false
    const waiter = this.waiters.get(exchange)
    if (waiter === undefined) return false
    this.waiters.delete(exchange)
    const reply = own(frame)
    const bodyAt = peekResponseBodyStart(exchange.apiKey, exchange.apiVersion, reply.bytes, 4, reply.total)
    if (bodyAt < 0) {
      waiter.reject(new Error('the answer has a malformed header'))
      this.connection.close('malformed_response', 'an answer to a request of our own has a malformed header')
    } else waiter.resolve({ frame: reply, bodyAt })
    return true
  }

  fail(message: string): void {
    for (const waiter of this.waiters.values()) waiter.reject(new Error(message))
    this.waiters.clear()
  }
}
