/**
 * Late batches that were acknowledged while the seal of a change was still to come, until it shows whether they lie
 * below its boundary. Only a seal that gave somebody up leaves one above, and then one of the last: so the newest are
 * kept, between one and two thousand, and a change that is never sealed costs no more than that.
 */
import type { TopicState } from '../../state/topic-state.ts'
import type { Batch } from './guard-state.ts'

export interface LateAnswer {
  readonly batch: Batch
  readonly age: number
  /** After its last record; −1 where it is not known. */
  readonly end: number
}

interface Link {
  readonly late: LateAnswer
  readonly older: Link | undefined
  readonly depth: number
}

/** Linked lists: one more costs the same however many there are. */
export interface LateAnswers {
  readonly young: Link | undefined
  readonly old: Link | undefined
}

export const noLates: LateAnswers = { young: undefined, old: undefined }

const generation = 1000

export function remember({ young, old }: LateAnswers, late: LateAnswer): LateAnswers {
  const depth = (young?.depth ?? 0) + 1
  if (depth > generation) return { young: { late, older: undefined, depth: 1 }, old: young }
  return { young: { late, older: young, depth }, old }
}

/** All of them, the newest first. */
export function* latesOf({ young, old }: LateAnswers): Generator<LateAnswer> {
  for (let link = young; link !== undefined; link = link.older) yield link.late
  for (let link = old; link !== undefined; link = link.older) yield link.late
}

/** Whether a seal that is still to come may leave a batch so old above its boundary. */
export function awaitsSeal(topic: TopicState | undefined, age: number): boolean {
  const layouts = topic?.layouts ?? []
  return layouts.some((layout) => layout.epoch > age && layout.gates === 'seal' && layout.seal === undefined)
}
