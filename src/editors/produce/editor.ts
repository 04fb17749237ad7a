/**
 * The Produce editor. A request passes unopened, and a long one streams by, unless the policy wants it opened; then each
 * of its batches is forwarded, held or answered as the policy says (opened.ts). Requests that brokers could not read
 * either are left to them.
 *
 * Invariant: what was decided goes upstream before anything that comes later, so batches of one partition keep the order
 * in which the policy let them go. The policy may decide of earlier batches whenever it is asked about a later one.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ProduceRequest } from '../../protocol/generated/00-produce.ts'
import { peekAcks, peekBodyStart, peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Connection } from '../../pipeline/connection.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, own } from '../../pipeline/frame.ts'
import { type Handler, type Interest, taken, type Verdict } from '../../pipeline/handler.ts'
import type { BrokerAddresses } from '../addresses.ts'
import { ProduceLane } from './lane.ts'
import { OpenedProduce, type Part } from './opened.ts'
import type { ProducePolicy } from './policy.ts'
import { TransactionHolds } from './transactions.ts'

const api = codec(apiKeys.Produce)

export class ProduceEditor implements Handler {
  readonly name = 'produce'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.Produce, side: 'request', depth: 'full' },
    { apiKey: apiKeys.Produce, side: 'response', depth: 'full' },
    { apiKey: apiKeys.AddPartitionsToTxn, side: 'request', depth: 'full' },
    { apiKey: apiKeys.EndTxn, side: 'request', depth: 'full' },
    { apiKey: apiKeys.InitProducerId, side: 'request', depth: 'full' },
  ]
  private readonly policy: ProducePolicy
  private readonly addresses: BrokerAddresses
  private readonly lanes = new WeakMap<Connection, ProduceLane>()
  /** Opened requests that were not answered yet. */
  private readonly open = new Map<Connection, Set<OpenedProduce>>()
  private readonly transactions = new TransactionHolds()
  /** Parts of requests that were taken apart, in the order in which they were decided, not carried out yet. */
  private decided: { readonly opened: OpenedProduce; readonly part: Part }[] = []

  constructor(policy: ProducePolicy, addresses: BrokerAddresses) {
    this.policy = policy
    this.addresses = addresses
  }

  onRequest(exchange: Exchange): Verdict {
    if (this.decided.length > 0) this.flush()
    if (exchange.apiKey === apiKeys.InitProducerId) {
      this.policy.identified(this.lane(exchange.connection))
      return undefined
    }
    if (exchange.apiKey !== apiKeys.Produce) return this.transactions.queue(exchange) ? taken : undefined
    const { request, connection, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0) return undefined
    const lane = this.lane(connection)
    lane.began(exchange.noReply, exchange.receivedAt)
    if (this.policy.opens(lane, apiVersion, request.bytes, at, request.at + request.total))
      return this.openUp(exchange, lane, own(request))
    if (this.decided.length > 0) this.flush()
    if (!exchange.noReply) lane.passed()
    return undefined
  }

  letsStream(connection: Connection, head: Buffer): boolean {
    if (head.readInt16BE(4) !== apiKeys.Produce || connection.requestCount === 0) return false
    if (this.decided.length > 0) this.flush()
    const version = head.readInt16BE(6)
    const at = peekBodyStart(head, 4, head.length)
    const acks = at < 0 ? undefined : peekAcks(head, at, version, head.length)
    if (acks === undefined) return false
    const lane = this.lane(connection)
    if (this.policy.opens(lane, version, head, at, head.length)) return false
    if (this.decided.length > 0) this.flush()
    lane.began(acks === 0, connection.context.runtime.now())
    if (acks !== 0) lane.passed()
    return true
  }

  onResponse(exchange: Exchange): Verdict {
    const { connection, response } = exchange
    const lane = this.lanes.get(connection)
    if (lane === undefined || response === undefined) return undefined
    const opened = exchange.state<OpenedProduce>(this)
    lane.ended(connection.context.runtime.now())
    if (opened !== undefined) this.returned(lane, opened, exchange, response)
    else {
      if (lane.isAwaited && hasFailed(exchange, response)) this.policy.failedUnopened(lane)
      lane.returned()
    }
    return undefined
  }

  onClose(connection: Connection): void {
    const lane = this.lanes.get(connection)
    if (lane === undefined) return
    const open = this.open.get(connection)
    this.open.delete(connection)
    for (const opened of open ?? []) {
      opened.lost()
      this.closeTransaction(opened)
    }
    this.policy.closed(lane)
  }

  private lane(connection: Connection): ProduceLane {
    let lane = this.lanes.get(connection)
    if (lane === undefined) this.lanes.set(connection, (lane = new ProduceLane(connection)))
    return lane
  }

  private openUp(exchange: Exchange, lane: ProduceLane, request: Frame): Verdict {
    exchange.request = request
    const body = decode(request, exchange.requestBodyAt(), exchange.apiVersion)
    if (body === undefined) {
      if (!exchange.noReply) lane.passed()
      return undefined
    }
    const opened = new OpenedProduce(exchange, lane, body)
    let isApart = false
    const admitted = this.policy.admit(opened.batches, (index, verdict) => {
      const part = opened.decide(index, verdict)
      if (isApart && part !== undefined) this.carryOutSoon(opened, [part])
    })
    opened.admit(admitted)
    if (this.decided.length > 0) this.flush()
    switch (opened.way) {
      case 'pass':
        this.passOn(exchange, lane, opened)
        return undefined
      case 'refuse':
        if (!exchange.noReply) lane.ended(exchange.receivedAt)
        return opened.answerWith([])
      case 'apart':
        isApart = opened.isApart = true
        exchange.setState(this, opened)
        this.remember(opened)
        if (body.transactionalId !== null) this.transactions.hold(body.transactionalId)
        // Not now: the pipeline must have it as taken before it can end.
        this.carryOutSoon(
          opened,
          opened.parts.filter(({ fate }) => fate !== 'waiting'),
        )
        return taken
    }
  }

  private passOn(exchange: Exchange, lane: ProduceLane, opened: OpenedProduce): void {
    this.remember(opened)
    if (!exchange.noReply) {
      lane.passed()
      exchange.setState(this, opened)
    }
    opened.pass(() => this.forget(opened))
  }

  private remember(opened: OpenedProduce): void {
    const { connection } = opened.lane
    const known = this.open.get(connection)
    if (known === undefined) this.open.set(connection, new Set([opened]))
    else known.add(opened)
  }

  private forget(opened: OpenedProduce): void {
    const known = this.open.get(opened.lane.connection)
    known?.delete(opened)
    if (known?.size === 0) this.open.delete(opened.lane.connection)
  }

  private carryOutSoon(opened: OpenedProduce, parts: readonly Part[]): void {
    if (this.decided.length === 0) opened.lane.connection.context.runtime.soon(() => this.flush())
    this.decided.push(...parts.map((part) => ({ opened, part })))
  }

  /** Sends and answers whatever was decided, in the order of the decisions; neighbours of one request go together. */
  private flush(): void {
    const decided = this.decided
    this.decided = []
    for (let i = 0; i < decided.length; ) {
      const opened = decided[i]?.opened
      if (opened === undefined) return
      const parts: Part[] = []
      for (let next = decided[i]; next?.opened === opened; next = decided[++i]) parts.push(next.part)
      if (opened.lane.connection.closed !== undefined) continue
      opened.send(parts, () => this.settle(opened))
      this.settle(opened)
    }
  }

  /** Ends a request that was taken apart as soon as each of its batches has a result. */
  private settle(opened: OpenedProduce): void {
    const { exchange, lane } = opened
    if (exchange.noReply) {
      if (opened.isComplete) this.forget(opened)
      if (!opened.isPending) this.endSilently(opened)
      return
    }
    if (!opened.isComplete || opened.isAnswered) return
    opened.isAnswered = true
    this.forget(opened)
    lane.ended(lane.connection.context.runtime.now())
    opened.answer(this.addresses).then(
      (answer) => {
        exchange.finish(answer)
        this.closeTransaction(opened)
      },
      (error: Error) => lane.connection.close('internal_error', error.message),
    )
    if (opened.throttleMs > 0) this.policy.throttled(lane, opened.throttleMs)
  }

  /** acks=0: there is nothing to answer, and a refusal is a closed connection, as with brokers. */
  private endSilently(opened: OpenedProduce): void {
    const { exchange, lane } = opened
    if (opened.hasRefused) {
      lane.connection.close('refused_produce', 'a Produce with acks=0, which has no answer that could say so')
      return
    }
    if (!exchange.taken) return
    exchange.request = undefined
    exchange.finish('forward')
    this.closeTransaction(opened)
  }

  private closeTransaction(opened: OpenedProduce): void {
    const { transactionalId } = opened.body
    if (opened.isApart && transactionalId !== null) this.transactions.release(transactionalId)
    opened.isApart = false
  }

  private returned(lane: ProduceLane, opened: OpenedProduce, exchange: Exchange, response: Frame): void {
    this.forget(opened)
    const answer = opened.answered(bodyOf(exchange, response))
    if (answer !== undefined && answer.throttleTimeMs > 0) this.policy.throttled(lane, answer.throttleTimeMs)
    lane.returned()
  }
}

function decode(frame: Frame, bodyAt: number, version: number): ProduceRequest | undefined {
  try {
    return api.decodeRequest(new Reader(frame.bytes, bodyAt, frame.at + frame.total), version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

function bodyOf(exchange: Exchange, { bytes, at, total }: Frame): Reader {
  const end = at + total
  const bodyAt = peekResponseBodyStart(exchange.apiKey, exchange.apiVersion, bytes, at + 4, end)
  return new Reader(bytes, bodyAt < 0 ? end : bodyAt, end)
}

/** Whether the broker refused some partition. */
function hasFailed(exchange: Exchange, response: Frame): boolean {
  try {
    const { responses } = api.decodeResponse(bodyOf(exchange, response), exchange.apiVersion)
    return responses.some((topic) => topic.partitionResponses.some(({ errorCode }) => errorCode !== 0))
  } catch (error) {
    if (error instanceof ProtocolError) return true
    throw error
  }
}
