import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeStateLog, type FakeState } from '../../../../support/fake-state.ts'
import { keysIn, LayoutsRig, type SentBatch, teach, TOPIC } from '../../../../support/layouts-rig.ts'

async function code(rig: LayoutsRig, sent: SentBatch): Promise<number | undefined> {
  await rig.until(() => sent.result() !== undefined, 'an answer')
  return sent.result()?.errorCode
}

/** A rig on a state that a test takes away and gives back. */
async function withFakeState(rule: Record<string, unknown> = {}): Promise<{ rig: LayoutsRig; states: FakeState[] }> {
  const states: FakeState[] = []
  let log: FakeStateLog | undefined
  const rig = await LayoutsRig.start({
    rule,
    state: (runtime) => {
      log ??= new FakeStateLog(runtime)
      const state = log.join()
      states.push(state)
      return state
    },
  })
  return { rig, states }
}

test('layouts: 3 to 5 with cuts: the first new batch waits for a cut at two proxies, then goes; records keep their order', async () => {
  const rig = await LayoutsRig.start({ proxies: 2 })
  const client = await rig.client(0, 'p')
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(5))
  assert.equal(rig.topic()?.layouts[1]?.gates, 'cuts')
  const [moved = ''] = keysIn([
    [3, 1],
    [5, 4],
  ])
  assert.equal(await client.count(), 5)
  // Two in flight, so that it is held and not refused.
  const olds = [client.produce(1, [moved], 'old1'), client.produce(1, [moved], 'old2')]
  const fresh = client.produce(4, [moved], 'new')
  assert.deepEqual([await code(rig, olds[0] as SentBatch), await code(rig, olds[1] as SentBatch)], [0, 0])
  assert.equal(fresh.result(), undefined)
  assert.equal(rig.guard().state.held.length, 1)
  assert.equal(await code(rig, fresh), 0)
  const cut = rig.topic()?.cuts[0]
  assert.equal(cut?.ends[1], rig.end(1))
  assert.equal(Object.keys(cut?.readers ?? {}).length, 2, 'both proxies have read it')
  assert.deepEqual(rig.values(4), [`${moved}:new`])
  await rig.stop()
})

test('layouts: a client with one request in flight is asked for its older batches instead of held', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, 'one')
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(5))
  assert.equal(await client.count(), 5)
  const [moved = ''] = keysIn([
    [3, 1],
    [5, 4],
  ])
  assert.equal(await code(rig, client.produce(4, [moved], 'new')), 6)
  assert.equal(await code(rig, client.produce(1, [moved], 'old')), 0)
  let result: number | undefined = 6
  while (result === 6) {
    await rig.pause(200)
    result = await code(rig, client.produce(4, [moved], 'new'))
  }
  assert.equal(result, 0)
  await rig.stop()
})

test('layouts: while the state cannot be acted upon Produce waits, then is answered 6; Metadata says 5', async () => {
  const { rig, states } = await withFakeState()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  states[0]?.lapse()
  const held = client.produce(0, keysIn([[3, 0]]), 'a')
  await rig.pause(8000)
  assert.equal(held.result(), undefined)
  states[0]?.renew()
  assert.equal(await code(rig, held), 0)
  states[0]?.lapse()
  const refused = client.produce(0, keysIn([[3, 0]]), 'b')
  assert.equal(await code(rig, refused), 6)
  assert.equal(await client.count(), undefined)
  states[0]?.renew()
  assert.equal(await client.count(), 3)
  await rig.stop()
})

test('layouts: stateLoss pass: requests wait once, then pass and are counted', async () => {
  const { rig, states } = await withFakeState({ stateLoss: 'pass' })
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  states[0]?.disconnect()
  const first = client.produce(0, keysIn([[3, 0]]), 'a')
  await rig.pause(5000)
  assert.equal(first.result(), undefined)
  assert.equal(await code(rig, first), 0)
  const before = rig.runtime.now()
  assert.equal(await code(rig, client.produce(0, keysIn([[3, 0]]), 'b')), 0)
  assert.equal(await client.count(), 3)
  assert.equal(rig.runtime.now() - before < 100, true)
  assert.equal(rig.guard().facts.counted['passed without state'], 1)
  await rig.stop()
})

for (const producerId of [undefined, 7]) {
  const kind = producerId === undefined ? 'pipelines without idempotence' : 'is idempotent'
  test(`layouts: an expelled proxy begins anew, its writers are known to the new life; what it held of one that ${kind}`, async () => {
    const { rig, states } = await withFakeState()
    const client = await rig.client(0, 'p')
    await client.count()
    await teach(rig, client, 3)
    await rig.settled(rig.expand(5))
    await client.count()
    const [old = ''] = keysIn([
      [3, 1],
      [5, 3],
    ])
    const [moved = ''] = keysIn([
      [3, 1],
      [5, 4],
    ])
    const before = [client.produce(1, [old], 'old1'), client.produce(1, [old], 'old2')]
    // Beside what is not answered yet an idempotent one is not held.
    if (producerId !== undefined) await rig.until(() => before.every((sent) => sent.result() !== undefined), 'answers')
    const held = client.produce(4, [moved], 'new', producerId === undefined ? {} : { producerId, sequence: 0 })
    await rig.until(() => rig.guard().state.held.length === 1, 'it is held')
    const { proxy } = states[0] ?? {}
    states[0]?.expel()
    await rig.until(() => rig.guard().state.proxy !== proxy, 'a new life')
    // Refused, it would come behind what its client has sent after it.
    assert.equal(await code(rig, held), producerId === undefined ? 0 : 6)
    for (const sent of before) assert.equal(await code(rig, sent), 0)
    if (producerId === undefined) assert.equal(rig.topic()?.cuts.length, 1)
    assert.equal(
      [...rig.guard().state.ledgers.values()].every((ledger) => ledger.wrote),
      true,
    )
    await rig.stop()
  })
}

test('layouts: an answer that comes after the lease has ended is counted', async () => {
  const { rig, states } = await withFakeState()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(6))
  await client.count()
  const sent = client.produce(0, keysIn([[6, 0]]), 'x')
  await rig.until(() => rig.guard().state.flying.size > 0, 'it flies')
  states[0]?.lapse()
  assert.equal(await code(rig, sent), 0)
  assert.equal((rig.guard().facts.counted['acknowledged after the lease'] ?? 0) > 0, true)
  await rig.stop()
})

test('layouts: a topic that is deleted and made again starts afresh; one that appears is met', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  const { topics } = rig.broker.cluster
  const first = topics.named(TOPIC)
  if (first !== undefined) topics.delete(first)
  rig.broker.cluster.createTopic(TOPIC, 2)
  assert.equal(await client.count(12), 2)
  await rig.until(() => rig.topic()?.layouts[0]?.count === 2, 'it is recorded anew')
  assert.notEqual(rig.topic()?.topicId, first?.id)
  assert.equal(await code(rig, client.produce(1, keysIn([[2, 1]]), 'a')), 0)
  await rig.stop()
})

test('layouts: acks=0 under a change: forwarded, its end read behind it, and the seal covers it', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(6))
  client.produce(
    1,
    keysIn([
      [3, 1],
      [6, 4],
    ]),
    'late',
    { acks: 0 },
  )
  await rig.until(() => rig.values(1).at(-1)?.endsWith('late') === true, 'it is in the log')
  assert.equal(await client.count(), 6)
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'sealed')
  assert.equal(rig.topic()?.layouts[1]?.seal?.boundaries[1], rig.end(1))
  assert.equal(rig.guard().state.flying.size, 0)
  await rig.stop()
})

test('layouts: late: refuse fails late batches after the seal for good, but not where that breaks the producer', async () => {
  const rig = await LayoutsRig.start({ rule: { late: 'refuse', sealAfter: '2s' } })
  const client = await rig.client(0, 'p')
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(6))
  const moved = keysIn([
    [3, 1],
    [6, 4],
  ])
  // It never asks for Metadata, and is not idle for a second: nothing but time seals the change.
  let isSealed = false
  for (let i = 0; !isSealed && i < 40; i++) {
    const [a, b] = [client.produce(1, moved, `a${i}`), client.produce(1, moved, `b${i}`)]
    await code(rig, a)
    await code(rig, b)
    await rig.pause(100)
    isSealed = rig.topic()?.layouts[1]?.seal !== undefined
  }
  assert.equal(rig.topic()?.layouts[1]?.seal?.forced, true)
  assert.equal(await code(rig, client.produce(1, moved, 'late')), 37)
  // Idempotent, and it does not say its name: it may be aiokafka, which would never recover.
  assert.equal(await code(rig, client.produce(1, moved, 'fragile', { producerId: 9, sequence: 0 })), 0)
  assert.equal(rig.values(1).includes(`${moved[0]}:late`), false)
  assert.equal(rig.guard().facts.counted['late after the seal'], 2)
  await rig.stop()
})
