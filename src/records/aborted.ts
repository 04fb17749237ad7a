/**
 * Which batches belong to aborted transactions, decided as a read_committed consumer does (KIP-98): the answer lists
 * (producer id, first offset) of each aborted transaction that touches it; from that offset on the producer's
 * transactional batches are aborted, up to its ABORT marker.
 *
 * Invariant: batches are shown in log order, each once; the list may be in any order.
 */
import { isControl, isTransactional, lastOffsetOf, producerIdOf } from './batch.ts'
import { controlTypeOf, controlTypes } from './control.ts'

export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
}

export class AbortedBatches {
  private readonly waiting: AbortedTransaction[]
  private readonly aborting = new Set<number>()
  private next = 0

  constructor(transactions: readonly AbortedTransaction[]) {
    this.waiting = [...transactions].sort((a, b) => a.firstOffset - b.firstOffset)
  }

  /** Whether the complete entry [at, end) holds records of an aborted transaction. Never true for a marker. */
  includes(bytes: Buffer, at: number, end: number): boolean {
    if (!isTransactional(bytes, at)) return false
    const lastOffset = lastOffsetOf(bytes, at)
    for (let first = this.waiting[this.next]; first !== undefined; first = this.waiting[this.next]) {
      if (first.firstOffset > lastOffset) break
      this.aborting.add(first.producerId)
      this.next++
    }
    const producerId = producerIdOf(bytes, at)
    if (!isControl(bytes, at)) return this.aborting.has(producerId)
    if (controlTypeOf(bytes, at, end) === controlTypes.abort) this.aborting.delete(producerId)
    return false
  }
}
