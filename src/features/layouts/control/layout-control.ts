/**
 * The control side of the feature: a coordinator for each topic with layouts, fed by the state and ticked only while
 * something is under way.
 */
import type { Timer } from '../../../runtime/runtime.ts'
import type { LayoutTopic, LayoutTopics } from '../topic-rule.ts'
import { type CoordinatorDeps, TopicCoordinator } from './topic-coordinator.ts'

const TICK_MS = 200

export class LayoutControl {
  private readonly topics: LayoutTopics
  private readonly deps: CoordinatorDeps
  private readonly coordinators = new Map<string, TopicCoordinator>()
  private ticker: Timer | undefined
  private isStopped = false

  constructor(topics: LayoutTopics, deps: CoordinatorDeps) {
    this.topics = topics
    this.deps = deps
    deps.state.onChange(() => this.feed())
  }

  stop(): void {
    this.isStopped = true
    this.ticker?.cancel()
    for (const coordinator of this.coordinators.values()) coordinator.stopped()
  }

  /** By name or id; undefined: there is no such topic, or it has no rule. */
  find(name: string, topicId = ''): TopicCoordinator | undefined {
    const topic = this.topics.find(name, topicId)
    return topic === undefined ? undefined : this.of(topic)
  }

  all(): TopicCoordinator[] {
    return [...this.topics.all()].map((topic) => this.of(topic))
  }

  /** Something was asked for, or may have changed: ticks run until every topic is idle again. */
  wake(): void {
    if (this.ticker !== undefined || this.isStopped) return
    this.ticker = this.deps.runtime.timer(TICK_MS, () => {
      this.ticker = undefined
      const all = this.all()
      this.dropDeleted(all)
      const busy = all.filter((coordinator) => !coordinator.isIdle)
      for (const coordinator of busy) coordinator.tick()
      if (busy.length > 0) this.wake()
    })
  }

  /** The cluster was seen to have so many partitions of a topic: by Metadata that passes, or asked now and then. */
  noticed(name: string, topicId: string, count: number): void {
    const coordinator = this.find(name, topicId)
    if (coordinator === undefined) return
    coordinator.noticed(count)
    if (!coordinator.isIdle) this.wake()
  }

  private feed(): void {
    if (this.isStopped) return
    const all = this.all()
    for (const coordinator of all) coordinator.feed()
    this.dropDeleted(all)
    if (all.some((coordinator) => !coordinator.isIdle)) this.wake()
  }

  private dropDeleted(all: readonly TopicCoordinator[]): void {
    if (this.coordinators.size === all.length) return
    const ids = new Set(all.map(({ topic }) => topic.topicId))
    for (const [topicId, coordinator] of this.coordinators) {
      if (ids.has(topicId)) continue
      this.coordinators.delete(topicId)
      coordinator.deleted()
    }
  }

  private of(topic: LayoutTopic): TopicCoordinator {
    let coordinator = this.coordinators.get(topic.topicId)
    if (coordinator === undefined) {
      coordinator = new TopicCoordinator(topic, this.deps)
      this.coordinators.set(topic.topicId, coordinator)
    }
    return coordinator
  }
}
