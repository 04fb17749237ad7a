/** A topic that exists and has a rule, as this proxy knows it. */
import type { State } from '../../../state/state.ts'
import type { View } from '../../../state/view.ts'
import type { LayoutTopic, TopicRule } from '../topic-rule.ts'

export class KnownTopic implements LayoutTopic {
  readonly name: string
  readonly topicId: string
  readonly rule: TopicRule
  /** The partitions that the cluster has, hidden ones too, and their leaders where the cluster was asked (−1: none). */
  count = 0
  leaders: readonly number[] = []
  /** An answer to our own client named it: then only such an answer can say that the name has another id. */
  isConfirmed = false
  /** How often in a row the cluster did not name it. */
  missed = 0
  /** What clients were shown last, as far as the log told; 0: it did not yet. */
  shownCount = 0
  /** When its `topic` record was appended last. */
  recordedAtMs = -Infinity
  private readonly state: State

  constructor(name: string, topicId: string, rule: TopicRule, state: State) {
    this.name = name
    this.topicId = topicId
    this.rule = rule
    this.state = state
  }

  view(): View | undefined {
    return this.state.mayAct() ? this.state.view(this.topicId) : undefined
  }
}
