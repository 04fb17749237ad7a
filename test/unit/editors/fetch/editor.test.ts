import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PartitionPolicy } from '../../../../src/editors/fetch/policy.ts'
import { readRecords } from '../../../../src/records/read.ts'
import { requestFrame } from '../../../support/frames.ts'
import { fetchFrame, read, records, start } from './editing.ts'
import { batch, only } from './reading.ts'

const HEARTBEAT = 12

test('the broker is asked in short waits without a session until there is something, and other requests pass between', async () => {
  const { rig, client, broker } = await start(only('a'), (_, at) => records(at === 8 ? batch(0, 'ba') : undefined))
  const began = rig.runtime.now()
  client.send(fetchFrame())
  client.send(requestFrame({ apiKey: HEARTBEAT, correlationId: 10, body: Buffer.from('beat') }))
  await rig.run(() => client.frames.length === 2)
  const answer = read(client.frames[0])
  assert.equal(answer.sessionId, 0)
  const bytes = answer.responses[0]?.partitions[0]?.records ?? Buffer.alloc(0)
  assert.deepEqual(
    readRecords(bytes, 1000).map(({ offset }) => offset),
    [1],
  )
  for (const { maxWaitMs, sessionId, sessionEpoch } of broker.fetches)
    assert.ok(maxWaitMs <= 250 && sessionId === 0 && sessionEpoch === -1)
  const beat = broker.apis.find(({ apiKey }) => apiKey === HEARTBEAT)
  assert.ok(beat !== undefined && beat.atMs - began < 300, 'the heartbeat did not wait for the long poll')
})

test('with nothing to find the client waits as long as it asked, and gets zero bytes', async () => {
  const { rig, client } = await start(only('a'), () => records())
  const began = rig.runtime.now()
  client.send(fetchFrame({ maxWaitMs: 1000 }))
  await rig.run(() => client.frames.length === 1)
  const waited = rig.runtime.now() - began
  assert.ok(waited >= 1000 && waited < 1300, `${waited} ms`)
  assert.equal(read(client.frames[0]).responses[0]?.partitions[0]?.records?.length, 0)
})

test('a running session is refused once; after that an epoch of 0 or −1 is a full Fetch, whatever the id', async () => {
  const { rig, client, broker } = await start(only('a'), () => records(batch(0, 'a')))
  for (const session of [
    [7, 3],
    [7, 0],
    [7, -1],
  ] as const)
    client.send(fetchFrame({ session }))
  await rig.run(() => client.frames.length === 3)
  const answers = client.frames.map(read)
  assert.deepEqual(
    answers.map(({ errorCode, sessionId, responses }) => [errorCode, sessionId, responses.length]),
    [
      [70, 0, 0],
      [0, 0, 1],
      [0, 0, 1],
    ],
  )
  assert.equal(broker.fetches.length, 2)
  assert.deepEqual(rig.meter.errors, [70])
})

test('a Fetch in which nothing is edited passes, without a session', async () => {
  const { rig, client, broker } = await start(undefined, () => records(batch(0, 'b')))
  client.send(fetchFrame({ maxWaitMs: 4000 }))
  await rig.run(() => client.frames.length === 1)
  const [asked] = broker.fetches
  assert.deepEqual([asked?.sessionEpoch, asked?.maxWaitMs], [-1, 4000])
})

test('draining ends the wait', async () => {
  const { rig, client } = await start(only('a'), () => records())
  client.send(fetchFrame({ maxWaitMs: 60_000 }))
  await rig.run(undefined, 1000)
  rig.connection.drain()
  await rig.run(() => client.frames.length === 1, 300)
  assert.equal(read(client.frames[0]).errorCode, 0)
})

test('a connection that closes ends the reading', async () => {
  const { rig, client, broker } = await start(only('a'), () => records())
  client.send(fetchFrame({ maxWaitMs: 600_000 }))
  await rig.run(undefined, 1000)
  rig.connection.close('client_closed')
  const asked = broker.fetches.length
  await rig.run(undefined, 5000)
  assert.equal(broker.fetches.length, asked)
})

for (const [what, policy] of [
  ['keep', { keep: () => fail() }],
  ['limit', { limit: () => fail() }],
  ['count', { count: () => fail() }],
] as [string, PartitionPolicy][]) {
  test(`a bug in a policy's ${what} costs the connection, not the process`, async () => {
    const { rig, client } = await start(policy, () => records(batch(0, 'a')))
    client.send(fetchFrame())
    await rig.run(() => client.closed)
    assert.deepEqual(rig.meter.reasons, ['internal_error'])
  })
}

function fail(): never {
  throw new Error('a bug')
}

test('a broker that answers nonsense costs the connection', async () => {
  const { rig, client } = await start(only('a'), () => 'garbage')
  client.send(fetchFrame())
  await rig.run(() => client.closed)
  assert.deepEqual(rig.meter.reasons, ['malformed_response'])
})

test('a corrupt batch is answered with 2, counted each time, and logged once', async () => {
  const broken = batch(0, 'aaaa')
  broken[broken.length - 1]! ^= 1
  const { rig, client } = await start(only('a'), () => records(broken))
  client.send(fetchFrame())
  client.send(fetchFrame())
  await rig.run(() => client.frames.length === 2)
  assert.equal(read(client.frames[1]).responses[0]?.partitions[0]?.errorCode, 2)
  assert.deepEqual(rig.meter.errors, [2, 2])
  const lines = rig.log.lines.filter(({ message }) => message.includes('CORRUPT_MESSAGE'))
  assert.deepEqual(
    lines.map(({ fields: { topic, partition, offset } }) => [topic, partition, offset]),
    [['t', 0, 0]],
  )
})
