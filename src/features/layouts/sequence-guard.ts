/**
 * Keeps idempotent producers free of sequence gaps after a refusal: once a batch of (producer id, partition) was
 * refused, later ones are refused too until the expected sequence returns. A courtesy, not a promise: the broker would
 * answer 45 and most clients sort that out. It must end, because after an error that its client took for final the
 * sequence never returns: after ten seconds, or with the first batch of a new producer id or epoch, which are what
 * InitProducerId gives (an epoch is never used twice for one id), so that its answers need not be looked at.
 */

export interface Sequenced {
  readonly producerId: string
  readonly producerEpoch: number
  readonly sequence: number
}

interface Expected extends Sequenced {
  readonly sinceMs: number
}

/** Partition and producer id → what has to come first. */
export type SequenceGuard = ReadonlyMap<string, Expected>

export const noSequences: SequenceGuard = new Map()

const longestMs = 10_000

/** A batch was refused: it is the one to come first, unless an earlier one is missing already. */
export function expectSequence(guard: SequenceGuard, partition: number, batch: Sequenced, atMs: number): SequenceGuard {
  const lane = laneOf(partition, batch.producerId)
  const current = new Map([...guard].filter(([, expected]) => atMs - expected.sinceMs < longestMs))
  const known = current.get(lane)
  if (known === undefined || !isSameOrLater(batch, known)) current.set(lane, { ...batch, sinceMs: atMs })
  return current
}

/** Whether the batch must be refused because an earlier one of its producer and partition has not returned. */
export function isOutOfTurn(guard: SequenceGuard, partition: number, batch: Sequenced, atMs: number): boolean {
  const expected = guard.get(laneOf(partition, batch.producerId))
  if (expected === undefined || atMs - expected.sinceMs >= longestMs) return false
  return expected.producerEpoch === batch.producerEpoch && batch.sequence > expected.sequence
}

/** A batch was let through: the wait for it is over, but not for one that comes after it. */
export function sawSequence(guard: SequenceGuard, partition: number, batch: Sequenced): SequenceGuard {
  const lane = laneOf(partition, batch.producerId)
  const expected = guard.get(lane)
  if (expected === undefined || isSooner(batch, expected)) return guard
  const rest = new Map(guard)
  rest.delete(lane)
  return rest
}

function isSooner(batch: Sequenced, expected: Sequenced): boolean {
  return batch.producerEpoch === expected.producerEpoch && batch.sequence < expected.sequence
}

function isSameOrLater(batch: Sequenced, expected: Sequenced): boolean {
  return batch.producerEpoch === expected.producerEpoch && batch.sequence >= expected.sequence
}

function laneOf(partition: number, producerId: string): string {
  return `${partition}/${producerId}`
}
