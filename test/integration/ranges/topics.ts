/** What the consumers read: topics of every codec, with transactions, compacted and truncated, and what is in them. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from 'kafkajs'
import { until } from '../../support/until.ts'
import type { ClientEvent, ClientProgram } from '../client.ts'
import { acknowledgedOf, isEvent } from '../matrix/observe.ts'

export const partitions = 2
const keys = 40

/** A topic and the records that a consumer of all of it is to get. */
export interface Content {
  readonly topic: string
  readonly records: readonly ClientEvent[]
}

export class Topics {
  private readonly admin: Admin
  private readonly producer: ClientProgram
  private readonly bootstrap: string
  private readonly prefix: string

  constructor(admin: Admin, producer: ClientProgram, bootstrap: string, prefix: string) {
    this.admin = admin
    this.producer = producer
    this.bootstrap = bootstrap
    this.prefix = prefix
  }

  async create(name: string, configs: Record<string, string> = {}, count = partitions): Promise<string> {
    const topic = `${this.prefix}.${name}`
    const configEntries = Object.entries(configs).map(([key, value]) => ({ name: key, value }))
    const wanted = [{ topic, numPartitions: count, configEntries }]
    await this.admin.createTopics({ topics: wanted, waitForLeaders: false })
    await until(async () => {
      const offsets = await this.admin.fetchTopicOffsets(topic).catch(() => []) // until the leaders serve it
      return offsets.length === count
    })
    return topic
  }

  async produce(topic: string, fields: Record<string, unknown>): Promise<ClientEvent[]> {
    return acknowledgedOf(await this.run({ topic, partitions, keys, ...fields }))
  }

  /** Keyed records and some without a key, in batches of several records. */
  async ofCodec(codec: string): Promise<Content> {
    const topic = await this.create(codec)
    const keyed = await this.produce(topic, { codec, producer: 'keyed', count: 400, headers: 1 })
    const keyless = await this.produce(topic, { codec, producer: 'keyless', count: 60, keys: 0 })
    return { topic, records: [...keyed, ...keyless] }
  }

  /** Committed and aborted transactions by turns. */
  async transactional(): Promise<{ committed: Content; all: Content }> {
    const topic = await this.create('transactions')
    const many = { count: 240, perTransaction: 20, abortEvery: 3, transactionalId: `${this.prefix}.tx` }
    const events = await this.run({ topic, partitions, keys, producer: 'tx', ...many })
    const records = acknowledgedOf(events)
    const aborted = new Set(events.filter(({ outcome }) => outcome === 'aborted').map(({ transaction }) => transaction))
    assert.equal(aborted.size, 4)
    const committed = records.filter(({ transaction }) => !aborted.has(transaction))
    return { committed: { topic, records: committed }, all: { topic, records } }
  }

  /** Old values of its keys are gone: batches with holes, and empty ones. */
  async compacted(): Promise<Content> {
    const quick = { 'segment.ms': '1000', 'min.cleanable.dirty.ratio': '0.001', 'max.compaction.lag.ms': '1' }
    const topic = await this.create('compacted', { 'cleanup.policy': 'compact', ...quick })
    await this.produce(topic, { producer: 'old', count: 300 })
    await delay(1100) // the broker closes a segment with the first record that comes after its time
    const last = await this.produce(topic, { producer: 'new', count: partitions, start: 1000 })
    for (let attempt = 0; attempt < 240; attempt++) {
      const records = await this.readUpTo(topic, last)
      // One old value of each key is left; the new ones lie in a segment that is still written to.
      if (records.length === keys + last.length) return { topic, records }
      await delay(500)
    }
    throw new Error('the broker does not compact')
  }

  /** Its first records are deleted, from the middle of a batch on. */
  async truncated(): Promise<Content> {
    const topic = await this.create('truncated')
    const records = await this.produce(topic, { producer: 'cut', count: 300 })
    const cut = 77
    const offsets = Array.from({ length: partitions }, (_, partition) => ({ partition, offset: String(cut) }))
    await this.admin.deleteTopicRecords({ topic, partitions: offsets })
    return { topic, records: records.filter(({ offset = -1 }) => offset >= cut) }
  }

  /** What a consumer without ranges gets, up to these records. */
  private async readUpTo(topic: string, last: readonly ClientEvent[]): Promise<ClientEvent[]> {
    const group = `${topic}.truth-${Date.now()}`
    const all = { cmd: 'consume' as const, bootstrap: this.bootstrap, topics: [topic], group, member: 'truth' }
    const run = this.producer.start(all)
    const ends = new Set(last.map(({ partition, offset }) => `${partition}-${offset}`))
    await run.until('the last records', (events) => {
      const seen = events
        .filter(isEvent('delivered'))
        .filter(({ partition, offset }) => ends.has(`${partition}-${offset}`))
      return seen.length === ends.size
    })
    return (await run.stop()).filter(isEvent('delivered'))
  }

  private run(fields: Record<string, unknown>): Promise<readonly ClientEvent[]> {
    return this.producer.run({ cmd: 'produce', bootstrap: this.bootstrap, ...fields })
  }
}
