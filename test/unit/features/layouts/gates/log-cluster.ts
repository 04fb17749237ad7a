/** `Cluster` answered from logs of real batches and from commits, both in memory. */
import {
  type Cluster,
  partitionKey,
  type TopicDescription,
  type TopicPartition,
} from '../../../../../src/cluster/cluster.ts'
import { isControl, lastOffsetOf } from '../../../../../src/records/batch.ts'
import { buildBatch } from '../../../../../src/records/build.ts'
import { readRecords } from '../../../../../src/records/read.ts'
import { TOPIC_ID } from './set-state.ts'

interface Batch {
  readonly bytes: Buffer
  readonly base: number
  readonly end: number
}

/** One partition's log. */
export class PartLog {
  batches: Batch[] = []
  start = 0
  leaderEpoch = 0
  end = 0
  /** Behind `end` while replication lags. */
  lag = 0

  get highWatermark(): number {
    return this.end - this.lag
  }

  append(keys: string, more: { control?: boolean; aborted?: boolean } = {}): this {
    const records = [...keys].map((key) => ({ key: Buffer.from(key), value: Buffer.from('v') }))
    const base = this.end
    const control = more.control === true ? { control: true, transactional: true, producerId: 5, producerEpoch: 0 } : {}
    const bytes = buildBatch({ baseOffset: base, leaderEpoch: this.leaderEpoch, records, ...control })
    this.end += keys.length
    if (more.aborted !== true) this.batches.push({ bytes, base, end: this.end })
    return this
  }

  /** Compaction: batches in [from, to) are gone. */
  compact(from: number, to: number): void {
    this.batches = this.batches.filter(({ base, end }) => end <= from || base >= to)
  }

  read(offset: number, maxBytes: number): Buffer {
    const found: Buffer[] = []
    let size = 0
    for (const { bytes, end } of this.batches) {
      if (end <= offset || end > this.highWatermark) continue
      if (size > 0 && size + bytes.length > maxBytes) break
      found.push(bytes)
      size += bytes.length
    }
    return Buffer.concat(found)
  }

  first(from: number, to: number): number | undefined {
    for (const { bytes, end } of this.batches) {
      if (end <= from || isControl(bytes, 0) || lastOffsetOf(bytes, 0) < from) continue
      const record = readRecords(bytes, 1 << 20).find(({ offset }) => offset >= from && offset < to)
      if (record !== undefined) return record.offset
    }
    return undefined
  }
}

export class LogCluster implements Cluster {
  readonly logs: PartLog[] = []
  readonly commits = new Map<string, Map<number, number>>()
  readonly asked: { what: string; atMs: number }[] = []
  fails = false
  /** What Metadata says of every leader epoch, if not the truth. */
  shownEpoch: number | undefined
  /** Held back until it resolves: answers of `committed`. */
  hold: Promise<void> | undefined
  now: () => number = () => 0
  pause: (ms: number) => Promise<unknown> = () => Promise.resolve()

  commit(group: string, q: number, offset: number): void {
    this.commits.set(group, (this.commits.get(group) ?? new Map<number, number>()).set(q, offset))
  }

  count(what: string): number {
    return this.asked.filter((asked) => asked.what === what).length
  }

  async describeTopics(): Promise<readonly TopicDescription[]> {
    this.ask('describeTopics')
    const partitions = this.logs.map(({ leaderEpoch }) => ({ leader: 1, leaderEpoch: this.shownEpoch ?? leaderEpoch }))
    return [{ name: 't', topicId: TOPIC_ID, partitions }]
  }

  async endOffsets(_topic: string, partitions: readonly number[]) {
    this.ask('endOffsets')
    return Object.fromEntries(partitions.map((q) => [q, this.log(q).highWatermark]))
  }

  async startOffsets(_topic: string, partitions: readonly number[]) {
    this.ask('startOffsets')
    return Object.fromEntries(partitions.map((q) => [q, this.log(q).start]))
  }

  async createPartitions(): Promise<void> {
    throw new Error('not asked for')
  }

  async committed(group: string, partitions: readonly TopicPartition[]): Promise<ReadonlyMap<string, number>> {
    this.ask('committed')
    const rows = new Map<string, number>()
    for (const { topic, partition } of partitions) {
      const offset = this.commits.get(group)?.get(partition)
      if (offset !== undefined) rows.set(partitionKey(topic, partition), offset)
    }
    await this.pause(10)
    await this.hold
    return rows
  }

  async firstDeliverable(_topic: string, q: number, from: number, to: number): Promise<number | undefined> {
    this.ask('firstDeliverable')
    if (this.log(q).highWatermark < to) throw new Error('the log ends below')
    return this.log(q).first(from, to)
  }

  async endOfEpoch(_topic: string, q: number, leaderEpoch: number): Promise<number | undefined> {
    this.ask('endOfEpoch')
    return leaderEpoch <= this.log(q).leaderEpoch ? this.log(q).end : undefined
  }

  log(q: number): PartLog {
    return (this.logs[q] ??= new PartLog())
  }

  private ask(what: string): void {
    this.asked.push({ what, atMs: this.now() })
    if (this.fails) throw new Error('the test says no')
  }
}
