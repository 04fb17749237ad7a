/**
 * Gates in the built proxy, with a real broker: a topic grows from 3 to 6 partitions by an admin client's own request, in
 * front of a group that is behind, one that idles at the end, and one that never commits.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Consumer, Kafka, logLevel } from 'kafkajs'
import { canRunKafka } from '../../../scripts/kafka/artifacts.ts'
import { builtMain } from '../../../scripts/setup/build.ts'
import { type SharedKafka, sharedKafka } from '../../kafka/shared.ts'
import { until } from '../../support/until.ts'
import { getJson, metrics } from '../headgate.ts'
import { type Proxy, startProxy } from '../proxy.ts'

const prefix = `gates.${process.pid}`
const keys = Array.from({ length: 24 }, (_, i) => `key-${i}`)

let kafka: SharedKafka
let proxy: Proxy
const consumers: Consumer[] = []

interface Gate {
  topic: string
  partition: number
  from: number
  parent?: number
  until?: number
}

interface Got {
  readonly key: string
  readonly sequence: number
  readonly partition: number
}

const client = (clientId: string) =>
  new Kafka({ clientId, brokers: [proxy.bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 8 } })

async function createTopic(name: string): Promise<string> {
  const topic = `${prefix}.${name}`
  const admin = client(`${topic}.admin`).admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }], waitForLeaders: true })
  await admin.disconnect()
  return topic
}

/** As any admin client would; it is answered when the new layout is open. */
async function grow(topic: string): Promise<void> {
  const admin = client(`${topic}.grower`).admin()
  await admin.connect()
  await admin.createPartitions({ timeout: 25_000, topicPartitions: [{ topic, count: 6 }] })
  await admin.disconnect()
}

/** `rounds` records of every key, each awaited, numbered from `first` on, by a producer that knows the topic of now. */
async function produce(topic: string, first: number, rounds: number): Promise<void> {
  const producer = client(`${topic}.producer`).producer()
  await producer.connect()
  for (let round = first; round < first + rounds; round++)
    await producer.send({ topic, messages: keys.map((key) => ({ key, value: String(round) })) })
  await producer.disconnect()
}

interface Consuming {
  readonly got: Got[]
  readonly consumer: Consumer
}

async function consume(
  topic: string,
  groupId: string,
  options: { fromBeginning: boolean; autoCommit?: boolean; hold?: () => Promise<void> },
): Promise<Consuming> {
  const { fromBeginning, autoCommit = true, hold } = options
  const consumer = client(`${groupId}.consumer`).consumer({
    groupId,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 500,
    metadataMaxAge: 1000,
  })
  consumers.push(consumer)
  const got: Got[] = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning })
  await consumer.run({
    autoCommit,
    eachMessage: async ({ message, partition }) => {
      await hold?.()
      got.push({ key: String(message.key), sequence: Number(message.value), partition })
    },
  })
  return { got, consumer }
}

/** Per key, each number once and in order. */
function assertOrdered(got: readonly Got[], first: number, end: number): void {
  for (const key of keys) {
    const sequences = got.filter((one) => one.key === key).map(({ sequence }) => sequence)
    assert.deepEqual(
      sequences,
      Array.from({ length: end - first }, (_, i) => first + i),
      key,
    )
  }
}

const gatesOf = async (group: string) => (await getJson(`${proxy.admin}/api/groups/${group}/gates`)) as Gate[]

/** Of all groups: other ones may have had theirs before. */
const startCommits = async () => (await metrics(proxy.admin)).get('headgate_gate_start_commits_total') ?? 0

async function sealed(topic: string): Promise<void> {
  await until(async () => {
    const view = (await getJson(`${proxy.admin}/api/topics/${encodeURIComponent(topic)}`)) as {
      layouts: { epoch: number; seal?: unknown }[]
    }
    return view.layouts.some(({ epoch, seal }) => epoch === 1 && seal !== undefined)
  })
}

describe('gates', {
  skip: canRunKafka() ? false : 'needs: apt-get install openjdk-17-jdk maven',
  timeout: 400_000,
}, () => {
  before(async () => {
    await builtMain()
    kafka = await sharedKafka()
    proxy = await startProxy(kafka.bootstrap, {
      more: `topics:\n  '${prefix.replaceAll('.', '\\.')}\\..*': {layouts: {goneAfter: 2s}}\ngroups:\n  '.*\\.patient': {gate: after 3s}\n`,
    })
  })
  after(async () => {
    await Promise.allSettled(consumers.map((consumer) => consumer.disconnect()))
    await proxy?.stop()
    await kafka?.stop()
  })

  void test('a group that is behind gets every key in order; what waits is shown until it comes', async () => {
    const topic = await createTopic('behind')
    await produce(topic, 0, 20)
    await grow(topic)
    await produce(topic, 20, 20)
    await sealed(topic)
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => (go = resolve))
    const group = `${topic}.group`
    const { got } = await consume(topic, group, { fromBeginning: true, hold: () => gate })
    await until(async () => (await gatesOf(group)).length === 3)
    assert.deepEqual((await gatesOf(group)).map(({ partition, parent }) => [partition, parent]).sort(), [
      [3, 0],
      [4, 1],
      [5, 2],
    ])
    await until(async () => (await metrics(proxy.admin)).get(`headgate_gates_shut{topic="${topic}"}`) === 3)
    go()
    await until(() => got.length === keys.length * 40)
    assertOrdered(got, 0, 40)
    assert.ok(got.some(({ partition }) => partition > 2))
    await until(async () => (await gatesOf(group)).length === 0)
  })

  void test('a group that reads along while the topic grows gets every key in order', async () => {
    const topic = await createTopic('along')
    const { got } = await consume(topic, `${topic}.group`, { fromBeginning: true })
    await produce(topic, 0, 10)
    await grow(topic)
    await produce(topic, 10, 30)
    await until(() => got.length === keys.length * 40)
    assertOrdered(got, 0, 40)
  })

  void test('a group that idles at the end, and never committed, gets what comes after the change', async () => {
    const topic = await createTopic('idle')
    const before = await startCommits()
    await produce(topic, 0, 5)
    const { got, consumer } = await consume(topic, `${topic}.group`, { fromBeginning: false })
    // it has its position once it has fetched
    await new Promise<void>((resolve) => consumer.on('consumer.fetch', () => resolve()))
    const assigned = new Promise<void>((resolve) =>
      consumer.on('consumer.group_join', ({ payload }) => {
        if (payload.memberAssignment[topic]?.length === 6) resolve()
      }),
    )
    await grow(topic)
    await assigned // what comes to a partition before that is not for a group that starts at the end
    const producer = client(`${topic}.late`).producer()
    await producer.connect()
    const messages = [3, 4, 5].map((partition) => ({ partition, key: `only-${partition}`, value: '0' }))
    await producer.send({ topic, messages })
    await producer.disconnect()
    await until(() => got.length === 3)
    assert.equal((await startCommits()) - before, 3, 'where it began in partitions 0 to 2')
  })

  void test('a group that never commits waits as long as its policy says', async () => {
    const topic = await createTopic('silent')
    await produce(topic, 0, 5)
    await grow(topic)
    await produce(topic, 5, 5)
    const { got } = await consume(topic, `${topic}.patient`, { fromBeginning: true, autoCommit: false })
    await until(() => got.length === keys.length * 10)
    const opened = (await metrics(proxy.admin)).get('headgate_gates_opened_by_policy_total{policy="after"}')
    assert.equal(opened, 3)
  })
})
