/**
 * A client connection and the broker connection it is paired with.
 *
 * `order` holds the replies owed to the client, in request order; `sent` the requests that the broker has not answered.
 * Both are the only places that map correlation ids and restore order. After every event `settle` looks at the whole
 * state and acts: writes what was gathered, pauses and resumes reading, carries over half-closes.
 * Invariant: reading from one side stops while the other side does not keep up, and every byte that is kept is bounded.
 */
import type { ChunkPool } from '../net/chunk-pool.ts'
import { Outgoing } from '../net/outgoing.ts'
import { RequestLink } from '../net/request-link.ts'
import { Ring } from '../net/ring.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Socket } from '../runtime/socket.ts'
import type { Log } from '../telemetry/log.ts'
import type { CloseReason, Meter, PausedFor } from '../telemetry/meter.ts'
import { closeReasonOf } from './close-reason.ts'
import type { Exchange } from './exchange.ts'
import type { Frame } from './frame.ts'
import { own } from './frame.ts'
import type { Outcome } from './handler.ts'
import { Holds } from './holds.ts'
import type { Instance, InstanceConnection, InstanceRegistry } from './instance.ts'
import { OwnRequests, type Reply } from './own-requests.ts'
import type { Plans } from './plan.ts'
import { RequestSide } from './request-side.ts'
import { ResponseSide } from './response-side.ts'

/** A broker's address, as the proxy dials it. */
export interface Target {
  readonly host: string
  readonly port: number
}

export interface ConnectionLimits {
  readonly requestBytes: number
  readonly responseBytes: number
  readonly inFlight: number
  readonly bufferedBytes: number
  readonly headerTimeoutMs: number
  readonly progressTimeoutMs: number
  /** 0: never. */
  readonly idleTimeoutMs: number
  readonly holdFrames: number
  readonly dialTimeoutMs: number
}

export interface ConnectionContext {
  readonly runtime: Runtime
  readonly pool: ChunkPool
  readonly plans: Plans
  readonly limits: ConnectionLimits
  readonly meter: Meter
  readonly log: Log
  readonly instances: InstanceRegistry
  readonly listener: string
  readonly nodeId: number
  /**
   * Where to dial; asked again after a failed attempt. undefined: nowhere (left). A promise while a broker that is not
   * known yet is looked up.
   */
  target(attempt: number): Target | undefined | Promise<Target | undefined>
  onClose(connection: Connection): void
}

export class Connection implements InstanceConnection {
  readonly id: number
  readonly context: ConnectionContext
  readonly listener: string
  readonly nodeId: number
  readonly client: Socket
  readonly order = new Ring<Exchange>()
  readonly sent = new Ring<Exchange>()
  readonly toClient: Outgoing
  readonly toUpstream: Outgoing
  readonly requests: RequestSide
  readonly responses: ResponseSide
  readonly holds: Holds
  readonly own: OwnRequests
  readonly openedAt: number
  instance: Instance | undefined
  clientId: string | null = null
  /** Requests were seen that only an authenticated connection sends: a second one cannot be opened by us (yet). */
  authenticates = false
  upstream: Socket | undefined
  upstreamAddress = ''
  requestCount = 0
  /** No more requests are wanted: the process stops. */
  draining = false
  closed: CloseReason | undefined
  private cause: CloseReason | undefined
  private dialled: Socket | undefined
  private clientPaused: PausedFor | undefined
  private clientPausedAt = 0
  private upstreamPausedAt = 0
  private clientEnded = false
  private upstreamEnded = false
  private endedClient = false
  private endedUpstream = false
  private halfClosedAt = 0
  private attempts = 0

  constructor(id: number, client: Socket, context: ConnectionContext) {
    this.id = id
    this.context = context
    this.listener = context.listener
    this.nodeId = context.nodeId
    this.client = client
    this.toClient = new Outgoing(client, context.pool)
    this.toUpstream = new Outgoing(undefined, context.pool)
    this.requests = new RequestSide(this)
    this.responses = new ResponseSide(this)
    this.holds = new Holds(context.runtime, (exchange) => this.requests.again(exchange))
    this.own = new OwnRequests(this)
    this.openedAt = context.runtime.now()
    this.instance = context.instances.opened(this)
    context.meter.opened()
  }

  get remoteAddress(): string {
    return this.client.remoteAddress
  }

  get localAddress(): string {
    return this.client.localAddress
  }

  /** Dials the broker and begins to read. */
  open(): void {
    this.client.resume()
    void this.dial()
  }

  /** A request of our own on the client's authenticated broker connection; rejects when the connection closes. */
  ask(apiKey: number, apiVersion: number, body: Buffer): Promise<Reply> {
    return this.own.ask(apiKey, apiVersion, body)
  }

  /** A second connection to the same broker; the caller closes it. */
  async side(): Promise<RequestLink | 'cannot-authenticate'> {
    if (this.authenticates) return 'cannot-authenticate'
    const target = await this.context.target(0)
    if (target === undefined) throw new Error(`no address is known for node ${this.nodeId}`)
    const { runtime, pool, limits } = this.context
    return RequestLink.open(runtime, pool, { ...target, timeoutMs: limits.dialTimeoutMs, clientId: this.clientId })
  }

  finish(exchange: Exchange, outcome: Outcome): void {
    if (this.closed !== undefined) return
    if (exchange.stage === 'request') this.requests.finish(exchange, outcome)
    else this.responses.finish(exchange, outcome)
    this.settle()
  }

  /** Sends a reply when its turn comes: now if it is the oldest owed, else it is parked. */
  reply(exchange: Exchange, frame: Frame): void {
    if (exchange.noReply) return
    exchange.responseBytes = frame.total
    exchange.complete = true
    exchange.stage = 'response'
    if (this.order.peek() !== exchange) {
      exchange.parked = [{ buffer: own(frame).bytes, length: frame.total }]
      return
    }
    frame.bytes.writeInt32BE(exchange.correlationId, frame.at + 4)
    if (frame.owned) this.toClient.push(frame.bytes, frame.total)
    else this.toClient.lend(frame.bytes, frame.at, frame.at + frame.total)
    this.replied()
  }

  /** The oldest reply is complete: others that were waiting for it go now. */
  replied(): void {
    for (;;) {
      const done = this.order.shift()
      if (done !== undefined) this.responses.finished.push(done)
      const head = this.order.peek()
      if (head?.parked === undefined) return
      this.unpark(head)
      if (!head.complete) return
    }
  }

  private unpark(head: Exchange): void {
    const pieces = head.parked ?? []
    head.parked = undefined
    pieces[0]?.buffer.writeInt32BE(head.correlationId, 4)
    for (const { buffer, length } of pieces) this.toClient.push(buffer, length)
  }

  /** Closes both sides; `detail` says what happened and is logged. */
  close(reason: CloseReason, detail = '', reset = false): void {
    if (this.closed !== undefined) return
    this.closed = reason
    this.toClient.flush()
    const { context } = this
    this.unpauseClient()
    this.unpauseUpstream()
    this.requests.reader.stop()
    this.responses.reader.stop()
    this.holds.clear()
    this.toUpstream.drop()
    context.meter.inFlight(-this.sent.length)
    this.own.fail(`the connection closed: ${reason}`)
    for (const handler of context.plans.handlers) handler.onClose?.(this)
    this.hangUp(reset)
    context.meter.closed(reason)
    context.instances.closed(this)
    this.report(reason, detail)
    context.onClose(this)
  }

  /** What was written is still sent: a FIN behind it, and a deadline for a peer that does not answer it. */
  private hangUp(reset: boolean): void {
    this.dialled?.destroy(reset)
    if (reset) {
      this.client.destroy(true)
      return
    }
    this.client.resume()
    this.client.end()
    this.context.runtime.timer(lingerMs, () => this.client.destroy())
  }

  private report(reason: CloseReason, detail: string): void {
    const { log, runtime } = this.context
    const fields = {
      connection: this.id,
      listener: this.listener,
      node: this.nodeId,
      client: `${this.client.remoteAddress}:${this.client.remotePort}`,
      clientId: this.clientId,
      reason,
      requests: this.requestCount,
      seconds: Math.round(runtime.now() - this.openedAt) / 1000,
      ...(detail === '' ? {} : { detail }),
    }
    if (normalReasons.has(reason)) log.info(fields, 'connection closed')
    else log.warn(fields, `connection closed: ${detail === '' ? reason : detail}`)
  }

  /** The resume loop. */
  settle(): void {
    if (this.closed !== undefined) return
    this.toUpstream.flush()
    this.requests.stamp()
    this.toClient.flush()
    this.responses.record()
    this.balance()
    this.carryEnds()
    if (this.draining && this.order.length === 0) this.close('drained')
  }

  private balance(): void {
    const { limits } = this.context
    if (this.toUpstream.pendingBytes > limits.bufferedBytes) this.pauseClient('upstream')
    else if (this.holds.size >= limits.holdFrames) this.pauseClient('hold')
    else if (this.order.length >= limits.inFlight) this.pauseClient('upstream')
    else this.unpauseClient()
    if (this.toClient.pendingBytes > limits.bufferedBytes) this.pauseUpstream()
    else this.unpauseUpstream()
  }

  private pauseClient(what: PausedFor): void {
    if (this.clientPaused !== undefined) return
    this.clientPaused = what
    this.clientPausedAt = this.context.runtime.now()
    this.client.pause()
  }

  private unpauseClient(): void {
    if (this.clientPaused === undefined) return
    const now = this.context.runtime.now()
    this.context.meter.paused(this.clientPaused, (now - this.clientPausedAt) / 1000)
    this.clientPaused = undefined
    this.requests.reader.lastByteAt = now
    this.client.resume()
  }

  private pauseUpstream(): void {
    if (this.upstreamPausedAt !== 0 || this.upstream === undefined) return
    this.upstreamPausedAt = this.context.runtime.now()
    this.upstream.pause()
  }

  private unpauseUpstream(): void {
    if (this.upstreamPausedAt === 0) return
    const now = this.context.runtime.now()
    this.context.meter.paused('downstream', (now - this.upstreamPausedAt) / 1000)
    this.upstreamPausedAt = 0
    this.responses.reader.lastByteAt = now
    this.upstream?.resume()
  }

  private carryEnds(): void {
    if (this.clientEnded && !this.endedUpstream && this.holds.size === 0 && this.upstream !== undefined) {
      this.endedUpstream = true
      this.upstream.end()
    }
    if (this.upstreamEnded && !this.endedClient) {
      this.endedClient = true
      this.client.end()
    }
    if (this.clientEnded && this.upstreamEnded) this.close(this.cause ?? 'client_closed')
  }

  onClientEnd(): void {
    if (this.closed !== undefined) return
    this.clientEnded = true
    this.ending('client_closed')
  }

  onUpstreamEnd(): void {
    if (this.closed !== undefined) return
    this.upstreamEnded = true
    this.ending('broker_closed')
  }

  private ending(cause: CloseReason): void {
    this.cause ??= cause
    this.halfClosedAt ||= this.context.runtime.now()
    this.settle()
  }

  onClientClose(error: NodeJS.ErrnoException | undefined): void {
    if (this.closed !== undefined) return
    const reason = error === undefined ? (this.cause ?? 'client_closed') : closeReasonOf(error, 'client_error')
    this.close(reason, error === undefined ? '' : describe(error), error !== undefined)
  }

  onUpstreamClose(error: NodeJS.ErrnoException | undefined): void {
    if (this.closed !== undefined) return
    if (this.upstream === undefined) {
      void this.dial(error)
      return
    }
    const reason = error === undefined ? (this.cause ?? 'broker_closed') : closeReasonOf(error, 'broker_error')
    this.close(
      reason,
      error === undefined ? '' : `broker ${this.upstreamAddress}: ${describe(error)}`,
      error !== undefined,
    )
  }

  onUpstreamConnect(): void {
    if (this.closed !== undefined || this.dialled === undefined) return
    this.upstream = this.dialled
    this.upstreamAddress = `${this.upstream.remoteAddress}:${this.upstream.remotePort}`
    this.context.log.debug({ connection: this.id, broker: this.upstreamAddress }, 'broker connected')
    this.toUpstream.attach(this.upstream)
    this.settle()
  }

  private async dial(failure?: Error): Promise<void> {
    const { runtime, limits } = this.context
    const found = this.context.target(this.attempts++)
    const target = found instanceof Promise ? await found : found
    if (this.closed !== undefined) return
    if (target === undefined) {
      this.close('broker_unreachable', failure === undefined ? 'no broker address is known' : failure.message)
      return
    }
    this.dialled = runtime.dial({ ...target, timeoutMs: limits.dialTimeoutMs }, this.responses)
  }

  /** Looks for what has taken too long. Called about once a second. */
  sweep(now: number): void {
    const { limits } = this.context
    const client = this.clientPaused === undefined ? this.requests.reader : undefined
    if (client?.incomplete === true) {
      if (client.waitsForHeader && now - client.partialSince > limits.headerTimeoutMs)
        return this.close(
          'progress_timeout',
          `the client sent less than a frame's size in ${limits.headerTimeoutMs} ms`,
        )
      if (now - client.lastByteAt > limits.progressTimeoutMs)
        return this.close('progress_timeout', `no byte of a begun request in ${limits.progressTimeoutMs} ms`)
    }
    const broker = this.upstreamPausedAt === 0 ? this.responses.reader : undefined
    if (broker?.incomplete === true && now - broker.lastByteAt > limits.progressTimeoutMs)
      return this.close('progress_timeout', `no byte of a begun answer in ${limits.progressTimeoutMs} ms`)
    if (this.halfClosedAt !== 0 && now - this.halfClosedAt > limits.progressTimeoutMs)
      return this.close(this.cause ?? 'client_closed')
    if (limits.idleTimeoutMs > 0 && this.order.length === 0 && now - this.lastActivity() > limits.idleTimeoutMs)
      this.close('idle_timeout')
  }

  private lastActivity(): number {
    return Math.max(this.openedAt, this.requests.reader.lastByteAt, this.responses.reader.lastByteAt)
  }

  /** No new requests; closes as soon as nothing is owed any more. */
  drain(): void {
    this.draining = true
    this.settle()
  }
}

/** How long a closed client may take to answer our FIN before it is dropped. */
const lingerMs = 2000

const normalReasons: ReadonlySet<CloseReason> = new Set([
  'client_closed',
  'broker_closed',
  'idle_timeout',
  'drained',
  'shutdown',
])

function describe(error: NodeJS.ErrnoException): string {
  return error.code === undefined ? error.message : `${error.code} (${error.message})`
}
