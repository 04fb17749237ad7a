/**
 * What is left to deliver in the partitions that gates wait for, whoever asks: records that expired, were compacted or
 * aborted, and logs that were cut, are not waited for.
 */
import type { Cluster } from '../../../cluster/cluster.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { LayoutTopic } from '../topic-rule.ts'

/** How long the first offset of a log is believed: it only grows. */
const START_MS = 30_000

export class Parents {
  private readonly cluster: Cluster
  private readonly runtime: Runtime
  private readonly log: Log
  /** Topic id/partition → first offset. */
  private readonly starts = new Map<string, { offset: number; atMs: number }>()

  constructor(cluster: Cluster, runtime: Runtime, log: Log) {
    this.cluster = cluster
    this.runtime = runtime
    this.log = log
  }

  /** First offset of a log as far as is known; it may have grown since. */
  startOf(topic: LayoutTopic, q: number): number {
    return this.starts.get(`${topic.topicId}/${q}`)?.offset ?? 0
  }

  /** Reads the first offsets of these partitions unless that was done lately. Failures are silent: it is asked again. */
  async readStarts(topic: LayoutTopic, partitions: readonly number[]): Promise<void> {
    const now = this.runtime.now()
    const old = partitions.filter((q) => now - (this.starts.get(`${topic.topicId}/${q}`)?.atMs ?? -Infinity) > START_MS)
    if (old.length === 0) return
    const starts = await this.cluster.startOffsets(topic.name, old)
    for (const q of old) {
      const offset = starts[q]
      if (offset !== undefined) this.starts.set(`${topic.topicId}/${q}`, { offset, atMs: now })
    }
  }

  /**
   * The first record of q in [from, until) that a consumer would be given; Infinity: there is none. undefined: that
   * cannot be found out now.
   */
  async firstDeliverable(topic: LayoutTopic, q: number, from: number, until: number): Promise<number | undefined> {
    try {
      await this.readStarts(topic, [q])
      const at = Math.max(from, this.startOf(topic, q))
      if (at >= until) return Infinity
      const ends = await this.cluster.endOffsets(topic.name, [q])
      const reached = (ends[q] ?? 0) >= until ? until : await this.cutAt(topic, q, until)
      if (reached === undefined) return undefined
      if (at >= reached) return Infinity
      return (await this.cluster.firstDeliverable(topic.name, q, at, reached)) ?? Infinity
    } catch (error) {
      const { message } = error as Error
      this.log.debug({ topic: topic.name, partition: q, error: message }, 'what a gate waits for cannot be read')
      return undefined
    }
  }

  /**
   * Where the log of q ends if it was cut below `until`, an end that it had: the leader's own end, which
   * OffsetForLeaderEpoch answers for the epoch of now. (The high watermark alone says nothing: it lags acks=1. Nor does
   * an epoch that the leader has left behind: it knows none above its own.)
   */
  private async cutAt(topic: LayoutTopic, q: number, until: number): Promise<number | undefined> {
    const [described] = await this.cluster.describeTopics([topic.name])
    const leaderEpoch = described?.topicId === topic.topicId ? described.partitions[q]?.leaderEpoch : undefined
    if (leaderEpoch === undefined) return undefined
    const end = await this.cluster.endOfEpoch(topic.name, q, leaderEpoch)
    if ((await this.cluster.endOfEpoch(topic.name, q, leaderEpoch + 1)) !== undefined) return undefined
    return end !== undefined && end < until ? end : undefined
  }
}
