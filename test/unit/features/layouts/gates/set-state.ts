/** The state of one topic, `t`, as a test sets it. */
import type { State, StateStatus } from '../../../../../src/state/state.ts'
import type { Layout, TopicState } from '../../../../../src/state/topic-state.ts'
import { layout, sealed } from '../../../../support/layout-states.ts'

export const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAKg'
export const topicOf = (layouts: Layout[], more: Partial<TopicState> = {}): TopicState => ({
  topicId: TOPIC_ID,
  name: 't',
  layouts,
  cuts: [],
  ...more,
})

/** 1 → 2 partitions, sealed at `boundary` of partition 0. */
export const grown = (boundary: number): TopicState =>
  topicOf([layout(0, 1), layout(1, 2, { starts: { 1: 0 }, ...sealed({ 0: boundary }) })])

export class SetState implements State {
  topic: TopicState | undefined
  isLeased = true
  readonly proxy = 'p'
  private readonly listeners: (() => void)[] = []

  set(topic: TopicState | undefined): void {
    this.topic = topic
    for (const listener of this.listeners) listener()
  }

  view(topicId: string) {
    return this.topic === undefined || topicId !== TOPIC_ID
      ? undefined
      : { topic: this.topic, fleet: { members: {} }, position: 0 }
  }

  topicIds = () => [TOPIC_ID]
  mayAct = () => this.isLeased
  isLeader = () => false
  append(): void {}
  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }
  status(): StateStatus {
    throw new Error('not asked for')
  }
}
