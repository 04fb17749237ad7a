/**
 * How many partitions of a shrunk topic a consumer still has to see. A marked partition is hidden from a group once no
 * batch can come to it any more (the shrink is sealed and settled) and the group has committed all that is in it: first
 * from the group's leader, whose client then assigns without it, then from the members that no longer own it. Never from
 * one that does: a partition that vanishes while it is owned breaks consumers of some families.
 */
import { type Cluster, partitionKey, type TopicPartition } from '../../../cluster/cluster.ts'
import type { Instance } from '../../../pipeline/instance.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { Log } from '../../../telemetry/log.ts'
import { currentLayout, isSettled, type TopicState, widestCount } from '../../../state/topic-state.ts'
import { range } from '../keys-moving.ts'
import { defaultTimes } from '../times.ts'
import type { LayoutTopic } from '../topic-rule.ts'
import type { Ownership } from './ownership.ts'

export interface DrainedDeps {
  readonly runtime: Runtime
  readonly cluster: Cluster
  readonly log: Log
  readonly ownership: Pick<Ownership, 'of'>
}

interface Watched {
  readonly topic: LayoutTopic
  readonly group: string
  askedMs: number
  /** The count that the group still needs, and the epoch for which that was found. */
  needed: number | undefined
  epoch: number
}

const LOOK_MS = 30_000
/** A group whose members have not asked for so long is looked after no more: longer than Metadata gets old. */
const FORGET_MS = 900_000
/** Its stream dies when a partition that it reads vanishes. */
const breaks = /^platformatic/

export class DrainedPartitions {
  private readonly deps: DrainedDeps
  private readonly watched = new Map<string, Watched>()
  private timer: Timer | undefined

  constructor(deps: DrainedDeps) {
    this.deps = deps
  }

  stop(): void {
    this.timer?.cancel()
    this.watched.clear()
  }

  /** The count that this consumer is shown; undefined: all there are. */
  count(topic: LayoutTopic, instance: Instance): number | undefined {
    const state = topic.view()?.topic
    if (state === undefined || !this.mayHide(state)) return undefined
    const groups = [...instance.memberships.keys()]
    const counts = groups.map((group) => this.countIn(topic, state, instance, group))
    return counts.length === 0 || counts.includes(undefined) ? undefined : Math.max(...(counts as number[]))
  }

  /** Whether a group of this consumer is known to have records left in partitions that a settled shrink took away. */
  hasLeft(topic: LayoutTopic, instance: Instance): boolean {
    const state = topic.view()?.topic
    if (state === undefined || !this.mayHide(state)) return false
    const { count } = currentLayout(state)
    return [...instance.memberships.keys()].some((group) => (this.neededBy(topic, state, group) ?? count) > count)
  }

  private mayHide(state: TopicState): boolean {
    const current = currentLayout(state)
    const isNarrower = current.count < widestCount(state)
    return isNarrower && isSettled(current, this.deps.runtime.wallNow(), defaultTimes.settleMs)
  }

  private countIn(topic: LayoutTopic, state: TopicState, instance: Instance, group: string): number | undefined {
    const owned = this.deps.ownership.of(instance, group)
    const needed = this.neededBy(topic, state, group)
    if (owned?.partitions === undefined || owned.isServerSide || needed === undefined) return undefined
    const highest = Math.max(-1, ...(owned.partitions.get(topic.name) ?? []))
    const mayVanish = owned.isLeader && !breaks.test(instance.softwareName)
    return mayVanish ? needed : Math.max(needed, highest + 1)
  }

  /** What was found when it was last looked for; asking begins the looking. */
  private neededBy(topic: LayoutTopic, state: TopicState, group: string): number | undefined {
    const key = `${topic.topicId}/${group}`
    let watched = this.watched.get(key)
    if (watched === undefined) {
      watched = { topic, group, askedMs: 0, needed: undefined, epoch: -1 }
      this.watched.set(key, watched)
      void this.look(watched)
    }
    watched.askedMs = this.deps.runtime.now()
    this.lookLater()
    return watched.epoch === currentLayout(state).epoch ? watched.needed : undefined
  }

  private lookLater(): void {
    this.timer ??= this.deps.runtime.timer(LOOK_MS, () => {
      this.timer = undefined
      const oldest = this.deps.runtime.now() - FORGET_MS
      for (const [key, watched] of this.watched) {
        if (watched.askedMs < oldest) this.watched.delete(key)
        else void this.look(watched)
      }
      if (this.watched.size > 0) this.lookLater()
    })
  }

  private async look(watched: Watched): Promise<void> {
    const { topic, group } = watched
    const state = topic.view()?.topic
    if (state === undefined || !this.mayHide(state)) return
    const { count, epoch } = currentLayout(state)
    // Nothing comes any more: what was drained once stays so.
    if (watched.epoch === epoch && watched.needed === count) return
    try {
      const marked = range(count, widestCount(state))
      const left = await this.undrained(topic.name, group, marked)
      watched.needed = Math.max(count, ...left.map((partition) => partition + 1))
      watched.epoch = epoch
    } catch (error) {
      this.deps.log.debug({ topic: topic.name, group }, `cannot see what is drained: ${(error as Error).message}`)
    }
  }

  /** Marked partitions that have records which the group has not committed. */
  private async undrained(topic: string, group: string, marked: readonly number[]): Promise<number[]> {
    const { cluster } = this.deps
    const [starts, ends, commits] = await Promise.all([
      cluster.startOffsets(topic, marked),
      cluster.endOffsets(topic, marked),
      cluster.committed(
        group,
        marked.map((partition): TopicPartition => ({ topic, partition })),
      ),
    ])
    const left: number[] = []
    for (const partition of marked) {
      const from = Math.max(starts[partition] ?? 0, commits.get(partitionKey(topic, partition)) ?? 0)
      const end = ends[partition] ?? 0
      if (from < end && (await cluster.firstDeliverable(topic, partition, from, end)) !== undefined)
        left.push(partition)
    }
    return left
  }
}
