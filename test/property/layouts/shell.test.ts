/**
 * Random producers through real proxies while a topic grows, in virtual time: every acknowledged record is in the log
 * once, and a group that obeys seals and cuts reads each producer's records of a key in order.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { partitioners } from '../../../src/records/hashes/partitioners.ts'
import type { Layout, TopicState } from '../../../src/state/topic-state.ts'
import { type Client, LayoutsRig, type SentBatch } from '../../support/layouts-rig.ts'
import { checkAsync } from '../../support/property.ts'

interface ProducerPlan {
  readonly proxy: number
  /** Most requests in flight. */
  readonly depth: number
  readonly everyMs: number
  /** Asks for Metadata so often. */
  readonly refreshMs: number
  readonly keys: number
}

interface Batch {
  readonly partition: number
  readonly key: string
  readonly value: string
  sent: SentBatch | undefined
}

/** As the families that send a refused batch again to the same partition, after asking for Metadata. */
class Producer {
  readonly name: string
  acknowledged: string[] = []
  isStopped = false
  private readonly rig: LayoutsRig
  private readonly client: Client
  private readonly plan: ProducerPlan
  private count = 0
  private number = 0
  private waiting: Batch[] = []
  private flying: Batch[] = []
  private asked: { answer(): number | undefined | 'none' } | undefined
  private refreshAtMs = 0

  constructor(rig: LayoutsRig, client: Client, plan: ProducerPlan, name: string) {
    this.rig = rig
    this.client = client
    this.plan = plan
    this.name = name
    this.again()
  }

  get isIdle(): boolean {
    return this.flying.length === 0 && this.waiting.length === 0
  }

  private again(): void {
    this.rig.runtime.timer(this.plan.everyMs, () => {
      this.step()
      if (!this.isStopped || !this.isIdle) this.again()
    })
  }

  private step(): void {
    this.refresh()
    this.collect()
    if (this.count === 0) return
    if (!this.isStopped && this.waiting.length === 0) this.waiting.push(this.next())
    // What was refused goes alone, so that nothing overtakes it.
    const mayGo = this.flying.length < (this.waiting.length > 1 ? 1 : this.plan.depth)
    const batch = mayGo ? this.waiting.shift() : undefined
    if (batch === undefined) return
    batch.sent = this.client.produce(batch.partition, [batch.key], batch.value)
    this.flying.push(batch)
  }

  private next(): Batch {
    const key = `k${this.rig.runtime.prng.below(this.plan.keys)}`
    const bytes = Buffer.from(key)
    const partition = partitioners['murmur2-mask'](bytes, 0, bytes.length, this.count)
    return { partition, key, value: `${this.name}:${this.number++}`, sent: undefined }
  }

  private collect(): void {
    for (let first = this.flying[0]; first !== undefined; first = this.flying[0]) {
      const result = first.sent?.result()
      if (result === undefined) return
      this.flying.shift()
      if (result.errorCode === 0) {
        this.acknowledged.push(`${first.key}:${first.value}`)
        continue
      }
      assert.equal(result.errorCode, 6)
      this.refreshAtMs = 0
      this.waiting = [first, ...this.waiting].sort((a, b) => numberOf(a.value) - numberOf(b.value))
    }
  }

  private refresh(): void {
    const now = this.rig.runtime.now()
    const answer = this.asked?.answer()
    if (answer !== undefined && answer !== 'none') this.count = answer
    if (answer !== undefined) this.asked = undefined
    if (this.asked !== undefined || now < this.refreshAtMs) return
    this.refreshAtMs = now + this.plan.refreshMs
    this.asked = this.client.askCount()
  }
}

function numberOf(value: string): number {
  return Number(value.split(':').at(-1))
}

const plan: fc.Arbitrary<ProducerPlan> = fc.record({
  proxy: fc.nat({ max: 1 }),
  depth: fc.constantFrom(1, 3),
  everyMs: fc.integer({ min: 15, max: 60 }),
  refreshMs: fc.constantFrom(400, 3000, 9000),
  keys: fc.integer({ min: 3, max: 12 }),
})

test('layouts: whoever writes while 3 partitions become 5 or 6, records of a key keep their order', async () => {
  await checkAsync(
    fc.asyncProperty(
      fc.array(plan, { minLength: 1, maxLength: 3 }),
      fc.constantFrom(5, 6),
      fc.nat({ max: 3000 }),
      fc.nat(),
      async (plans, to, atMs, seed) => {
        const rig = await LayoutsRig.start({ proxies: 2, seed })
        const producers: Producer[] = []
        for (const [i, each] of plans.entries())
          producers.push(new Producer(rig, await rig.client(each.proxy, `p${i}`), each, `p${i}`))
        await rig.pause(2000 + atMs)
        await rig.settled(rig.expand(to))
        await rig.pause(15_000)
        for (const producer of producers) producer.isStopped = true
        await rig.until(() => producers.every(({ isIdle }) => isIdle), 'everything is acknowledged')
        if (to === 6) await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'it is sealed', 200_000)
        const logs = Array.from({ length: to }, (_, partition) => rig.values(partition))
        const acknowledged = producers.flatMap((producer) => producer.acknowledged)
        assert.deepEqual(logs.flat().sort(), acknowledged.sort())
        checkOrder(logs, rig.topic() as TopicState)
        await rig.stop()
      },
    ),
    6,
  )
})

interface Place {
  readonly partition: number
  readonly offset: number
  readonly number: number
}

/** Of two records of one producer and key, the earlier one is read first by whoever obeys the topic's gates. */
function checkOrder(logs: readonly (readonly string[])[], topic: TopicState): void {
  const byKey = new Map<string, Place[]>()
  for (const [partition, log] of logs.entries())
    for (const [offset, text] of log.entries()) {
      const [key = '', producer = '', number = ''] = text.split(':')
      const places = byKey.get(`${key}:${producer}`) ?? []
      byKey.set(`${key}:${producer}`, places)
      places.push({ partition, offset, number: Number(number) })
    }
  const [, layout] = topic.layouts
  assert.notEqual(layout, undefined)
  for (const [who, places] of byKey)
    for (const later of places)
      for (const earlier of places)
        if (earlier.number < later.number)
          assert.equal(
            isReadFirst(earlier, later, layout as Layout, topic),
            true,
            `${who}: ${JSON.stringify({ earlier, later, cuts: topic.cuts, seal: layout?.seal })}`,
          )
}

function isReadFirst(earlier: Place, later: Place, layout: Layout, topic: TopicState): boolean {
  if (earlier.partition === later.partition) return earlier.offset < later.offset
  const boundary = layout.seal?.boundaries[earlier.partition]
  const waitsForSeal = layout.gates === 'seal' && later.partition >= 3
  if (waitsForSeal) return boundary !== undefined && earlier.offset < boundary
  return topic.cuts.some(
    ({ ends }) => earlier.offset < (ends[earlier.partition] ?? 0) && later.offset >= (ends[later.partition] ?? 0),
  )
}
