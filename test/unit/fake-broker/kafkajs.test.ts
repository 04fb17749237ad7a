/** A real client on the fake broker: kafkajs produces, consumes, commits, resumes, and ends transactions. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Kafka, logLevel, type Consumer } from 'kafkajs'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'

let broker: FakeBroker
let kafka: Kafka

before(async () => {
  broker = await FakeBroker.start(await nodeRuntime(), { nodeIds: [1, 2, 3] })
  kafka = new Kafka({
    brokers: broker.bootstrap,
    clientId: 'test',
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8 },
  })
})

after(() => broker.stop())

test('produce, consume in a group, commit, resume', async () => {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 3 }] })
  const producer = kafka.producer()
  await producer.connect()
  const messages = Array.from({ length: 60 }, (_, i) => ({
    key: `k${i % 7}`,
    value: `v${i}`,
    headers: { n: String(i) },
  }))
  await producer.send({ topic: 'orders', messages: messages.slice(0, 30) })
  const first = await consume('g1', 'orders', 30)
  await producer.send({ topic: 'orders', messages: messages.slice(30) })
  const second = await consume('g1', 'orders', 30)
  assert.deepEqual(
    [...first, ...second].sort(byNumber),
    messages.map(({ value }) => value),
  )
  const offsets = await admin.fetchTopicOffsets('orders')
  assert.equal(
    offsets.reduce((sum, { high }) => sum + Number(high), 0),
    60,
  )
  const described = await admin.describeGroups(['g1'])
  assert.equal(described.groups[0]?.state, 'Empty')
  await producer.disconnect()
  await admin.disconnect()
})

test('an aborted transaction is not seen, a committed one is', async () => {
  const producer = kafka.producer({ transactionalId: 'tx', idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  broker.cluster.createTopic('tx-topic', 1)
  const aborted = await producer.transaction()
  await aborted.send({ topic: 'tx-topic', messages: [{ key: 'a', value: 'v1' }] })
  await aborted.abort()
  const committed = await producer.transaction()
  await committed.send({ topic: 'tx-topic', messages: [{ key: 'a', value: 'v2' }] })
  await committed.commit()
  assert.deepEqual(await consume('g2', 'tx-topic', 1), ['v2'])
  await producer.disconnect()
})

test('the leader moves and connections die in between: nothing is lost', async () => {
  broker.cluster.createTopic('moving', 1)
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const partition = broker.cluster.topics.partition('moving', 0)
  assert.ok(partition)
  for (let i = 0; i < 6; i++) {
    await producer.send({ topic: 'moving', messages: [{ key: 'a', value: `v${i}` }] })
    if (i === 1) broker.cluster.elect(partition)
    if (i === 3) broker.closeConnections(partition.leader, true)
  }
  assert.deepEqual(await consume('g3', 'moving', 6), ['v0', 'v1', 'v2', 'v3', 'v4', 'v5'])
  await producer.disconnect()
})

/** Values of the next `count` records, in the order of their arrival. */
async function consume(groupId: string, topic: string, count: number): Promise<string[]> {
  const consumer: Consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 200 })
  const values: string[] = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await new Promise<void>((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer
      .run({
        eachMessage: async ({ message }) => {
          values.push(message.value?.toString() ?? '')
          if (values.length === count) resolve()
        },
      })
      .catch(reject)
  })
  await consumer.disconnect()
  return values
}

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1))
}
