/**
 * Consumers for whom nothing comes for long: the log grows by records of others, and what each family then shows of its
 * position and lag, and what it asks for, is what docs/key-ranges.md says. All families wait at once, so that it takes no
 * longer than the wait: seconds, and with `TEST_FULL=1` more than three minutes. `TEST_FAMILIES=java,kafkajs` narrows it.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Admin, Kafka, logLevel, type Producer } from 'kafkajs'
import { type FamilyName, familyNames, prepareFamily } from '../../../scripts/setup/families.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { until } from '../../support/until.ts'
import { type ClientEvent, ClientProgram, type Run } from '../client.ts'
import { isEvent } from '../matrix/observe.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { Requests } from './requests.ts'
import { clientIdOf, configuration, isIn, members } from './rules.ts'
import { Topics } from './topics.ts'

const waitMs = process.env['TEST_FULL'] === '1' ? 190_000 : 12_000
const wanted = process.env['TEST_FAMILIES']?.split(',')
/** Of all client programs. */
const maxWaitMs = 500
const everyMs = 200
const member = 'one'
const partition = 0

/** A client tells its position a while after it asked for the log's end. */
const staleMs = 8000

/** The log begins with a batch of ten of which the consumer has one, then one of ten that are all others'. */
const batch = { size: 10, own: 3 }
const begin = { record: batch.own + 1, batch: batch.size, end: 2 * batch.size }
const [, ranges] = members('key')[0] as ReturnType<typeof members>[number]
const others = Array.from({ length: 20 }, (_, i) => `k${i + 1}é`).filter((key) => !isIn(ranges, { key } as ClientEvent))

/** What a family shows while only records of others come: docs/key-ranges.md, "Position and lag". */
interface Shown {
  /** Behind the last batch delivered, behind the last record delivered, or not at all. */
  readonly position: 'batch' | 'record' | 'none'
  /** The high watermark: of now, of the last delivery, or not at all. */
  readonly end: 'now' | 'then' | 'none'
  /** The lag that it computes itself: from its position to now, as of the last delivery, the whole log, or not at all. */
  readonly lag: 'now' | 'then' | 'log' | 'none'
}

const shown: Record<FamilyName, Shown> = {
  java: { position: 'batch', end: 'none', lag: 'now' },
  'java-2.8': { position: 'batch', end: 'none', lag: 'now' },
  kafkajs: { position: 'none', end: 'then', lag: 'then' },
  platformatic: { position: 'batch', end: 'none', lag: 'log' },
  librdkafka: { position: 'record', end: 'now', lag: 'now' },
  'franz-go': { position: 'record', end: 'then', lag: 'none' },
  sarama: { position: 'none', end: 'then', lag: 'none' },
  aiokafka: { position: 'batch', end: 'now', lag: 'none' },
  'kafka-python': { position: 'batch', end: 'now', lag: 'none' },
}

let kafka: SharedKafka
let proxy: Proxy
let admin: Admin
let producer: Producer
let topic: string
let end = 0
/** The log's end after each append, with the time. */
const ends: [at: number, end: number][] = []
const requests = new Requests()

/** One family's consumer and the span in which it had nothing to get. */
class Waiter {
  readonly client: ClientProgram
  readonly clientId: string
  readonly group: string
  readonly run: Run
  from = 0
  to = 0

  constructor(family: FamilyName, client: ClientProgram) {
    this.client = client
    this.clientId = clientIdOf(family, member)
    this.group = `ranges.${family}.key.waiting-${process.pid}`
    const own = { cmd: 'consume' as const, bootstrap: proxy.bootstrap, clientId: this.clientId, group: this.group }
    this.run = client.start({ ...own, member, topics: [topic], positionsMs: 1000 })
  }

  async got(offset: number): Promise<void> {
    await this.run.until(`offset ${offset}`, (events) => this.delivered(events).includes(offset))
  }

  /** Resolves when every Fetch that found the record is over, and all that it does while it waits was done once. */
  async waits(): Promise<void> {
    const now = Date.now()
    await until(() => {
      const { Fetch = 0, Heartbeat = 0 } = requests.between(this.clientId, now, Infinity).requests
      return Fetch >= 3 && Heartbeat >= 1
    })
    await this.run.until('a position', (events) => events.some((one) => isEvent('position')(one) && one.at > now))
  }

  delivered(events: readonly ClientEvent[] = this.run.events): number[] {
    return events.filter(isEvent('delivered')).map((event) => event.offset ?? -1)
  }

  within(): ClientEvent[] {
    return this.run.events.filter(({ at }) => at >= this.from && at < this.to)
  }

  /** The position told last before the match was written. */
  position(): ClientEvent {
    const last = this.within().findLast(isEvent('position'))
    assert.ok(last !== undefined && last.at > this.to - staleMs, 'it tells its position until the end')
    return last
  }
}

/** A batch of the topic's log; gives the offset of its first record. */
async function append(keys: readonly string[]): Promise<number> {
  const messages = keys.map((key, i) => ({ key, value: `other|${key}|${end + i}|`, partition }))
  const [answer] = await producer.send({ topic, messages, acks: -1 })
  const first = Number(answer?.baseOffset)
  end = first + keys.length
  ends.push([Date.now(), end])
  return first
}

function someOthers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => others[(end + i) % others.length] as string)
}

interface Told {
  readonly at: number
  readonly position: number | undefined
  readonly high: number
  readonly lag: number
}

function assertShown(as: Shown, { at, position, high, lag }: Told): void {
  assert.equal(position, as.position === 'none' ? -1 : begin[as.position])
  const ofNow = (value: number, below: number): void => {
    const lowest = (ends.findLast(([when]) => when < at - staleMs)?.[1] ?? begin.end) - below
    assert.ok(value >= lowest && value <= end - below, `${value} is not between ${lowest} and ${end - below}`)
  }
  if (as.end === 'now') ofNow(high, 0)
  else assert.equal(high, as.end === 'then' ? begin.end : -1)
  if (as.lag === 'now') ofNow(lag, begin[as.position === 'batch' ? 'batch' : 'record'])
  else if (as.lag === 'log') ofNow(lag, -1)
  else assert.equal(lag, as.lag === 'then' ? begin.end - begin.record : -1)
}

const prepared = await Promise.all(
  familyNames
    .filter((family) => wanted === undefined || wanted.includes(family))
    .map(async (family) => ({ family, program: await prepareFamily(family) })),
)
const waiters = new Map<FamilyName, Waiter>()
const failures = new Map<FamilyName, unknown>()
let match = 0

/** The same step for every family; one that fails is left out of the next and reported by its own test. */
async function everybody(step: (waiter: Waiter) => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from(waiters, async ([family, waiter]) => {
      if (failures.has(family)) return
      await step(waiter).catch((error: unknown) => failures.set(family, error))
    }),
  )
}

describe(`nothing for ${waitMs / 1000} s`, () => {
  before(async () => {
    kafka = await sharedKafka()
    proxy = await startProxy(kafka.bootstrap, { more: configuration(familyNames), inspect: true })
    await requests.listen(proxy.admin)
    const client = new Kafka({ brokers: kafka.bootstrap.split(','), logLevel: logLevel.NOTHING })
    admin = client.admin()
    producer = client.producer()
    await Promise.all([admin.connect(), producer.connect()])
    const programs = prepared.flatMap(({ family, program }) => ('install' in program ? [] : [{ family, program }]))
    if (programs.length === 0) return
    const topics = new Topics(admin, undefined as never, kafka.bootstrap, `ranges.${process.pid}`)
    topic = await topics.create('waiting', {}, 1)
    await append(someOthers(batch.size).map((key, i) => (i === batch.own ? 'k0é' : key)))
    await append(someOthers(batch.size))
    for (const { family, program } of programs)
      waiters.set(family, new Waiter(family, new ClientProgram(family, program)))
    await everybody((waiter) => waiter.got(batch.own))
    await everybody((waiter) => waiter.waits())
    const from = Date.now()
    while (Date.now() < from + waitMs) {
      await append(someOthers(1))
      await delay(everyMs)
    }
    for (const waiter of waiters.values()) Object.assign(waiter, { from, to: Date.now() })
    match = await append(['k0é'])
    await everybody((waiter) => waiter.got(match))
    await everybody(async (waiter) => void (await waiter.run.stop()))
  })
  after(async () => {
    await Promise.all(Array.from(waiters.values(), ({ client }) => client.close()))
    await Promise.all([admin.disconnect(), producer.disconnect(), requests.stop()])
    await proxy.stop()
    await kafka.stop()
  })

  for (const { family, program } of prepared) {
    if ('install' in program) {
      test(family, { skip: `needs: ${program.install}` }, () => {})
      continue
    }

    describe(family, () => {
      let waiter: Waiter
      before(() => {
        if (failures.has(family)) throw failures.get(family)
        waiter = waiters.get(family) as Waiter
      })

      test('one Fetch per wait, and nothing else happens', (t) => {
        const { requests: sent, opened } = requests.between(waiter.clientId, waiter.from, waiter.to)
        t.diagnostic(JSON.stringify({ sent, opened }))
        const told = waiter.within().filter(({ event }) => event !== 'position')
        assert.deepEqual(told, [], 'the application notices nothing')
        const { Fetch = 0, JoinGroup = 0, SyncGroup = 0 } = sent
        assert.ok(Fetch > 0 && Fetch <= (waiter.to - waiter.from) / maxWaitMs + 2, `${Fetch} Fetches`)
        assert.deepEqual({ JoinGroup, SyncGroup, opened }, { JoinGroup: 0, SyncGroup: 0, opened: 0 })
      })

      test('the first match comes, and nothing but it', () => {
        assert.deepEqual(waiter.delivered(), [batch.own, match])
      })

      test('position, end and lag are shown as documented', async (t) => {
        const { at, position, end: high = -1, lag = -1 } = waiter.position()
        t.diagnostic(JSON.stringify({ position, end: high, lag }))
        assertShown(shown[family], { at, position, high, lag })
        const [stored] = await admin.fetchOffsets({ groupId: waiter.group, topics: [topic] })
        assert.deepEqual(
          stored?.partitions.map(({ offset }) => offset),
          ['-1'],
          'nothing is committed',
        )
      })
    })
  }
})
