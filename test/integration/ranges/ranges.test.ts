/**
 * Static key ranges with real clients, a real broker and the built proxy: every family's consumers get exactly the records
 * of their ranges. A quick run gives each family every codec and two of the further scenarios, chosen by the printed seed;
 * `TEST_FULL=1` all. `TEST_FAMILIES=java,kafkajs` narrows it, `TEST_SEED=n` replays a choice.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { type FamilyName, familyNames, prepareFamily } from '../../../scripts/setup/families.ts'
import type { Program } from '../../../scripts/setup/toolchain.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { until } from '../../support/until.ts'
import { type ClientEvent, ClientProgram, type Run } from '../client.ts'
import { abilities } from '../matrix/families.ts'
import { assertDelivered, isEvent, rowsOf } from '../matrix/observe.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { clientIdOf, configuration, isIn, members, type RuleSet } from './rules.ts'
import { type Content, Topics } from './topics.ts'

const full = process.env['TEST_FULL'] === '1'
const wanted = process.env['TEST_FAMILIES']?.split(',')
const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const prefix = `ranges.${process.pid}`

let kafka: SharedKafka
let proxy: Proxy
let admin: Admin
let topics: Topics
const byCodec = new Map<string, Promise<Content>>()
let transactional: ReturnType<Topics['transactional']>
let compacted: Promise<Content>
let truncated: Promise<Content>

const prepared = await Promise.all(
  familyNames
    .filter((family) => wanted === undefined || wanted.includes(family))
    .map(async (family) => ({ family, program: await prepareFamily(family) })),
)
const writer = await anyWriter()

/** A family that writes every codec. */
async function anyWriter(): Promise<ClientProgram | undefined> {
  for (const family of ['franz-go', 'librdkafka', 'java', 'aiokafka'] as const) {
    const program = await prepareFamily(family)
    if (!('install' in program)) return new ClientProgram(`${family} (writer)`, program)
  }
  return undefined
}

interface Started {
  readonly run: Run
  readonly group: string
}

/** One family as the scenarios see it. */
class Family {
  readonly name: FamilyName
  readonly program: Program
  readonly client: ClientProgram
  private count = 0

  constructor(name: FamilyName, program: Program, client: ClientProgram) {
    this.name = name
    this.program = program
    this.client = client
  }

  /** Starts a consumer with the client id of a rule; its group is its own, as a family that cannot assign() needs it. */
  start(set: RuleSet, member: string, names: readonly string[], more: Record<string, unknown> = {}): Started {
    const group = `ranges.${this.name}.${set}.${member}-${process.pid}-${++this.count}`
    const clientId = clientIdOf(this.name, member)
    const own = { cmd: 'consume' as const, bootstrap: proxy.bootstrap, clientId, group, member }
    return { run: this.client.start({ ...own, topics: names, ...more }), group }
  }

  /** The consumers of a set of rules, side by side, each get exactly what is theirs, and together everything. */
  async share(set: RuleSet, contents: readonly Content[], more: Record<string, unknown> = {}): Promise<void> {
    const names = contents.map(({ topic }) => topic)
    const runs = members(set).map(([member, ranges]) => {
      const expected = contents.map(({ topic, records }) => ({
        topic,
        records: records.filter((one) => isIn(ranges, one)),
      }))
      return { member, expected, ...this.start(set, member, names, more) }
    })
    await Promise.all(runs.map(({ member, expected, run }) => exactly(`${this.name} ${member}`, run, expected)))
  }
}

/** Waits for as many records as are expected, ends the consumer, and compares. */
async function exactly(who: string, run: Run, expected: readonly Content[]): Promise<void> {
  const count = expected.reduce((sum, { records }) => sum + records.length, 0)
  await run.until(`${count} records`, (events) => events.filter(isEvent('delivered')).length >= count)
  const delivered = (await run.stop()).filter(isEvent('delivered'))
  for (const { topic, records } of expected) {
    try {
      assertDelivered(records, rowsOf(delivered.filter((event) => event.topic === topic)))
    } catch (error) {
      throw new Error(`${who}, ${topic}: ${(error as Error).message}`, { cause: error })
    }
  }
}

type Scenario = (family: Family) => Promise<void>

function readable(family: Family): Promise<Content[]> {
  return Promise.all(abilities[family.name].codecs.map(async (codec) => (await byCodec.get(codec)) as Content))
}

const everyCodec: Scenario = async (family) => family.share('half', await readable(family))

/** Nothing for seconds, from producers that are slower than the consumers, then one record. */
async function tail(family: Family): Promise<void> {
  const topic = await topics.create(`tail-${family.name}`)
  const all = members('key').map(([member, ranges]) => ({ ranges, ...family.start('key', member, [topic]) }))
  const slow = { producer: 'slow', keys: 1000, rate: 15 }
  const records = await topics.produce(topic, { ...slow, start: 1, count: 45 })
  assert.ok(!records.some((one) => isIn(members('key')[0]?.[1] ?? [], one)), 'none for the first consumer yet')
  records.push(...(await topics.produce(topic, { ...slow, start: 1000, count: 1 })))
  for (const { ranges, run } of all) {
    await exactly(family.name, run, [{ topic, records: records.filter((one) => isIn(ranges, one)) }])
  }
}

/** In a program of its own: some families do not end a consumer whose commit fails, or tell nothing of it. */
async function commits({ name, program }: Family): Promise<void> {
  const { topic, records } = (await byCodec.get('none')) as Content
  const count = records.filter((one) => isIn(members('half')[0]?.[1] ?? [], one)).length
  const own = new Family(name, program, new ClientProgram(`${name} (commits)`, program))
  try {
    const { run, group } = own.start('half', 'left', [topic], { commit: 'end', count })
    await run.until(`${count} records`, (events) => events.filter(isEvent('delivered')).length === count)
    const refusals = () =>
      proxy
        .tail(100_000)
        .split('\n')
        .filter((line) => line.includes('are refused (42)'))
    const mine = () => refusals().filter((line) => line.includes(clientIdOf(name, 'left')))
    await until(() => mine().length > 0)
    assert.equal(mine().length, 1, 'one log line')
    const [stored] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    assert.deepEqual(new Set(stored?.partitions.map(({ offset }) => offset)), new Set(['-1']))
  } finally {
    await own.client.kill()
  }
}

const further: [string, Scenario][] = [
  ['a consumer with every bucket gets everything', async (family) => family.share('whole', await readable(family))],
  ['one key, and all others', async (family) => family.share('key', await readable(family))],
  [
    'transactions, read_committed',
    async (family) => family.share('half', [(await transactional).committed], { isolation: 'read_committed' }),
  ],
  ['transactions, read_uncommitted', async (family) => family.share('half', [(await transactional).all])],
  ['a compacted topic', async (family) => family.share('half', [await compacted])],
  ['a topic whose beginning was deleted', async (family) => family.share('half', [await truncated])],
  ['nothing for seconds at the end of the log, then one record', tail],
  ['commits are refused and said once', commits],
]

/** Two of the further scenarios, so that nine families have each of them twice. */
function chosen(index: number): [string, Scenario][] {
  if (full) return further
  const first = seed + index * 2
  return further.filter((_, at) => [first, first + 1].some((turn) => turn % further.length === at))
}

describe(`static ranges (seed ${seed})`, {
  concurrency: 2,
  skip: writer === undefined && 'needs: a client family that writes every codec',
}, () => {
  before(async () => {
    kafka = await sharedKafka()
    proxy = await startProxy(kafka.bootstrap, { more: configuration(familyNames) })
    admin = new Kafka({ brokers: kafka.bootstrap.split(','), logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    topics = new Topics(admin, writer as ClientProgram, kafka.bootstrap, prefix)
    compacted = topics.compacted()
    for (const codec of codecs) byCodec.set(codec, topics.ofCodec(codec))
    transactional = topics.transactional()
    truncated = topics.truncated()
    await Promise.all([...byCodec.values(), transactional, truncated])
    compacted.catch(() => undefined) // met by who needs it
  })
  after(async () => {
    await admin.disconnect()
    await writer?.close()
    await proxy.stop()
    await kafka.stop()
  })

  prepared.forEach(({ family, program }, index) => {
    if ('install' in program) {
      test(family, { skip: `needs: ${program.install}` }, () => {})
      return
    }
    describe(family, { concurrency: 1 }, () => {
      let one: Family
      before(() => {
        one = new Family(family, program, new ClientProgram(family, program))
      })
      after(() => one.client.close())
      for (const [name, run] of [['half of the keys each, every codec', everyCodec] as const, ...chosen(index)])
        test(name, { timeout: 400_000 }, () => run(one))
    })
  })

  test('control: without a rule the same check finds records of others', { timeout: 200_000 }, async () => {
    const { topic, records } = (await byCodec.get('gzip')) as Content
    const left = records.filter((one: ClientEvent) => isIn(members('half')[0]?.[1] ?? [], one))
    const group = `ranges.control.${process.pid}`
    const plain = { cmd: 'consume' as const, bootstrap: proxy.bootstrap, clientId: 'no-rule', group, topics: [topic] }
    const run = (writer as ClientProgram).start({ ...plain, member: 'control' })
    await assert.rejects(exactly('control', run, [{ topic, records: left }]), /delivered but not acknowledged/)
  })

  test('what was delivered and withheld is in the metrics', async () => {
    const metrics = await proxy.metrics()
    assert.match(metrics, /headgate_range_records_total\{.*outcome="withheld"\} [1-9]/)
  })
})
