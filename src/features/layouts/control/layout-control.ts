/**
 * The control side of the feature: a coordinator for each topic with layouts, fed by the state and ticked only while
 * something is under way, and a look at the cluster now and then for partitions that others created.
 */
import type { Timer } from '../../../runtime/runtime.ts'
import type { LayoutTopic, LayoutTopics } from '../topic-rule.ts'
import { type CoordinatorDeps, TopicCoordinator } from './topic-coordinator.ts'

const TICK_MS = 200
const LOOK_MS = 30_000

export class LayoutControl {
  private readonly topics: LayoutTopics
  private readonly deps: CoordinatorDeps
  private readonly coordinators = new Map<string, TopicCoordinator>()
  private ticker: Timer | undefined
  private looker: Timer | undefined
  private isStopped = false

  constructor(topics: LayoutTopics, deps: CoordinatorDeps) {
    this.topics = topics
    this.deps = deps
    deps.state.onChange(() => this.feed())
  }

  start(): void {
    this.lookLater()
    this.feed()
  }

  stop(): void {
    this.isStopped = true
    this.ticker?.cancel()
    this.looker?.cancel()
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

  /** Metadata or our own look shows that a topic has so many partitions. */
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

  private lookLater(): void {
    if (this.isStopped) return
    this.looker = this.deps.runtime.timer(LOOK_MS, () => {
      void this.look().finally(() => this.lookLater())
    })
  }

  private async look(): Promise<void> {
    const names = [...this.topics.all()].map((topic) => topic.name)
    if (names.length === 0) return
    try {
      const found = await this.deps.cluster.describeTopics(names)
      for (const { name, topicId, partitions } of found) this.noticed(name, topicId, partitions.length)
    } catch (error) {
      this.deps.log.debug({}, `topics cannot be looked at: ${(error as Error).message}`)
    }
  }
}
