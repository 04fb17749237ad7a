/** What `Cluster` promises, asked of Apache Kafka; kafkajs makes the records and commits. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import type { ClusterClient } from '../../../src/cluster/cluster-client.ts'
import { partitionKey } from '../../../src/cluster/cluster.ts'
import { type SharedKafka, sharedKafka } from '../../kafka/shared.ts'
import { until } from '../../support/until.ts'
import { clientOf } from './client.ts'

const name = `cluster-${process.pid}-${Date.now()}`
let kafka: SharedKafka
let client: ClusterClient
let kafkajs: Kafka

/** A broker knows new partitions, and that it leads them, a moment after their making was acknowledged. */
async function served(count: number): Promise<void> {
  const all = Array.from({ length: count }, (_, partition) => partition)
  await until(async () => {
    const [topic] = await client.describeTopics([name])
    if (topic?.partitions.length !== count) return false
    return client.endOffsets(name, all).then(
      () => true,
      () => false,
    )
  })
}

before(async () => {
  kafka = await sharedKafka()
  client = await clientOf(kafka.bootstrap)
  kafkajs = new Kafka({ brokers: [kafka.bootstrap], logLevel: logLevel.NOTHING })
  await client.createTopic({ name, numPartitions: 2, replicationFactor: -1, configs: [] })
  await served(2)
})
after(async () => {
  client.close()
  await kafka.stop()
})

test('topics, partitions and ends', async () => {
  const [topic] = await client.describeTopics([name, `${name}-missing`])
  assert.equal(topic?.name, name)
  assert.match(topic.topicId, /^[\w-]{22}$/)
  assert.equal(topic.partitions.length, 2)
  assert.ok((await client.describeTopics()).some((other) => other.topicId === topic.topicId))
  assert.deepEqual(await client.endOffsets(name, [0, 1]), { 0: 0, 1: 0 })
  await client.createPartitions(name, 4)
  await served(4)
  await client.createPartitions(name, 3)
  assert.equal((await client.describeTopics([name]))[0]?.partitions.length, 4)
  await assert.rejects(client.createPartitions(`${name}-missing`, 2), /does not exist in the cluster/)
})

test('the first deliverable record: not a marker, not an aborted one, one that may still come', async () => {
  const producer = kafkajs.producer({ transactionalId: name, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  const send = async (end: 'abort' | 'commit') => {
    const transaction = await producer.transaction()
    await transaction.send({ topic: name, messages: [{ value: end, partition: 0 }] })
    await transaction[end]()
  }
  await send('abort') // 0, marker 1
  await send('commit') // 2, marker 3
  const open = await producer.transaction()
  await open.send({ topic: name, messages: [{ value: 'open', partition: 0 }] }) // 4
  try {
    assert.deepEqual(await client.endOffsets(name, [0]), { 0: 5 })
    assert.equal(await client.firstDeliverable(name, 0, 0, 2), undefined)
    assert.equal(await client.firstDeliverable(name, 0, 0, 5), 2)
    assert.equal(await client.firstDeliverable(name, 0, 3, 4), undefined)
    assert.equal(await client.firstDeliverable(name, 0, 3, 5), 4, 'the open transaction may bring one')
  } finally {
    await open.abort()
    await producer.disconnect()
  }
  // The broker answers the abort before it has written the marker.
  await until(async () => (await client.endOffsets(name, [0]))[0] === 6)
  await assert.rejects(client.firstDeliverable(name, 0, 5, 9), /ends at 6, below 9/)
  assert.equal(await client.firstDeliverable(name, 0, 3, 6), undefined)
  assert.equal(await client.endOfEpoch(name, 0, 0), 6)
  assert.deepEqual(await client.startOffsets(name, [0, 3]), { 0: 0, 3: 0 })
})

test('commits of a group, and of one that there is not', async () => {
  const group = `${name}-group`
  const asked = [0, 1].map((partition) => ({ topic: name, partition }))
  assert.deepEqual(await client.committed(group, asked), new Map())
  const admin = kafkajs.admin()
  await admin.connect()
  await admin.setOffsets({ groupId: group, topic: name, partitions: [{ partition: 1, offset: '7' }] })
  await admin.disconnect()
  assert.deepEqual(await client.committed(group, asked), new Map([[partitionKey(name, 1), 7]]))
})
