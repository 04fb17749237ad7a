/**
 * Requests about a transaction that may not overtake its batches: while a Produce of a transactional id is held, EndTxn
 * and AddPartitionsToTxn of the same id wait, on whatever connection they come (the coordinator is another broker).
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'

interface Held {
  produces: number
  readonly waiting: Exchange[]
}

/** From this version on AddPartitionsToTxn is a request between brokers, with many transactions in it. */
const batchedFrom = 4

export class TransactionHolds {
  private readonly byId = new Map<string, Held>()

  /** A Produce of this transaction waits. */
  hold(transactionalId: string): void {
    const held = this.byId.get(transactionalId)
    if (held === undefined) this.byId.set(transactionalId, { produces: 1, waiting: [] })
    else held.produces++
  }

  /** It has ended; with the last one, whoever waited goes on. */
  release(transactionalId: string): void {
    const held = this.byId.get(transactionalId)
    if (held === undefined || --held.produces > 0) return
    this.byId.delete(transactionalId)
    for (const exchange of held.waiting) exchange.finish('forward')
  }

  /** @returns whether the request has to wait; the caller then takes it, and it goes on by itself */
  queue(exchange: Exchange): boolean {
    if (this.byId.size === 0) return false
    const id = transactionOf(exchange)
    const held = id === undefined ? undefined : this.byId.get(id)
    held?.waiting.push(exchange)
    return held !== undefined
  }
}

function transactionOf(exchange: Exchange): string | undefined {
  const { request, apiKey, apiVersion } = exchange
  const at = exchange.requestBodyAt()
  if (request === undefined || at < 0) return undefined
  if (apiKey === apiKeys.AddPartitionsToTxn && apiVersion >= batchedFrom) return undefined
  const reader = new Reader(request.bytes, at, request.at + request.total)
  try {
    return apiVersion >= 3 ? reader.compactString() : reader.string()
  } catch (error) {
    if (error instanceof ProtocolError) return undefined // the broker's business
    throw error
  }
}
