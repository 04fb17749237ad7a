import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partitionKey } from '../../../src/cluster/cluster.ts'
import { ClusterError } from '../../../src/cluster/cluster-error.ts'
import type { FakeBroker, FakeBrokerOptions } from '../../../src/fake-broker/fake-broker.ts'
import { errorCodes } from '../../../src/protocol/error-codes.ts'
import { buildBatch } from '../../../src/records/build.ts'
import { clientOf, fakeCluster } from '../../support/state-rig.ts'
import { VirtualRuntime } from '../../support/virtual-runtime.ts'

/** What Apache Kafka 2.8 offers of the APIs that are asked here. */
const kafka28 = { 0: 9, 1: 12, 2: 6, 3: 11, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 19: 7, 22: 4, 23: 4, 32: 4, 37: 3 }

async function rig(options: FakeBrokerOptions = {}) {
  const world = new VirtualRuntime(7)
  const broker = await fakeCluster(world, options)
  return { world, broker, client: clientOf(world, broker), settle: <T>(promise: Promise<T>) => settle(world, promise) }
}

async function settle<T>(world: VirtualRuntime, promise: Promise<T>): Promise<T> {
  let isDone = false
  const done = () => (isDone = true)
  promise.then(done, done)
  assert.ok(await world.run(() => isDone), 'it never settled')
  return promise
}

function append(broker: FakeBroker, topic: string, partition: number, options: object = {}): void {
  const log = broker.cluster.topics.partition(topic, partition)?.log
  const appended = log?.append(
    buildBatch({ records: [{ key: Buffer.from('k'), value: Buffer.from('v') }], ...options }),
  )
  assert.equal(appended?.errorCode, 0)
}

const transactional = (sequence: number) => ({
  transactional: true,
  producerId: 9,
  producerEpoch: 0,
  baseSequence: sequence,
})

for (const [name, maxVersions] of [
  ['the newest broker', {}],
  ['Kafka 2.8', kafka28],
] as const) {
  void test(`topics, ends, commits and partitions of ${name}`, async () => {
    const { broker, client, settle } = await rig({ maxVersions })
    const topic = broker.cluster.createTopic('orders', 3)
    for (const partition of [0, 0, 2]) append(broker, 'orders', partition)
    broker.cluster.topics.partition('orders', 0)?.log.trim(1)
    const [described, ...others] = await settle(client.describeTopics(['orders', 'missing']))
    assert.equal(others.length, 0)
    assert.equal(described?.topicId, topic.id)
    assert.deepEqual(
      described?.partitions.map(({ leader }) => leader),
      [1, 2, 3],
    )
    assert.deepEqual(await settle(client.endOffsets('orders', [0, 1, 2])), { 0: 2, 1: 0, 2: 1 })
    assert.deepEqual(await settle(client.startOffsets('orders', [0, 1])), { 0: 1, 1: 0 })
    const group = broker.cluster.coordinators.getOrCreate('g', 0)
    group.offsets.commit({ topic: 'orders', partition: 2, offset: 1, leaderEpoch: -1, metadata: '', committedAtMs: 0 })
    const asked = [0, 2].map((partition) => ({ topic: 'orders', partition }))
    assert.deepEqual(await settle(client.committed('g', asked)), new Map([[partitionKey('orders', 2), 1]]))
    await settle(client.createPartitions('orders', 5))
    assert.equal(topic.partitions.length, 5)
    await settle(client.createPartitions('orders', 4))
    assert.equal(await settle(client.endOfEpoch('orders', 0, 0)), 2)
    client.close()
  })
}

void test('the first deliverable record is neither a marker nor aborted nor compacted away', async () => {
  const { broker, client, settle } = await rig()
  broker.cluster.createTopic('t', 1)
  const log = broker.cluster.topics.partition('t', 0)?.log
  append(broker, 't', 0, transactional(0)) // 0, aborted
  log?.endTransaction(9, 0, false, 0) // 1
  append(broker, 't', 0) // 2, compacted away
  append(broker, 't', 0) // 3
  log?.compact()
  append(broker, 't', 0, transactional(1)) // 4, still open
  assert.equal(await settle(client.firstDeliverable('t', 0, 0, 3)), undefined)
  assert.equal(await settle(client.firstDeliverable('t', 0, 0, 4)), 3)
  assert.equal(await settle(client.firstDeliverable('t', 0, 4, 5)), 4, 'an open transaction may bring one')
  log?.endTransaction(9, 0, false, 0) // 5
  assert.equal(await settle(client.firstDeliverable('t', 0, 4, 6)), undefined)
  log?.trim(6)
  assert.equal(await settle(client.firstDeliverable('t', 0, 0, 6)), undefined)
  await assert.rejects(settle(client.firstDeliverable('t', 0, 6, 9)), /ends at 6, below 9/)
})

void test('leaders, coordinators and controllers that move are found again', async () => {
  const { broker, client, settle } = await rig()
  broker.cluster.createTopic('t', 3)
  append(broker, 't', 1)
  await settle(client.endOffsets('t', [0, 1, 2]))
  await settle(client.committed('g', []))
  const node = broker.cluster.coordinators.nodeOf('g')
  const partition = broker.cluster.topics.partition('t', 1)
  if (partition !== undefined) broker.cluster.elect(partition)
  assert.deepEqual(await settle(client.endOffsets('t', [0, 1, 2])), { 0: 0, 1: 1, 2: 0 })
  await broker.stopNode(node)
  assert.deepEqual(await settle(client.endOffsets('t', [0, 1, 2])), { 0: 0, 1: 1, 2: 0 })
  assert.deepEqual(await settle(client.committed('g', [{ topic: 't', partition: 0 }])), new Map())
  await settle(client.createPartitions('t', 6))
})

void test('a long poll does not hold up other questions', async () => {
  const { world, broker, client, settle } = await rig({ nodeIds: [1] })
  broker.cluster.createTopic('t', 1)
  await settle(client.endOffsets('t', [0]))
  let isBack = false
  const options = { isolation: 'uncommitted', maxWaitMs: 20_000, timeoutMs: 1000, lane: 'long' } as const
  void client.fetch('t', 0, 0, options).then(() => (isBack = true))
  await world.run(() => false, 100)
  await settle(client.endOffsets('t', [0]))
  assert.equal(isBack, false)
  assert.ok(world.now() < 10_000)
})

void test('what cannot be had is an error that says what, where, and what to do', async () => {
  const { world, broker, client, settle } = await rig({ maxVersions: { 9: 0 } })
  broker.cluster.createTopic('t', 1)
  await assert.rejects(settle(client.endOffsets('missing', [0])), /topic missing does not exist/)
  await assert.rejects(settle(client.createPartitions('missing', 2)), /topic missing does not exist/)
  await assert.rejects(settle(client.committed('g', [])), /offers OffsetFetch in versions .*: use Kafka 2\.8 or later/)
  const denied = { results: [{ name: 't', errorCode: errorCodes.TOPIC_AUTHORIZATION_FAILED, errorMessage: 'no' }] }
  broker.cluster.controls.add(37, () => ({ answer: denied }))
  await assert.rejects(settle(client.createPartitions('t', 2)), (error: unknown) => {
    assert.ok(error instanceof ClusterError)
    assert.equal(error.errorCode, errorCodes.TOPIC_AUTHORIZATION_FAILED)
    assert.match(error.message, /^CreatePartitions of topic t to 2 failed .*\(no\): allow Alter on this topic/)
    return true
  })
  const silence = broker.cluster.controls.add(2, () => ({ swallow: true }))
  const askedMs = world.now()
  await assert.rejects(settle(client.endOffsets('t', [0])), /ListOffsets: broker .* did not answer within 5000 ms/)
  assert.ok(world.now() - askedMs < 60_000)
  silence()
  assert.deepEqual(await settle(client.endOffsets('t', [0])), { 0: 0 })
  await broker.stop()
  await assert.rejects(settle(client.describeTopics()), /cannot ask broker 127\.0\.0\.1:\d+ for Metadata/)
})
