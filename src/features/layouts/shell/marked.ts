/**
 * Marked partitions (to be removed) of topics with layouts are balanced apart from the others in the assignments that
 * group leaders make. Assignors that Headgate does not know are left alone, and that is said once for each group.
 */
import type { AssignmentPolicy, MemberShare } from '../../../editors/groups/policy.ts'
import { currentLayout, widestCount } from '../../../state/topic-state.ts'
import type { Log } from '../../../telemetry/log.ts'
import { range } from '../keys-moving.ts'
import { balanceMarked, isBalanced } from '../marked-balance.ts'
import type { LayoutTopic, LayoutTopics } from '../topic-rule.ts'

export class MarkedBalance implements AssignmentPolicy {
  private readonly topics: LayoutTopics
  private readonly log: Log
  /** Groups and assignors that were told of. */
  private readonly told = new Set<string>()

  constructor(topics: LayoutTopics, log: Log) {
    this.topics = topics
    this.log = log
  }

  watches(): boolean {
    for (const topic of this.topics.all()) if (markedOf(topic).length > 0) return true
    return false
  }

  plan(group: string, assignor: string, shares: readonly MemberShare[]): readonly MemberShare[] {
    let planned = shares
    for (const name of new Set(shares.flatMap((share) => share.topics))) {
      const topic = this.topics.find(name, '')
      const marked = topic === undefined ? [] : markedOf(topic)
      if (marked.length === 0) continue
      if (!isBalanced(assignor)) return this.leave(group, assignor, name, shares)
      planned = balanceMarked(planned, name, marked, assignor)
    }
    return planned
  }

  private leave(group: string, assignor: string, topic: string, shares: readonly MemberShare[]) {
    if (!this.told.has(`${group}/${assignor}`)) {
      this.told.add(`${group}/${assignor}`)
      this.log.info(
        { group, assignor, topic },
        'partitions to be removed are not balanced apart: the assignor is none of range, roundrobin, sticky, cooperative-sticky',
      )
    }
    return shares
  }
}

/** Partitions that the current layout does not have and an earlier one had. */
function markedOf(topic: LayoutTopic): number[] {
  const state = topic.view()?.topic
  return state === undefined ? [] : range(currentLayout(state).count, widestCount(state))
}
