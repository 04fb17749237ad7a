/** `late: refuse`: batches of an old layout that come after the seal are refused for good, where that costs only them. */
import type { BatchVerdict } from '../../../editors/produce/policy.ts'
import { errorCodes } from '../../../protocol/error-codes.ts'
import type { Batch } from '../guard-state.ts'
import type { TopicRule } from '../topic-rule.ts'

/** The code that costs most families exactly the one batch. */
export const forGood: BatchVerdict = { kind: 'refuse', errorCode: errorCodes.INVALID_PARTITIONS }
/** Idempotent producers of these never recover from a code they take for final; aiokafka does not say its name. */
const fragile = /^$|kafka-python|aiokafka/i

/** Never where it would break the producer for good. @param software the client's name for itself; empty: unknown */
export function mayRefuseForGood(rule: TopicRule, { sequenced }: Batch, software: string): boolean {
  return rule.late === 'refuse' && !(sequenced !== undefined && fragile.test(software))
}
