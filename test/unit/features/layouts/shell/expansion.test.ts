import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysIn, LayoutsRig, teach, TOPIC } from '../../../../support/layouts-rig.ts'

const old3 = (partition: number) => [[3, partition]] as const

test('layouts: a topic is recorded when it is met, and Metadata shows its count', async () => {
  const rig = await LayoutsRig.start({ proxies: 2 })
  const client = await rig.client()
  assert.equal(await client.count(), 3)
  assert.deepEqual(
    rig.topic(1)?.layouts.map(({ count }) => count),
    [3],
  )
  await rig.stop()
})

test('layouts: 3 to 6 while a producer writes: late batches are accepted, the seal waits, boundaries are right', async () => {
  const rig = await LayoutsRig.start({ proxies: 2 })
  const client = await rig.client(0, 'producer')
  await client.count()
  await teach(rig, client, 3)
  const outcome = rig.expand(6)
  await rig.until(() => rig.topic(1)?.layouts.length === 2, 'the new layout is open')
  assert.equal((await rig.settled(outcome)).kind, 'opened')
  // The producer does not know yet. It is asked once to refresh; what it writes by the old layout is let through.
  const [moved = ''] = keysIn([
    [3, 1],
    [6, 4],
  ])
  const pushed = client.produce(1, [moved], 'late')
  await rig.until(() => pushed.result() !== undefined, 'it is pushed')
  assert.equal(pushed.result()?.errorCode, 6)
  const late = client.produce(1, [moved], 'late')
  await rig.until(() => late.result() !== undefined, 'the late batch is answered')
  assert.equal(late.result()?.errorCode, 0)
  assert.equal(rig.topic()?.layouts[1]?.seal, undefined)
  await rig.pause(8_000)
  assert.equal(rig.topic()?.layouts[1]?.seal, undefined, 'nobody has shown it the new layout')
  assert.equal(await client.count(), 6)
  const fresh = client.produce(4, [moved], 'new')
  await rig.until(() => fresh.result() !== undefined, 'the new batch is answered')
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  const layout = rig.topic()?.layouts[1]
  assert.deepEqual(layout?.seal?.boundaries, { 0: rig.end(0), 1: rig.end(1), 2: rig.end(2) })
  assert.deepEqual(layout?.starts, { 3: 0, 4: 0, 5: 0 })
  assert.equal(rig.values(1).at(-1), `${moved}:late`)
  assert.deepEqual(rig.values(4), [`${moved}:new`])
  await rig.stop()
})

test('layouts: at rest Produce passes unopened once the partitioner is known', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  const guard = rig.guard()
  assert.equal(guard.learning.wants([...guard.state.ledgers.keys()][0] ?? ''), false)
  assert.equal(guard.needsTick, false)
  assert.deepEqual(
    [...guard.state.ledgers.values()].map(({ wrote, isWriter, connections }) => ({ wrote, isWriter, connections })),
    [{ wrote: true, isWriter: true, connections: 2 }],
  )
  const before = guard.state
  const sent = client.produce(0, keysIn(old3(0)), 'x')
  await rig.until(() => sent.result() !== undefined, 'it is acknowledged')
  assert.equal(guard.state, before, 'the reducer was not asked')
  await rig.stop()
})

test('layouts: an idle producer of the old layout is pushed by closing its connection, once', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, 'idle')
  await client.count()
  await teach(rig, client, 3)
  void rig.expand(6)
  await rig.until(() => client.peer.ended || client.peer.closed, 'the connection is closed')
  const again = await rig.client(0, 'idle')
  assert.equal(await again.count(), 6)
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  await rig.pause(5000)
  assert.equal(again.peer.closed, false)
  await rig.stop()
})

test('layouts: a producer whose connection to write on is gone is pushed by closing another one', async () => {
  const rig = await LayoutsRig.start()
  const [other, client] = [await rig.client(0, 'idle'), await rig.client(0, 'idle')]
  await other.count()
  await teach(rig, client, 3)
  client.close()
  await rig.pause(100)
  void rig.expand(6)
  await rig.until(() => other.peer.ended || other.peer.closed, 'the other connection is closed')
  assert.equal(await (await rig.client(0, 'idle')).count(), 6)
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  await rig.stop()
})

test('layouts: an idempotent producer is pushed by refusing one request, and its batch comes back', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, 'idempotent')
  await client.count()
  let sequence = 0
  const [key = ''] = keysIn(old3(2))
  const send = () => client.produce(2, [key], `${sequence}`, { producerId: 7, sequence: sequence++ })
  for (let i = 0; i < 40; i++) {
    const sent = send()
    await rig.until(() => sent.result() !== undefined, 'acknowledged')
  }
  const outcome = rig.expand(6)
  await rig.until(() => rig.topic()?.layouts.length === 2, 'open')
  await rig.settled(outcome)
  const [refused, behind] = [send(), send()]
  await rig.until(() => refused.result() !== undefined && behind.result() !== undefined, 'answered')
  assert.deepEqual([refused.result()?.errorCode, behind.result()?.errorCode], [6, 6])
  assert.equal(await client.count(), 6)
  sequence -= 2
  const back = [send(), send()]
  await rig.until(() => back.every((sent) => sent.result() !== undefined), 'they came back')
  assert.deepEqual(
    back.map((sent) => sent.result()?.errorCode),
    [0, 0],
  )
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  assert.equal(rig.topic()?.layouts[1]?.seal?.boundaries[2], rig.end(2))
  await rig.stop()
})

test('layouts: hidden partitions stay hidden in every version of Metadata until the change is open', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  const topic = rig.broker.cluster.topics.named(TOPIC)
  assert.notEqual(topic, undefined)
  await client.count()
  if (topic !== undefined) rig.broker.cluster.topics.grow(topic, 6, [1])
  for (const version of [0, 1, 4, 7, 9, 11, 12, 13]) {
    const count = await client.count(version)
    assert.equal(count === 3 || count === 6, true, `v${version}: ${count}`)
    if (rig.topic()?.layouts.length === 1) assert.equal(count, 3, `v${version}`)
  }
  await rig.stop()
})
