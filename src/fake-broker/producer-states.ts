/**
 * What a partition remembers of each idempotent producer: its epoch, its last five batches and whether a transaction
 * is open. A pure state machine; the rules and codes are those of Kafka's ProducerStateManager (KIP-98, KIP-360).
 */
import { errorCodes } from '../protocol/error-codes.ts'

/** As many as a client may have in flight and still be told of a duplicate. */
const REMEMBERED_BATCHES = 5
const SEQUENCE_END = 2 ** 31

interface RememberedBatch {
  firstSequence: number
  lastSequence: number
  baseOffset: number
}

interface ProducerState {
  epoch: number
  batches: RememberedBatch[]
  /** First offset of the open transaction; undefined when none is open. */
  openedAt: number | undefined
}

export interface IncomingBatch {
  producerId: number
  epoch: number
  firstSequence: number
  recordCount: number
  transactional: boolean
}

export type Admission =
  | { outcome: 'append' }
  | { outcome: 'duplicate'; baseOffset: number }
  | { outcome: 'refuse'; errorCode: number }

export class ProducerStates {
  readonly #states = new Map<number, ProducerState>()

  /** Decides about a batch without changing anything. */
  admit(batch: IncomingBatch): Admission {
    const state = this.#states.get(batch.producerId)
    if (state === undefined) return { outcome: 'append' }
    if (batch.epoch < state.epoch) return { outcome: 'refuse', errorCode: errorCodes.INVALID_PRODUCER_EPOCH }
    if (batch.epoch > state.epoch) {
      const fresh = batch.firstSequence === 0 || state.batches.length === 0
      return fresh ? { outcome: 'append' } : { outcome: 'refuse', errorCode: errorCodes.OUT_OF_ORDER_SEQUENCE_NUMBER }
    }
    const lastSequence = after(batch.firstSequence, batch.recordCount - 1)
    const same = state.batches.find((b) => b.firstSequence === batch.firstSequence && b.lastSequence === lastSequence)
    if (same !== undefined) return { outcome: 'duplicate', baseOffset: same.baseOffset }
    const last = state.batches.at(-1)
    if (last === undefined || after(last.lastSequence, 1) === batch.firstSequence) return { outcome: 'append' }
    return { outcome: 'refuse', errorCode: errorCodes.OUT_OF_ORDER_SEQUENCE_NUMBER }
  }

  /** Records a batch that was appended at `baseOffset`. */
  appended(batch: IncomingBatch, baseOffset: number): void {
    let state = this.#states.get(batch.producerId)
    if (state === undefined || state.epoch < batch.epoch) {
      state = { epoch: batch.epoch, batches: [], openedAt: state?.openedAt }
      this.#states.set(batch.producerId, state)
    }
    const lastSequence = after(batch.firstSequence, batch.recordCount - 1)
    state.batches.push({ firstSequence: batch.firstSequence, lastSequence, baseOffset })
    if (state.batches.length > REMEMBERED_BATCHES) state.batches.shift()
    if (batch.transactional) state.openedAt ??= baseOffset
  }

  /** Ends the producer's transaction on this partition; its first offset, or undefined if it had written nothing. */
  ended(producerId: number, epoch: number): number | undefined {
    const state = this.#states.get(producerId)
    if (state === undefined) {
      this.#states.set(producerId, { epoch, batches: [], openedAt: undefined })
      return undefined
    }
    const { openedAt } = state
    if (epoch > state.epoch) state.batches = []
    state.epoch = Math.max(epoch, state.epoch)
    state.openedAt = undefined
    return openedAt
  }

  /** The lowest first offset of an open transaction: nothing from there on is stable. */
  firstUnstable(): number | undefined {
    let first: number | undefined
    for (const { openedAt } of this.#states.values()) {
      if (openedAt !== undefined && (first === undefined || openedAt < first)) first = openedAt
    }
    return first
  }

  /** Forgets everything written at or above `offset`: the log was truncated there. */
  truncate(offset: number): void {
    for (const [producerId, state] of this.#states) {
      state.batches = state.batches.filter((b) => b.baseOffset < offset)
      if (state.openedAt !== undefined && state.openedAt >= offset) state.openedAt = undefined
      if (state.batches.length === 0 && state.openedAt === undefined) this.#states.delete(producerId)
    }
  }

  /** The last batch of each producer: compaction must keep it, even empty. */
  lastOffsets(): Set<number> {
    const offsets = new Set<number>()
    for (const { batches } of this.#states.values()) {
      const last = batches.at(-1)
      if (last !== undefined) offsets.add(last.baseOffset)
    }
    return offsets
  }

  describe(): { producerId: number; epoch: number; lastSequence: number; openedAt: number | undefined }[] {
    return Array.from(this.#states, ([producerId, { epoch, batches, openedAt }]) => ({
      producerId,
      epoch,
      lastSequence: batches.at(-1)?.lastSequence ?? -1,
      openedAt,
    }))
  }
}

/** Sequences run from 0 to 2³¹−1 and then begin anew at 0. */
function after(sequence: number, steps: number): number {
  return (sequence + steps) % SEQUENCE_END
}
