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
import type { CloseReason, Meter } from '../telemetry/meter.ts'
import { closeReasonOf, describeError, logClose } from './close-reason.ts'
import type { Exchange } from './exchange.ts'
import type { Frame } from './frame.ts'
import { own } from './frame.ts'
import type { Outcome } from './handler.ts'
import { hangUp } from './hang-up.ts'
import { Holds } from './holds.ts'
import type { Instance, InstanceConnection, InstanceRegistry } from './instance.ts'
import { slowBroker, slowClient } from './overdue.ts'
import { OwnRequests, type Reply } from './own-requests.ts'
import { Pause } from './pauses.ts'
import type { Plans } from './plan.ts'
import { RequestSide } from './request-side.ts'
import { ResponseSide } from './response-side.ts'
import type { Tap } from './tap.ts'

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
  readonly tap: Tap
  readonly listener: string
  readonly nodeId: number
  /**
   * Where to dial, given what was tried in vain; undefined: nowhere (left). A promise while a broker that is not known
   * yet is looked up.
   */
  target(tried: readonly Target[]): Target | undefined | Promise<Target | undefined>
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
  private readonly clientPause: Pause
  private readonly upstreamPause: Pause
  /** Bytes of replies that wait for their turn. */
  private parkedBytes = 0
  private clientEnded = false
  private upstreamEnded = false
  private endedClient = false
  private endedUpstream = false
  private halfClosedAt = 0
  private readonly tried: Target[] = []

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
    this.clientPause = new Pause(context.runtime, context.meter, this.requests.reader)
    this.upstreamPause = new Pause(context.runtime, context.meter, this.responses.reader)
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
    const target = await this.context.target([])
    if (target === undefined) throw new Error(`no address is known for node ${this.nodeId}`)
    const { runtime, pool, limits } = this.context
    return RequestLink.open(runtime, pool, { ...target, timeoutMs: limits.dialTimeoutMs, clientId: this.clientId })
  }

  finish(exchange: Exchange, outcome: Outcome): void {
    if (this.closed !== undefined || !exchange.taken) return
    this.guard(() => {
      if (exchange.stage === 'request') this.requests.finish(exchange, outcome)
      else this.responses.finish(exchange, outcome)
      this.settle()
    })
  }

  /** A bug met outside a socket's event costs this connection, as one met inside does. */
  private guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.close(closeReasonOf(error as Error, 'internal_error'), describeError(error as Error))
    }
  }

  /** Sends a reply when its turn comes: now if it is the oldest owed, else it is parked. */
  reply(exchange: Exchange, frame: Frame): void {
    if (exchange.noReply) return
    exchange.responseBytes = frame.total
    exchange.complete = true
    exchange.stage = 'response'
    if (this.context.tap.active) this.context.tap.response(exchange, frame.bytes, frame.at, frame.at + frame.total)
    if (this.order.peek() !== exchange) {
      this.park(exchange, own(frame).bytes, frame.total)
      return
    }
    frame.bytes.writeInt32BE(exchange.correlationId, frame.at + 4)
    if (frame.owned) this.toClient.push(frame.bytes, frame.total)
    else this.toClient.lend(frame.bytes, frame.at, frame.at + frame.total)
    this.replied()
  }

  /** Keeps a piece of a reply that may not go yet. */
  park(exchange: Exchange, buffer: Buffer, length: number): void {
    ;(exchange.parked ??= []).push({ buffer, length })
    this.parkedBytes += length
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
    for (const { buffer, length } of pieces) {
      this.parkedBytes -= length
      this.toClient.push(buffer, length)
    }
  }

  /** Closes both sides; `detail` says what happened and is logged. */
  close(reason: CloseReason, detail = '', reset = false): void {
    if (this.closed !== undefined) return
    this.closed = reason
    this.toClient.flush()
    if (this.upstream !== undefined && !this.requests.isStreaming) this.toUpstream.flush()
    const { context } = this
    this.clientPause.end(this.client)
    this.upstreamPause.end(undefined)
    this.requests.reader.stop()
    this.responses.reader.stop()
    this.holds.clear()
    this.toUpstream.drop()
    context.meter.inFlight(-this.sent.length)
    this.own.fail(`the connection closed: ${reason}`)
    hangUp(context.runtime, this.client, this.dialled, reset, this.requests.isStreaming)
    context.meter.closed(reason)
    context.instances.closed(this)
    logClose(this, reason, detail)
    context.onClose(this)
    for (const handler of context.plans.handlers) this.guard(() => handler.onClose?.(this))
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
    if (this.draining && this.isIdle()) this.close('drained')
  }

  /** Nothing is owed to either side, and everything sent was taken. */
  private isIdle(): boolean {
    const owed = this.order.length > 0 || this.requests.pending
    return !owed && this.toClient.pendingBytes === 0 && (this.upstream?.pendingBytes ?? 0) === 0
  }

  private balance(): void {
    const { limits } = this.context
    if (this.toUpstream.pendingBytes > limits.bufferedBytes) this.clientPause.begin(this.client, 'upstream')
    else if (this.requests.mustRead) this.clientPause.end(this.client)
    else if (this.requests.readWhileTaken > limits.holdFrames) this.clientPause.begin(this.client, 'hold')
    else if (this.order.length >= limits.inFlight) this.clientPause.begin(this.client, 'upstream')
    else if (this.draining && !this.requests.isStreaming) this.clientPause.begin(this.client, 'hold')
    else this.clientPause.end(this.client)
    if (this.toClient.pendingBytes > limits.bufferedBytes) this.upstreamPause.begin(this.upstream, 'downstream')
    else if (this.parkedBytes > limits.bufferedBytes && this.isHeldUp()) this.upstreamPause.begin(this.upstream, 'hold')
    else this.upstreamPause.end(this.upstream)
  }

  /** Replies wait for a handler, which does not wait for the broker: nothing more need be read until it is done. */
  private isHeldUp(): boolean {
    return this.order.peek()?.taken === true && this.own.size === 0
  }

  /** Half-closes go to the other side, behind everything that is still to be sent there. */
  private carryEnds(): void {
    if (this.clientEnded && !this.endedUpstream && this.upstream !== undefined && this.allSent()) {
      this.endedUpstream = true
      this.upstream.end()
    }
    if (this.upstreamEnded && !this.endedClient && this.responses.takenCount === 0) {
      this.endedClient = true
      this.client.end()
    }
    // A client that still reads is left to itself: its socket closes when it has everything.
    if (this.endedClient && this.clientEnded && this.client.pendingBytes === 0)
      this.close(this.cause ?? 'client_closed')
  }

  /** A client that ended inside a request ends it upstream too: what waits behind can never be sent. */
  private allSent(): boolean {
    return this.requests.isStreaming || (!this.requests.pending && this.own.size === 0)
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
    this.close(reason, error === undefined ? '' : describeError(error), error !== undefined)
  }

  onUpstreamClose(error: NodeJS.ErrnoException | undefined): void {
    if (this.closed !== undefined) return
    if (this.upstream === undefined) {
      void this.dial(error)
      return
    }
    const reason =
      error === undefined ? (this.cause ?? 'broker_closed') : closeReasonOf(error, 'broker_error', 'malformed_response')
    this.close(
      reason,
      error === undefined ? '' : `broker ${this.upstreamAddress}: ${describeError(error)}`,
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
    try {
      const found = this.context.target(this.tried)
      const target = found instanceof Promise ? await found : found
      if (this.closed !== undefined) return
      if (target === undefined) {
        this.close('broker_unreachable', failure === undefined ? 'no broker address is known' : failure.message)
        return
      }
      this.tried.push(target)
      this.dialled = runtime.dial({ ...target, timeoutMs: limits.dialTimeoutMs }, this.responses)
    } catch (error) {
      this.close('broker_unreachable', describeError(error as Error)) // an address that nobody can dial
    }
  }

  /** Looks for what has taken too long. Called about once a second. */
  sweep(now: number): void {
    const { limits } = this.context
    const late =
      (this.clientPause.active ? undefined : slowClient(this.requests.reader, limits, now)) ??
      (this.upstreamPause.active ? undefined : slowBroker(this.responses.reader, limits, now))
    if (late !== undefined) return this.close(late.reason, late.detail)
    if (this.halfClosedAt !== 0 && now - this.halfClosedAt > limits.progressTimeoutMs)
      return this.close(this.cause ?? 'client_closed')
    if (limits.idleTimeoutMs > 0 && this.order.length === 0 && now - this.lastActivity() > limits.idleTimeoutMs)
      this.close('idle_timeout')
  }

  private lastActivity(): number {
    return Math.max(this.openedAt, this.requests.reader.lastByteAt, this.responses.reader.lastByteAt)
  }

  /** Reads no new requests, and closes as soon as nothing is owed any more; to be called again until it has. */
  drain(): void {
    this.draining = true
    this.guard(() => this.settle())
  }
}
