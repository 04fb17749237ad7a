/** CreatePartitions of any admin client as changes of a topic's layout, and their outcomes as Kafka's errors. */
import type { PartitionAnswer, PartitionPolicy, PartitionRequest } from '../../../editors/create-partitions/policy.ts'
import { errorCodes } from '../../../protocol/error-codes.ts'
import type { RefusalCode } from './change-plan.ts'
import type { LayoutControl } from './layout-control.ts'
import type { Outcome } from './wish.ts'

/** What Kafka would say of the same; what may pass is retriable. */
const codes: Readonly<Record<RefusalCode, number>> = {
  HG_TO_INVALID: errorCodes.INVALID_PARTITIONS,
  HG_TO_SAME: errorCodes.INVALID_PARTITIONS,
  HG_TO_TOO_SMALL: errorCodes.INVALID_PARTITIONS,
  HG_TO_TOO_LARGE: errorCodes.INVALID_PARTITIONS,
  HG_NOT_MULTIPLE: errorCodes.INVALID_PARTITIONS,
  HG_CHANGE_IN_PROGRESS: errorCodes.REASSIGNMENT_IN_PROGRESS,
  HG_NOT_SEALED: errorCodes.POLICY_VIOLATION,
  HG_TOPIC_UNKNOWN: errorCodes.UNKNOWN_TOPIC_OR_PARTITION,
  HG_TOPIC_NO_RULE: errorCodes.UNKNOWN_TOPIC_OR_PARTITION,
  HG_STATE_UNAVAILABLE: errorCodes.REQUEST_TIMED_OUT,
}

export class PartitionChanges implements PartitionPolicy {
  private readonly control: LayoutControl

  constructor(control: LayoutControl) {
    this.control = control
  }

  guards(topic: string): boolean {
    return this.control.find(topic) !== undefined
  }

  async exists(topic: string): Promise<number> {
    return (await this.control.find(topic)?.countExisting()) ?? 0
  }

  async raise(asked: PartitionRequest): Promise<PartitionAnswer> {
    const { topic, count, assigned, client } = asked
    const coordinator = this.control.find(topic)
    if (coordinator === undefined)
      return { errorCode: errorCodes.UNKNOWN_TOPIC_OR_PARTITION, errorMessage: `topic ${topic} is gone` }
    // An admin client cannot say that it means a count that is no multiple: that it asks is enough.
    const request = { change: 'expand', to: count, any: true, by: `CreatePartitions of ${client}` } as const
    const outcome = coordinator.change(request, {
      isAssigned: assigned,
      create: () => asked.create(),
    })
    this.control.wake()
    return answerOf(await outcome)
  }
}

function answerOf(outcome: Outcome): PartitionAnswer {
  switch (outcome.kind) {
    case 'opened':
      return { errorCode: 0, errorMessage: null }
    case 'aborted':
      return { errorCode: errorCodes.REQUEST_TIMED_OUT, errorMessage: `nothing was changed: ${outcome.reason}` }
    case 'refused':
      return { errorCode: codes[outcome.code], errorMessage: `${outcome.message} (${outcome.fix})` }
  }
}
