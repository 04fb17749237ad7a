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
      const busy = this.all().filter((coordinator) => !coordinator.isIdle)
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
    const ids = new Set(all.map(({ topic }) => topic.topicId))
    for (const topicId of this.coordinators.keys()) if (!ids.has(topicId)) this.coordinators.delete(topicId)
    if (all.some((coordinator) => !coordinator.isIdle)) this.wake()
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
