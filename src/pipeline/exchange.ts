/** One request of a client and its reply, from the first byte read to the last byte sent. */
import { peekBodyStart } from '../protocol/peek.ts'
import type { Connection } from './connection.ts'
import type { Frame } from './frame.ts'
import type { Handler, Outcome, Scanner } from './handler.ts'
import type { Plan } from './plan.ts'

/** Part of a reply that waits for its turn. */
export interface Piece {
  readonly buffer: Buffer
  readonly length: number
}

export class Exchange {
  readonly connection: Connection
  readonly plan: Plan
  readonly apiKey: number
  readonly apiVersion: number
  /** The client's; upstream has another one. */
  readonly correlationId: number
  upstreamId = 0
  /** Produce with acks=0: the broker sends nothing, nor do we. */
  noReply = false
  /** Times on the runtime's clock, in milliseconds. */
  receivedAt: number
  sentAt = 0
  answeredAt = 0
  requestBytes: number
  responseBytes = 0
  /** The request while it is here: during `onRequest`, and for as long as a handler has taken it. */
  request: Frame | undefined
  /** The reply while it is here. */
  response: Frame | undefined
  /** A Fetch request as it was sent, so that it can be answered early when the process stops. */
  kept: Frame | undefined
  /** What a reply that may not go yet consists of so far. */
  parked: Piece[] | undefined
  complete = false
  /** Replied to without the broker: what the broker still sends is dropped. */
  abandoned = false
  /** A handler has taken it and will end it by `finish`. */
  taken = false
  /** Its place among the client's requests on this connection, from 1; 0 for our own. */
  number = 0
  /** Requests in the same lane keep their order; see `hold`. Those named by several handlers add up. */
  lanes: readonly string[] = noLanes
  /** How far the handlers have come. */
  step = 0
  stage: 'request' | 'waiting' | 'response' = 'request'
  scanner: Scanner | undefined
  private states: Map<Handler, unknown> | undefined

  constructor(
    connection: Connection,
    plan: Plan,
    apiKey: number,
    apiVersion: number,
    correlationId: number,
    requestBytes: number,
    receivedAt: number,
  ) {
    this.connection = connection
    this.plan = plan
    this.apiKey = apiKey
    this.apiVersion = apiVersion
    this.correlationId = correlationId
    this.requestBytes = requestBytes
    this.receivedAt = receivedAt
  }

  /** Where the request's body starts in `request.bytes`; −1 if its header is malformed. */
  requestBodyAt(): number {
    const { request } = this
    return request === undefined ? -1 : peekBodyStart(request.bytes, request.at + 4, request.at + request.total)
  }

  /** A handler's own state for this exchange. */
  state<T>(handler: Handler): T | undefined {
    return this.states?.get(handler) as T | undefined
  }

  setState(handler: Handler, state: unknown): void {
    this.states ??= new Map()
    this.states.set(handler, state)
  }

  /** Ends what a handler has begun with `taken`. Does nothing on a dead connection, or where it was ended before. */
  finish(outcome: Outcome): void {
    this.connection.finish(this, outcome)
  }

  /**
   * Holds the request back: later requests that name one of `lanes` (by `queue`) wait behind it, all others go upstream
   * at once; replies keep their order in any case. The handler that calls this returns `taken`, and ends it by `finish`.
   * @param deadlineMs after this long, `outcome` happens by itself
   */
  hold(lanes: readonly string[], deadlineMs: number, outcome: Outcome): void {
    this.addLanes(lanes)
    this.connection.holds.add(this, deadlineMs, outcome)
  }

  /** @returns whether the request has to wait behind a held one; it is then asked about again (`onRequest`) when free */
  queue(lanes: readonly string[]): boolean {
    this.addLanes(lanes)
    return this.connection.holds.queue(this)
  }

  private addLanes(lanes: readonly string[]): void {
    const more = lanes.filter((lane) => !this.lanes.includes(lane))
    if (more.length > 0) this.lanes = [...this.lanes, ...more]
  }
}

const noLanes: readonly string[] = []
