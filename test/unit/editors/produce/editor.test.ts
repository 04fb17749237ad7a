import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codecRequest } from '../../../support/codec-frames.ts'
import { forward, produce, produceRig, records, refuse, resultsOf } from '../../../support/produce-rig.ts'

test('produce: what the policy does not want opened passes as it came', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.opens = () => false
  client.send(produce(7, { data: { 'g/0': 'ab' } }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(policy.opened, 0)
  assert.deepEqual(broker.seen, ['g/0 ab'])
  assert.deepEqual(resultsOf(client.frames[0]), ['g/0 0@0'])
})

test('produce: a request whose batches may all go keeps its frame, and their ends are told', async () => {
  const { rig, client, policy, broker } = await produceRig()
  client.send(produce(1, { data: { 'g/0': 'ab', 'g/1': 'c', 'o/0': 'x' } }))
  client.send(produce(2, { data: { 'g/0': 'd' } }))
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(broker.seen, ['g/0 ab', 'g/1 c', 'o/0 x', 'g/0 d'])
  assert.deepEqual(
    policy.asked.map(({ outcome }) => outcome),
    [2, 1, 3].map((end) => ({ kind: 'acknowledged', end })),
  )
})

test('produce: what waits holds nothing else up; the client gets one answer in its own grouping, in turn', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = ({ partition }) => (partition === 1 ? undefined : forward)
  client.send(produce(1, { data: { 'g/1': 'a', 'o/0': 'x', 'g/0': 'b' } }))
  client.send(produce(2, { data: { 'o/0': 'y' } }))
  await rig.run(() => broker.seen.length === 3)
  assert.deepEqual(broker.seen, ['o/0 x', 'g/0 b', 'o/0 y'])
  await rig.run(() => false, 100)
  assert.equal(client.frames.length, 0)
  policy.asked[0]?.decide(forward)
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(resultsOf(client.frames[0]), ['g/1 0@0', 'o/0 0@0', 'g/0 0@0'])
  assert.deepEqual(resultsOf(client.frames[1]), ['o/0 0@1'])
  assert.deepEqual(
    client.frames.map((frame) => frame.readInt32BE(4)),
    [1, 2],
  )
})

test('produce: a refused batch is answered with its code and leader fields of -1, the rest with its own result', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = ({ partition }) => (partition === 1 ? refuse : forward)
  client.send(produce(1, { version: 10, producerId: 7, data: { 'g/1': 'a', 'g/0': 'b' } }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(broker.seen, ['g/0 b'])
  assert.deepEqual(resultsOf(client.frames[0], 10), ['g/1 6@-1', 'g/0 0@0'])
})

test('produce: without idempotence a request of which a part is to come again is refused as a whole', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = ({ partition }) => (partition === 1 ? refuse : forward)
  client.send(produce(1, { data: { 'g/0': 'a', 'g/1': 'b', 'o/0': 'c' } }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(broker.seen, [], 'a client that repeats all of it would write what had gone twice')
  assert.deepEqual(resultsOf(client.frames[0]), ['g/0 6@-1', 'g/1 6@-1', 'o/0 6@-1'])
  assert.deepEqual(
    policy.asked.map(({ outcome }) => outcome),
    [{ kind: 'withheld' }, undefined],
  )
  policy.verdict = ({ partition }) => (partition === 1 ? { kind: 'refuse', errorCode: 37 } : forward)
  client.send(produce(2, { data: { 'g/0': 'a', 'g/1': 'b' } }))
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(broker.seen, ['g/0 a'], 'what is refused for good does not take the rest with it')
})

test('produce: without idempotence what waits is refused with the rest while nothing has gone', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = () => undefined
  client.send(produce(1, { data: { 'g/0': 'a', 'g/1': 'b' } }))
  await rig.run(() => policy.asked.length === 2)
  policy.asked[1]?.decide(refuse)
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(resultsOf(client.frames[0]), ['g/0 6@-1', 'g/1 6@-1'])
  assert.deepEqual(broker.seen, [])
  assert.equal(policy.asked[0]?.outcome, 'lost')
})

test('produce: without idempotence what waits is not to be refused any more when the rest has gone', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = ({ partition }) => (partition === 0 ? forward : undefined)
  client.send(produce(1, { data: { 'g/0': 'a', 'g/1': 'b', 'g/2': 'c' } }))
  await rig.run(() => broker.seen.length === 1)
  assert.deepEqual(
    policy.asked.map(({ isBound }) => isBound),
    [false, true, true],
  )
  policy.asked[1]?.decide(forward)
  policy.asked[2]?.decide(forward)
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(resultsOf(client.frames[0]), ['g/0 0@0', 'g/1 0@0', 'g/2 0@0'])
  client.send(produce(2, { version: 10, producerId: 7, data: { 'g/0': 'd', 'g/1': 'e' } }))
  await rig.run(() => broker.seen.length === 4)
  assert.equal(policy.asked.at(-1)?.isBound, false, 'the broker knows what an idempotent producer repeats')
})

test('produce: a request that is refused as a whole never reaches the broker', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = () => refuse
  client.send(produce(1, { data: { 'g/1': 'a', 'g/0': 'b' } }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(broker.seen, [])
  assert.deepEqual(resultsOf(client.frames[0]), ['g/1 6@-1', 'g/0 6@-1'])
  assert.equal(
    policy.asked.every(({ told }) => told === 0),
    true,
  )
})

test('produce: what is released goes before what comes later', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = (_, text) => (text < 'c' ? undefined : forward)
  client.send(Buffer.concat([produce(1, { data: { 'g/0': 'a' } }), produce(2, { data: { 'g/0': 'b' } })]))
  await rig.run(() => policy.asked.length === 2)
  policy.verdict = () => {
    for (const asked of policy.asked.slice(0, 2)) asked.decide(forward)
    return undefined
  }
  client.send(produce(3, { data: { 'g/0': 'c' } }))
  await rig.run(() => policy.asked.length === 3)
  policy.asked[2]?.decide(forward)
  await rig.run(() => client.frames.length === 3)
  assert.deepEqual(broker.seen, ['g/0 a', 'g/0 b', 'g/0 c'])
})

test('produce: what is released as a later request is looked at goes before it, opened or not', async () => {
  for (const isOpened of [false, true]) {
    const { rig, client, policy, broker } = await produceRig()
    policy.verdict = () => undefined
    client.send(produce(1, { data: { 'g/0': 'a' } }))
    await rig.run(() => policy.asked.length === 1)
    policy.verdict = () => forward
    policy.opens = () => {
      policy.asked[0]?.decide(forward)
      return isOpened
    }
    client.send(produce(2, { data: { 'g/0': 'b' } }))
    await rig.run(() => client.frames.length === 2)
    assert.deepEqual(broker.seen, ['g/0 a', 'g/0 b'])
  }
})

test('produce: batches that wait or fly when their connection dies are told so, once', async () => {
  const { rig, client, policy, broker } = await produceRig()
  broker.silent = true
  policy.verdict = (_, text) => (text === 'w' ? undefined : forward)
  client.send(produce(1, { data: { 'g/0': 'f' } }))
  client.send(produce(2, { data: { 'g/1': 'w', 'g/2': 'h' } }))
  await rig.run(() => broker.seen.length === 2)
  client.socket.destroy(true)
  await rig.run(() => policy.closedLanes === 1)
  await rig.run(() => false, 100)
  assert.deepEqual(
    policy.asked.map(({ outcome, told }) => [typeof outcome === 'string' ? outcome : outcome?.kind, told]),
    [
      ['failed', 1],
      ['lost', 1],
      ['failed', 1],
    ],
  )
  policy.asked[1]?.decide(forward)
  await rig.run(() => false, 100)
  assert.equal(broker.seen.length, 2)
})

test('produce: errors of the broker are told and passed on', async () => {
  const { rig, client, policy, broker } = await produceRig()
  broker.error = (_, partition) => (partition === 0 ? 3 : partition === 1 ? 46 : 0)
  client.send(produce(1, { data: { 'g/0': 'a', 'g/1': 'b' } }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(
    policy.asked.map(({ outcome }) => outcome),
    [
      { kind: 'failed', errorCode: 3 },
      { kind: 'acknowledged', end: -1 },
    ],
  )
})

test('produce: acks=0 has no answer; the end is read behind it', async () => {
  const { rig, client, policy, broker } = await produceRig()
  client.send(produce(1, { acks: 0, data: { 'g/0': 'ab' } }))
  await rig.run(() => policy.asked[0]?.outcome !== undefined)
  assert.deepEqual(broker.seen, ['g/0 ab', 'ends'])
  assert.deepEqual(policy.asked[0]?.outcome, { kind: 'acknowledged', end: 2 })
  assert.equal(client.frames.length, 0)
})

test('produce: acks=0 that waited goes when it may, and a refused one closes the connection', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = () => undefined
  client.send(produce(1, { acks: 0, data: { 'g/0': 'a', 'o/0': 'x' } }))
  await rig.run(() => broker.seen.length === 1)
  policy.asked[0]?.decide(forward)
  await rig.run(() => policy.asked[0]?.outcome !== undefined)
  assert.deepEqual(broker.seen, ['o/0 x', 'g/0 a', 'ends'])
  policy.verdict = () => refuse
  client.send(produce(2, { acks: 0, data: { 'g/0': 'b' } }))
  await rig.run(() => client.closed)
  assert.deepEqual(rig.meter.reasons, ['refused_produce'])
})

test('produce: EndTxn and AddPartitionsToTxn do not overtake a held batch of their transaction, others do', async () => {
  const { rig, client, policy, broker } = await produceRig()
  policy.verdict = () => undefined
  client.send(produce(1, { transactionalId: 't', acks: -1, data: { 'g/0': 'a' } }))
  const ending = { transactionalId: 't', producerId: 1, producerEpoch: 0, committed: true }
  const topics = [{ name: 'g', partitions: [1] }]
  const adding = { v3AndBelowTransactionalId: 't', v3AndBelowProducerId: 1, v3AndBelowTopics: topics }
  client.send(codecRequest(apiKeys.AddPartitionsToTxn, 3, 2, adding))
  client.send(codecRequest(apiKeys.EndTxn, 3, 3, ending))
  client.send(codecRequest(apiKeys.EndTxn, 3, 4, { ...ending, transactionalId: 'other' }))
  await rig.run(() => broker.seen.length === 1)
  await rig.run(() => false, 50)
  assert.deepEqual(broker.seen, ['api 26'])
  policy.asked[0]?.decide(forward)
  await rig.run(() => client.frames.length === 4)
  assert.deepEqual(broker.seen, ['api 26', 'g/0 a', 'api 24', 'api 26'])
})

test('produce: a long request streams by unless it is to be opened', async () => {
  const { rig, client, policy, broker } = await produceRig()
  const long = 'x'.repeat(60_000)
  policy.opens = () => false
  client.send(produce(1, { data: { 'g/0': long } }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(policy.opened, 0)
  policy.opens = () => true
  client.send(produce(2, { data: { 'g/0': long } }))
  await rig.run(() => client.frames.length === 2)
  assert.equal(policy.opened, 1)
  assert.equal(broker.logs.get('g/0')?.length, 120_000)
})

test('produce: what cannot be decoded is left to the broker', async () => {
  const { rig, client, policy } = await produceRig()
  const frame = codecRequest(apiKeys.Produce, 9, 1, {
    acks: 1,
    topicData: [{ name: 'g', partitionData: [{ index: 0, records: records('a') }] }],
  })
  const cut = frame.subarray(0, frame.length - 9)
  cut.writeInt32BE(cut.length - 4, 0)
  client.send(cut)
  await rig.run(() => rig.broker.frames.length === 1, 100)
  assert.equal(policy.opened, 0)
  assert.equal(rig.broker.frames.length, 1)
})

test('produce: a throttle is told and handed on when the request was taken apart', async () => {
  const { rig, client, policy, broker } = await produceRig()
  broker.throttleMs = 250
  policy.verdict = ({ partition }) => (partition === 1 ? refuse : forward)
  client.send(produce(1, { producerId: 7, data: { 'g/1': 'a', 'g/0': 'b' } }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(policy.throttledMs, 250)
})
