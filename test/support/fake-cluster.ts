/** The cluster as features ask it (`Cluster`), in memory: topics, ends and commits that a test sets as it likes. */
import { type Cluster, partitionKey, type TopicDescription, type TopicPartition } from '../../src/cluster/cluster.ts'

export interface FakeTopic {
  topicId: string
  /** Per partition: leader (−1: none) and the end of its log. */
  partitions: { leader: number; end: number; start?: number }[]
}

export class FakeCluster implements Cluster {
  readonly topics = new Map<string, FakeTopic>()
  readonly commits = new Map<string, Map<string, number>>()
  /** Requests made, by name; `fail` rejects them while it is true. */
  readonly asked: string[] = []
  fail = false

  topic(name: string, topicId: string, count: number): FakeTopic {
    const topic = { topicId, partitions: Array.from({ length: count }, () => ({ leader: 1, end: 0 })) }
    this.topics.set(name, topic)
    return topic
  }

  async describeTopics(names?: readonly string[]): Promise<readonly TopicDescription[]> {
    this.ask('describeTopics')
    return [...this.topics].flatMap(([name, { topicId, partitions }]) =>
      names !== undefined && !names.includes(name)
        ? []
        : [{ name, topicId, partitions: partitions.map(({ leader }) => ({ leader, leaderEpoch: 0 })) }],
    )
  }

  async endOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>> {
    this.ask('endOffsets')
    return Object.fromEntries(partitions.map((partition) => [partition, this.log(topic, partition).end]))
  }

  async startOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>> {
    this.ask('startOffsets')
    return Object.fromEntries(partitions.map((partition) => [partition, this.log(topic, partition).start ?? 0]))
  }

  async createPartitions(topic: string, count: number): Promise<void> {
    this.ask('createPartitions')
    const partitions = this.topics.get(topic)?.partitions
    if (partitions === undefined) throw new Error(`no topic ${topic}`)
    while (partitions.length < count) partitions.push({ leader: 1, end: 0 })
  }

  async committed(group: string, partitions: readonly TopicPartition[]): Promise<ReadonlyMap<string, number>> {
    this.ask('committed')
    const wanted = new Set(partitions.map(({ topic, partition }) => partitionKey(topic, partition)))
    return new Map([...(this.commits.get(group) ?? [])].filter(([key]) => wanted.has(key)))
  }

  async firstDeliverable(topic: string, partition: number, from: number, to: number): Promise<number | undefined> {
    this.ask('firstDeliverable')
    const { end, start = 0 } = this.log(topic, partition)
    const first = Math.max(from, start)
    return first < Math.min(to, end) ? first : undefined
  }

  async endOfEpoch(): Promise<number | undefined> {
    this.ask('endOfEpoch')
    return undefined
  }

  private log(topic: string, partition: number) {
    const found = this.topics.get(topic)?.partitions[partition]
    if (found === undefined) throw new Error(`no partition ${topic}/${partition}`)
    return found
  }

  private ask(what: string): void {
    this.asked.push(what)
    if (this.fail) throw new Error(`${what}: the test says no`)
  }
}
