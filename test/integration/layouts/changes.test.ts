/**
 * Partitions added and removed in every way there is, by two built proxies in front of Apache Kafka: any admin client, the
 * command line, the API, and behind the proxies' back. And everything that is refused changes nothing.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Admin, Kafka, logLevel } from 'kafkajs'
import { builtMain } from '../../../scripts/setup/build.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { until } from '../../support/until.ts'
import { headgate } from '../headgate.ts'
import { Tools } from '../tools/tools.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { areActing } from './fleet.ts'

const prefix = `layouts-${process.pid}`
/** For a change of partitions: the default of kafkajs, 5 s, is what a loaded machine may take. */
const timeout = 25_000
const name = (what: string) => `${prefix}.${what}`

let kafka: SharedKafka
let proxies: [Proxy, Proxy]
let direct: Admin
let through: Admin
let other: Admin

async function adminOf(bootstrap: string, clientId = 'admin'): Promise<Admin> {
  const admin = new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 2 } }).admin()
  await admin.connect()
  return admin
}

async function countAt(admin: Admin, topic: string): Promise<number> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return topics[0]?.partitions.length ?? 0
}

async function create(what: string, numPartitions = 3): Promise<string> {
  const topic = name(what)
  await direct.createTopics({ topics: [{ topic, numPartitions }] })
  await until(async () => (await countAt(through, topic)) === numPartitions)
  // Known to the log, so that a change is not asked for too early.
  await until(async () => (await fetch(`${proxies[0].admin}/api/topics/${topic}`)).ok)
  await until(async () => (await fetch(`${proxies[1].admin}/api/topics/${topic}`)).ok)
  return topic
}

/** The command line, against the first proxy or the second one. */
async function cli(line: string, index: 0 | 1 = 0) {
  const run = await headgate(line.split(' '), { HEADGATE_ADMIN: proxies[index].admin })
  const { code } = await run.finished
  return { code, out: run.stdout, err: run.stderr }
}

async function describeTopic(topic: string) {
  const { out } = await cli(`topics describe ${topic} --json`)
  return JSON.parse(out) as {
    partitions: number
    exists: number
    phase: string
    layouts: { epoch: number; change: string; gates: string; partitions: number; seal?: unknown; announced?: boolean }[]
  }
}

async function post(topic: string, change: string, body: object) {
  const answer = await fetch(`${proxies[1].admin}/api/topics/${topic}/${change}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as { epoch?: number; error?: { code: string } } }
}

before(async () => {
  await builtMain()
  kafka = await sharedKafka()
  const more = `topics: {'${prefix}[.]in-.*': {layouts: {}}}\n`
  proxies = await Promise.all([startProxy(kafka.bootstrap, { more }), startProxy(kafka.bootstrap, { more })])
  ;[direct, through, other] = await Promise.all(
    [kafka.bootstrap, proxies[0].bootstrap, proxies[1].bootstrap].map((at) => adminOf(at)) as [
      Promise<Admin>,
      Promise<Admin>,
      Promise<Admin>,
    ],
  )
  await until(() => areActing(proxies))
})

after(async () => {
  await Promise.all([direct, through, other].map((admin) => admin?.disconnect()))
  await Promise.all((proxies ?? []).map((proxy) => proxy.stop()))
  await kafka?.stop()
})

test('the command line expands, at any proxy, and waits for the seal', async () => {
  const topic = await create('in-cli')
  const dry = await cli(`topics expand ${topic} --to 6 --dry-run`)
  assert.deepEqual([dry.code, await countAt(direct, topic)], [0, 3], dry.err)
  const done = await cli(`topics expand ${topic} --to 6 --wait`, 1)
  assert.equal(done.code, 0, done.err + done.out)
  assert.match(done.out, /went from 3 to 6 partitions \(expand, epoch 1\)[^]*sealed: epoch 1/)
  assert.deepEqual(
    [await countAt(through, topic), await countAt(other, topic), await countAt(direct, topic)],
    [6, 6, 6],
  )
  const { phase, layouts } = await describeTopic(topic)
  assert.deepEqual([phase, layouts.length], ['settled', 2])
  assert.match((await cli('topics list')).out, new RegExp(`${topic} +settled +\\d+ \\w+ +6 +0 +1 +key`))
})

test('an admin client expands by CreatePartitions, multiples or not, on given brokers too', async () => {
  const topic = await create('in-admin')
  await through.createPartitions({ timeout, topicPartitions: [{ topic, count: 6 }] })
  assert.deepEqual([await countAt(through, topic), await countAt(other, topic)], [6, 6])
  await until(async () => (await describeTopic(topic)).phase === 'settled')
  const { topics } = await direct.fetchTopicMetadata({ topics: [topic] })
  const leader = topics[0]?.partitions[0]?.leader ?? 1
  const assignments = [[leader], [leader]]
  await other.createPartitions({ timeout, topicPartitions: [{ topic, count: 8, assignments }] })
  assert.deepEqual([await countAt(through, topic), await countAt(direct, topic)], [8, 8])
  assert.equal((await describeTopic(topic)).layouts[2]?.gates, 'cuts')
})

test('an admin client is refused with the errors of Kafka, and what is only validated changes nothing', async () => {
  const topic = await create('in-refused')
  const ask = (count: number, validateOnly = false) =>
    through.createPartitions({ timeout, validateOnly, topicPartitions: [{ topic, count }] })
  await assert.rejects(ask(3), { type: 'INVALID_PARTITIONS' })
  await assert.rejects(ask(2), { type: 'INVALID_PARTITIONS' })
  await ask(6, true)
  assert.deepEqual([await countAt(direct, topic), (await describeTopic(topic)).layouts.length], [3, 1])
  const plain = name('plain')
  await direct.createTopics({ topics: [{ topic: plain, numPartitions: 1 }] })
  await through.createPartitions({ timeout, topicPartitions: [{ topic: plain, count: 2 }] })
  assert.equal(await countAt(through, plain), 2)
})

test('partitions that somebody created directly are taken up: a multiple, and not', async () => {
  for (const [count, gates] of [
    [6, 'seal'],
    [5, 'cuts'],
  ] as const) {
    const topic = await create(`in-external-${count}`)
    await direct.createPartitions({ timeout, topicPartitions: [{ topic, count }] })
    await until(async () => (await countAt(through, topic)) === count)
    const layout = (await describeTopic(topic)).layouts[1]
    assert.deepEqual([layout?.change, layout?.gates], ['external', gates])
    await until(async () => (await describeTopic(topic)).phase === 'settled')
  }
})

test('a topic shrinks and grows again', async () => {
  const topic = await create('in-shrink', 6)
  const shrunk = await cli(`topics shrink ${topic} --to 3`)
  assert.equal(shrunk.code, 0, shrunk.err)
  await until(async () => (await describeTopic(topic)).layouts[1]?.announced === true)
  assert.equal(await countAt(direct, topic), 6)
  // Another client: this one was shown six, and keeps them until it restarts.
  assert.equal(await countAt(through, topic), 6)
  const fresh = await adminOf(proxies[0].bootstrap, 'started-later')
  assert.equal(await countAt(fresh, topic), 3)
  await fresh.disconnect()
  const grown = await post(topic, 'expand', { to: 6 })
  assert.deepEqual([grown.status, grown.body.epoch], [200, 2], JSON.stringify(grown.body))
  assert.equal(await countAt(through, topic), 6)
})

test('what makes no sense is refused with what to do, and nothing changes', async () => {
  const topic = await create('in-bad')
  const plain = name('plain-too')
  await direct.createTopics({ topics: [{ topic: plain, numPartitions: 1 }] })
  const cases: [line: string, says: RegExp][] = [
    [`topics expand ${topic} --to 3`, /has 3 partitions already \(HG_TO_SAME\)/],
    [`topics expand ${topic} --to 2`, /HG_TO_TOO_SMALL\)\n {2}ask for more than 3, or shrink the topic/],
    [`topics shrink ${topic} --to 4`, /HG_TO_TOO_LARGE\)\n {2}ask for fewer than 3, or expand the topic/],
    [`topics expand ${topic} --to 5`, /no multiple of 3: [^]*HG_NOT_MULTIPLE\)\n {2}expand to 6, or say [^]*--any/],
    [`topics expand ${topic} --to 90000`, /HG_TO_TOO_LARGE/],
    [`topics expand ${name('in-nope')} --to 6`, /there is no topic .*HG_TOPIC_UNKNOWN/],
    [`topics expand ${plain} --to 2`, /has no layouts in the configuration \(HG_TOPIC_NO_RULE\)\n {2}add topics: /],
  ]
  for (const [line, says] of cases) {
    const { code, err } = await cli(line)
    assert.equal(code, 1, line)
    assert.match(err, says)
  }
  assert.equal((await cli(`topics expand ${topic} --to many`)).code, 2)
  assert.deepEqual([await countAt(direct, topic), await countAt(direct, plain)], [3, 1])
})

test('of two changes at once one is made, and the other one is told so', async () => {
  const topic = await create('in-both')
  const { pid } = proxies[0]
  // A change waits for every proxy of the fleet: this one is not over before the other one is asked for.
  process.kill(pid, 'SIGSTOP')
  const answers = [6, 9].map((to) => post(topic, 'expand', { to }))
  const first = await Promise.race(answers).finally(() => process.kill(pid, 'SIGCONT'))
  assert.deepEqual([first.status, first.body.error?.code], [409, 'HG_CHANGE_IN_PROGRESS'])
  const both = await Promise.all(answers)
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409], JSON.stringify(both))
  assert.equal(await countAt(direct, topic), both[0]?.status === 200 ? 6 : 9)
})

test('kafka-topics.sh expands, and is told why it cannot', async () => {
  const topic = await create('in-java')
  const tools = await Tools.start()
  try {
    const run = (...args: string[]) =>
      tools.run('org.apache.kafka.tools.TopicCommand', [
        '--bootstrap-server',
        proxies[1].bootstrap,
        '--topic',
        topic,
        ...args,
      ])
    const altered = await run('--alter', '--partitions', '6')
    assert.equal(altered.status, 0, altered.output)
    assert.match((await run('--describe')).output, /PartitionCount: 6/)
    assert.equal(await countAt(through, topic), 6)
    const refused = await run('--alter', '--partitions', '4')
    assert.equal(refused.status, 1)
    assert.match(refused.output, /has 6 partitions: 4 would not add any \(ask for more than 6, or shrink the topic\)/)
    await until(async () => (await describeTopic(topic)).phase === 'settled')
    const { topics } = await direct.fetchTopicMetadata({ topics: [topic] })
    const leader = topics[0]?.partitions[0]?.leader ?? 1
    const assigned = await run(
      '--alter',
      '--partitions',
      '7',
      '--replica-assignment',
      Array.from({ length: 7 }, () => leader).join(','),
    )
    assert.equal(assigned.status, 0, assigned.output)
    assert.equal(await countAt(through, topic), 7)
  } finally {
    tools.close()
  }
})
