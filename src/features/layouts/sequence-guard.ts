/**
 * Keeps idempotent producers free of sequence gaps after a refusal: once a batch of (producer id, partition) was
 * refused, later ones are refused too until the expected sequence returns. A courtesy, not a promise: the broker would
 * answer 45 and most clients sort that out. It must end, because after an error that its client took for final the
 * sequence never returns: with a new producer epoch or id (InitProducerId), with the connection, or after ten seconds.
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
  const known = guard.get(laneOf(partition, batch.producerId))
  if (known !== undefined && known.producerEpoch === batch.producerEpoch && known.sequence <= batch.sequence)
    return guard
  return new Map(guard).set(laneOf(partition, batch.producerId), { ...batch, sinceMs: atMs })
}

/** Whether the batch must be refused because an earlier one of its producer and partition has not returned. */
export function isOutOfTurn(guard: SequenceGuard, partition: number, batch: Sequenced, atMs: number): boolean {
  const expected = guard.get(laneOf(partition, batch.producerId))
  if (expected === undefined || atMs - expected.sinceMs >= longestMs) return false
  return expected.producerEpoch === batch.producerEpoch && batch.sequence > expected.sequence
}

/** A batch was let through: the wait for it, and any of an older epoch, is over. */
export function sawSequence(guard: SequenceGuard, partition: number, batch: Sequenced): SequenceGuard {
  const lane = laneOf(partition, batch.producerId)
  if (!guard.has(lane)) return guard
  const rest = new Map(guard)
  rest.delete(lane)
  return rest
}

/** The producer asked for its id again, or its last connection closed: nothing is expected of it any more. */
export function forgetProducer(guard: SequenceGuard, producerId: string): SequenceGuard {
  const rest = [...guard].filter(([, expected]) => expected.producerId !== producerId)
  return rest.length === guard.size ? guard : new Map(rest)
}

function laneOf(partition: number, producerId: string): string {
  return `${partition}/${producerId}`
}
