/**
 * Random logs read by consumer models through FetchRead, against a naive oracle: whatever the codec, transaction, gap,
 * limit, lost answer or seek, each consumer gets exactly the records that are its own, once and in order.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FetchRead } from '../../../src/editors/fetch/fetch-read.ts'
import type { PartitionPolicy } from '../../../src/editors/fetch/policy.ts'
import { SkipPointers } from '../../../src/editors/fetch/skip-pointers.ts'
import { bucketOf, bucketOfKey, bucketOfOffset } from '../../../src/records/hashes/buckets.ts'
import type { FetchRequest, FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import { checkAsync } from '../../support/property.ts'
import { piece } from '../records/arbitrary.ts'
import { Consumer, type PositionRule } from './client.ts'
import { type DataRecord, Log, READ_COMMITTED } from './log.ts'
import { requestOnWire, responseOnWire } from './wire.ts'

const TOPIC_IDS_FROM = 13
const MAX_WAIT_MS = 500
const TOPIC_ID = 'AAAAAAAAAAAAAAAAAAAAKg'

const log = fc
  .record({
    firstOffset: fc.oneof(fc.nat({ max: 100 }), fc.constant(2 ** 40)),
    pieces: fc.array(fc.record({ piece, gap: fc.nat({ max: 2 }) }), { maxLength: 14 }),
  })
  .map(({ firstOffset, pieces }) => {
    const parts: Buffer[] = []
    let offset = firstOffset
    for (const { piece: write, gap } of pieces) {
      const written = write(offset + gap)
      parts.push(written.bytes)
      offset = written.nextOffset
    }
    return new Log(Buffer.concat(parts), firstOffset, offset)
  })

interface PartitionPlan {
  readonly log: Log
  /** Buckets below it are kept; undefined: the partition has no policy. */
  readonly below: number | undefined
  /** How far into the log (0 to 1) a limit stands at first, and how far it moves with each Fetch. */
  readonly limit: { readonly start: number; readonly step: number } | undefined
  readonly maxBytes: number
}

const partitionPlan: fc.Arbitrary<PartitionPlan> = fc
  .record({
    log,
    below: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(0, 0x1000, 0x8000, 0x1_0000) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
    limit: fc.option(
      fc.record({ start: fc.double({ min: 0, max: 1, noNaN: true }), step: fc.constantFrom(0.05, 0.3) }),
    ),
    maxBytes: fc.constantFrom(1, 100, 400, 1 << 20),
  })
  .map((plan) => ({ ...plan, limit: plan.limit ?? undefined }))

type Event = 'fetch' | 'lost' | 'seek'

const scenario = fc.record({
  partitions: fc.array(partitionPlan, { minLength: 1, maxLength: 3 }),
  version: fc.integer({ min: 4, max: 18 }),
  isolationLevel: fc.constantFrom(0, 1),
  rule: fc.constantFrom<PositionRule>('batch', 'record'),
  /** One topic entry per partition, as platformatic asks. */
  repeated: fc.boolean(),
  torn: fc.boolean(),
  maxBytes: fc.constantFrom(1, 300, 1 << 25),
  minBytes: fc.constantFrom(0, 1, 200, 1 << 20),
  maxInflatedBytes: fc.constantFrom(2000, 1 << 20),
  events: fc.array(fc.constantFrom<Event>('fetch', 'fetch', 'fetch', 'lost', 'seek'), { maxLength: 12 }),
  seed: fc.nat(),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

/** One partition in a run: the plan, its consumer, and where its limit stands now. */
class Reader {
  readonly plan: PartitionPlan
  readonly consumer: Consumer
  readonly policy: PartitionPolicy | undefined
  from: number
  private opened: number

  constructor(plan: PartitionPlan, rule: PositionRule) {
    this.plan = plan
    this.from = plan.log.startOffset
    this.opened = plan.limit?.start ?? 1
    this.consumer = new Consumer(this.from, rule)
    const { below, limit } = plan
    if (below === undefined) return
    this.policy = {
      keep: (record) => bucketOf(record) < below,
      ...(limit === undefined ? {} : { limit: () => this.limit }),
    }
  }

  get limit(): number {
    const { startOffset, endOffset } = this.plan.log
    return this.opened >= 1 ? endOffset : startOffset + Math.floor((endOffset - startOffset) * this.opened)
  }

  widen(): void {
    this.opened += this.plan.limit?.step ?? 1
  }

  seek(random: number): void {
    const { startOffset, endOffset } = this.plan.log
    this.from = startOffset + (random % Math.max(1, endOffset - startOffset + 1))
    this.consumer.seek(this.from)
  }

  /** Offsets of the records that are to be delivered from `from` on. */
  expected(isolationLevel: number): number[] {
    const { log: source, below = 0 } = this.plan
    const committed = isolationLevel === READ_COMMITTED
    const upper = committed ? source.lastStableOffset : source.endOffset
    return source.records
      .filter((record) => record.offset >= this.from && record.offset < upper && !(committed && record.aborted))
      .filter((record) => bucket(record) < below)
      .map(({ offset }) => offset)
  }
}

function bucket({ key, offset }: DataRecord): number {
  return key === null ? bucketOfOffset(offset) : bucketOfKey(key, 0, key.length)
}

class Run {
  readonly readers: readonly Reader[]
  private readonly plan: Scenario
  private readonly pointers = new SkipPointers()

  constructor(plan: Scenario) {
    this.plan = plan
    this.readers = plan.partitions.map((partition) => new Reader(partition, plan.rule))
  }

  /** One Fetch of the client; a lost answer never reaches it. */
  fetch(lost: boolean): void {
    const { version, maxInflatedBytes } = this.plan
    const request = requestOnWire(this.request(), version)
    const view = { partition: (_topic: string, _id: string, index: number) => this.readers[index]?.policy }
    const read = new FetchRead(request, view, this.pointers, { version, maxInflatedBytes })
    this.serve(read)
    read.remember(this.pointers)
    const answer = responseOnWire(read.answer(), version)
    assert.deepEqual(shape(answer), shape(request), 'the client gets its own grouping back')
    for (const { partitions } of answer.responses) for (const partition of partitions) this.check(partition, lost)
    for (const reader of this.readers) reader.widen()
  }

  private serve(read: FetchRead): void {
    const { version } = this.plan
    let remaining = MAX_WAIT_MS
    do {
      const asked = read.request(remaining)
      remaining -= 50
      if (asked !== undefined) read.ingest(responseOnWire(this.broker(requestOnWire(asked, version)), version))
    } while (!read.complete && remaining > 0)
  }

  private check(partition: FetchResponse['responses'][number]['partitions'][number], lost: boolean): void {
    const reader = this.readers[partition.partitionIndex]
    assert.ok(reader !== undefined)
    assert.equal(partition.highWatermark, reader.plan.log.endOffset, 'the true high watermark')
    if (!lost && reader.policy !== undefined) reader.consumer.take(partition)
  }

  private request(): Parameters<typeof requestOnWire>[0] {
    const { version, repeated, isolationLevel, maxBytes, minBytes } = this.plan
    const partitions = this.readers.map(({ consumer, plan }, partition) => ({
      partition,
      fetchOffset: consumer.position,
      partitionMaxBytes: plan.maxBytes,
    }))
    const topic = version < TOPIC_IDS_FROM ? { topic: 't' } : { topicId: TOPIC_ID }
    const topics = repeated ? partitions.map((one) => ({ ...topic, partitions: [one] })) : [{ ...topic, partitions }]
    return { maxWaitMs: MAX_WAIT_MS, minBytes, maxBytes, isolationLevel, sessionEpoch: 0, topics }
  }

  private broker(request: FetchRequest): Parameters<typeof responseOnWire>[0] {
    const { torn, isolationLevel } = this.plan
    assert.ok(request.maxWaitMs <= 250)
    if (this.plan.version >= 7) assert.equal(request.sessionEpoch, -1)
    let left = request.maxBytes
    return {
      responses: request.topics.map(({ topic, topicId, partitions }) => ({
        topic,
        topicId,
        partitions: partitions.map((asked) => {
          const reader = this.readers[asked.partition]
          assert.ok(reader !== undefined)
          const answer = reader.plan.log.fetch(asked, isolationLevel, torn)
          if (left <= 0) return { ...answer, records: Buffer.alloc(0) }
          left -= answer.records?.length ?? 0
          return answer
        }),
      })),
    }
  }
}

function shape(message: FetchRequest | FetchResponse): unknown {
  const topics = 'topics' in message ? message.topics : message.responses
  return topics.map(({ topic, topicId, partitions }) => [
    `${topic}/${topicId}`,
    partitions.map((one) => ('partition' in one ? one.partition : one.partitionIndex)),
  ])
}

test('every consumer gets exactly its records, once and in order', async () => {
  const property = fc.asyncProperty(scenario, async (plan) => {
    const run = new Run(plan)
    plan.events.forEach((event, index) => {
      if (event === 'seek') for (const reader of run.readers) reader.seek(plan.seed + index * 7919)
      else run.fetch(event === 'lost')
    })
    // Every Fetch looks at one more entry at least, of one partition at least.
    const entries = plan.partitions.reduce((sum, { log: { entries: all } }) => sum + all.length, 0)
    for (let i = 0; i < entries * 2 + 25; i++) run.fetch(false)
    for (const reader of run.readers) {
      if (reader.policy === undefined) continue
      assert.deepEqual(reader.consumer.delivered, reader.expected(plan.isolationLevel))
    }
  })
  await checkAsync(property, 150)
})
