/** What Headgate asks the cluster on its own connections. Everything may reject: callers ask again. */

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export interface TopicDescription {
  readonly name: string
  readonly topicId: string
  /** By partition number; `leader` is −1 while there is none. */
  readonly partitions: readonly { readonly leader: number; readonly leaderEpoch: number }[]
}

export interface Cluster {
  /** Topics by name, or all of them. Topics that do not exist are left out. */
  describeTopics(names?: readonly string[]): Promise<readonly TopicDescription[]>
  /** High watermarks (exclusive ends, READ_UNCOMMITTED). Rejects if one of them cannot be had. */
  endOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>>
  /** First offsets of the logs. */
  startOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>>
  /** Raises a topic's partition count; resolves when it is at least `count`, whoever raised it. */
  createPartitions(topic: string, count: number): Promise<void>
  /** Committed offsets of a group; a partition without one is left out. */
  committed(group: string, partitions: readonly TopicPartition[]): Promise<ReadonlyMap<string, number>>
  /**
   * Where the first record that READ_COMMITTED consumers may be given lies in [from, to): control, aborted and compacted
   * records do not count. undefined: there is none.
   */
  firstDeliverable(topic: string, partition: number, from: number, to: number): Promise<number | undefined>
  /** End offset of `leaderEpoch` in a partition's log (OffsetForLeaderEpoch); undefined where it is not known. */
  endOfEpoch(topic: string, partition: number, leaderEpoch: number): Promise<number | undefined>
}

/** The key of `committed`'s answer. */
export function partitionKey(topic: string, partition: number): string {
  return `${topic}/${partition}`
}
