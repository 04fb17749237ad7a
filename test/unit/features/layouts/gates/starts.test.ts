import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { encodeSubscription } from '../../../../../src/protocol/embedded.ts'
import { codecRequest } from '../../../../support/codec-frames.ts'
import { layout } from '../../../../support/layout-states.ts'
import { Gated } from './gated.ts'
import { grown, topicOf } from './set-state.ts'

type Owned = { topic: string; partitions: number[] }[]

/** A member joins, and asks where its group stands with partition 0. */
async function join(gated: Gated, { owned = [] as Owned, generation = 1, topic = 't' } = {}): Promise<void> {
  const metadata = encodeSubscription({ version: 1, value: { topics: [topic], ownedPartitions: owned } })
  gated.send(apiKeys.JoinGroup, 5, {
    groupId: 'g',
    memberId: 'm',
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata }],
  })
  await gated.pass(20)
  gated.rejoin('g', generation)
}

async function askOffsets(gated: Gated): Promise<void> {
  gated.send(apiKeys.OffsetFetch, 5, { groupId: 'g', topics: [{ name: 't', partitionIndexes: [0] }] })
  await gated.pass(20)
}

function beat(gated: Gated, generation = 1): void {
  gated.send(apiKeys.Heartbeat, 3, { groupId: 'g', memberId: 'm', generationId: generation })
}

/** A group at the end of partition 0, which holds three records, before the topic grows. */
async function atRest(): Promise<Gated> {
  const gated = await Gated.start({ topic: topicOf([layout(0, 1)]) })
  gated.log(0).append('abc')
  return gated
}

/** The topic grows; what of partition 1 comes, after a heartbeat. */
async function grow(gated: Gated, generation = 1): Promise<number[]> {
  gated.state.set(grown(3))
  gated.log(1).append('xy')
  assert.deepEqual((await gated.fetch({ 1: 0 }, 600)).offsets, { 1: [] })
  beat(gated, generation)
  return (await gated.fetch({ 1: 0 }, 3000)).offsets[1] ?? []
}

void test('an idle group that started at the end opens its gates: its start position is committed in its name', async () => {
  const gated = await atRest()
  await join(gated)
  await askOffsets(gated)
  await gated.fetch({ 0: 3 }, 100)
  assert.equal(gated.fetches[0]?.maxWaitMs, 100, 'watched, not edited')
  await gated.pass(60_000)
  assert.deepEqual(await grow(gated), [0, 1])
  assert.deepEqual([...(gated.cluster.commits.get('g') ?? [])], [[0, 3]])
  assert.deepEqual(gated.committers, ['m/1'])
  assert.equal(gated.gates.startCommits.count, 1)
})

void test('a start position below records that were not processed opens nothing', async () => {
  const gated = await atRest()
  await join(gated)
  await askOffsets(gated)
  await gated.fetch({ 0: 1 }, 100)
  await gated.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(gated), [])
  assert.deepEqual([...(gated.cluster.commits.get('g') ?? [])], [[0, 1]])
})

void test('no start position: fetched before the coordinator was asked, or kept from before, or joined unseen', async () => {
  const early = await atRest()
  await join(early)
  await early.fetch({ 0: 3 }, 100)
  await askOffsets(early)
  await early.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(early), [])

  const kept = await atRest()
  await join(kept, { owned: [{ topic: 't', partitions: [0] }] })
  await askOffsets(kept)
  await kept.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(kept), [])

  const unseen = await atRest()
  await askOffsets(unseen)
  await unseen.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(unseen), [])
  for (const gated of [early, kept, unseen]) assert.equal(gated.committers.length, 0)
})

void test('each time it joins with nothing in hand it begins anew; what it kept stays where it began', async () => {
  const eager = await atRest()
  await join(eager)
  await askOffsets(eager)
  await eager.fetch({ 0: 1 }, 100)
  await join(eager, { generation: 2 })
  await askOffsets(eager)
  await eager.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(eager, 2), [0, 1])
  assert.deepEqual(eager.committers, ['m/2'])

  const cooperative = await atRest()
  await join(cooperative)
  await askOffsets(cooperative)
  await cooperative.fetch({ 0: 1 }, 100)
  await join(cooperative, { owned: [{ topic: 't', partitions: [0] }], generation: 2 })
  await askOffsets(cooperative)
  await cooperative.fetch({ 0: 3 }, 100)
  assert.deepEqual(await grow(cooperative, 2), [])
  assert.deepEqual([...(cooperative.cluster.commits.get('g') ?? [])], [[0, 1]])
})

void test('never over a commit: one that is there, is in an open transaction, or comes meanwhile', async () => {
  for (const obstacle of ['pending', 'meanwhile', 'generation'] as const) {
    const gated = await atRest()
    await join(gated)
    await askOffsets(gated)
    await gated.fetch({ 0: 3 }, 100)
    if (obstacle === 'pending') gated.pending.add(0)
    let go = (): void => undefined
    if (obstacle !== 'pending') gated.holdOffsets = new Promise((resolve) => (go = resolve))
    gated.state.set(grown(3))
    gated.log(1).append('xy')
    await gated.fetch({ 1: 0 }, 600)
    beat(gated)
    await gated.pass(50)
    if (obstacle === 'meanwhile') {
      const topics = [{ name: 't', partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: '' }] }]
      gated.send(apiKeys.OffsetCommit, 7, { groupId: 'g', memberId: 'm', generationIdOrMemberEpoch: 1, topics })
    } else if (obstacle === 'generation') gated.rejoin('g', 2)
    await gated.pass(50)
    go()
    await gated.pass(1000)
    assert.equal(gated.gates.startCommits.count, 0, obstacle)
    assert.equal(gated.cluster.commits.get('g')?.get(0), obstacle === 'meanwhile' ? 2 : undefined)
  }
})

/** A start position is asked about, and the group commits on another connection. */
async function committingElsewhere() {
  const gated = await atRest()
  await join(gated)
  await askOffsets(gated)
  await gated.fetch({ 0: 3 }, 100)
  let go = (): void => undefined
  gated.holdOffsets = new Promise((resolve) => (go = resolve))
  gated.state.set(grown(3))
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 600)
  beat(gated)
  await gated.pass(50)
  const producer = gated.rig.connect()
  await gated.rig.run(() => producer.connected && gated.rig.brokers.length === 2 && gated.rig.broker.connected)
  const forwarded: number[] = []
  gated.rig.broker.onFrame = (frame) => forwarded.push(frame.readInt16BE(4))
  const commit = (groupId: string, id: number): void => {
    const draft = { transactionalId: 'x', groupId, producerId: 1, producerEpoch: 0, generationId: 1, memberId: 'm' }
    producer.send(codecRequest(apiKeys.TxnOffsetCommit, 3, id, draft))
  }
  commit('another', 1)
  await gated.pass(50)
  assert.equal(forwarded.length, 1)
  commit('g', 2)
  await gated.pass(50)
  assert.equal(forwarded.length, 1)
  return { gated, forwarded, producer, go }
}

void test('what the group commits on another connection waits while a start position could be written over it', async () => {
  const { gated, forwarded, go } = await committingElsewhere()
  go()
  await gated.pass(1000)
  assert.deepEqual([gated.gates.startCommits.count, forwarded.length], [1, 2])
})

void test('nor is it overtaken by what its member sends behind it', async () => {
  const { gated, forwarded, producer, go } = await committingElsewhere()
  producer.send(codecRequest(apiKeys.OffsetCommit, 7, 3, { groupId: 'g', memberId: 'm', topics: [] }))
  producer.send(codecRequest(apiKeys.JoinGroup, 5, 4, { groupId: 'g', memberId: 'm', protocols: [] }))
  producer.send(codecRequest(apiKeys.LeaveGroup, 3, 5, { groupId: 'g', members: [{ memberId: 'm' }] }))
  producer.send(codecRequest(apiKeys.LeaveGroup, 3, 6, { groupId: 'other', members: [{ memberId: 'm' }] }))
  await gated.pass(100)
  const other = [apiKeys.TxnOffsetCommit, apiKeys.LeaveGroup]
  assert.deepEqual(forwarded, other, 'only of its own group')
  go()
  await gated.pass(1000)
  const waited = [apiKeys.TxnOffsetCommit, apiKeys.OffsetCommit, apiKeys.JoinGroup, apiKeys.LeaveGroup]
  assert.deepEqual(forwarded, [...other, ...waited])
})

void test('where the start position’s connection is not answered, the commit goes in its place', async () => {
  const { gated, forwarded, go } = await committingElsewhere()
  await gated.pass(1100)
  assert.equal(forwarded.length, 2)
  assert.equal(gated.gates.startCommits.isUnderWay, false)
  go()
  await gated.pass(100)
  assert.deepEqual([gated.gates.startCommits.count, gated.committers.length], [0, 0])
})

void test('nor does it wait for ever for a start position that is not acknowledged', async () => {
  const { gated, forwarded, go } = await committingElsewhere()
  gated.holdCommits = new Promise(() => undefined)
  go()
  await gated.pass(3000)
  assert.deepEqual([gated.committers.length, forwarded.length], [1, 1])
  await gated.pass(4000)
  assert.deepEqual([forwarded.length, gated.gates.startCommits.isUnderWay], [2, false])
})

void test('members of topics without a rule are not watched', async () => {
  const gated = await atRest()
  await join(gated, { topic: 'u' })
  assert.equal(gated.gates.view(gated.rig.connection), undefined)
  await join(gated)
  assert.notEqual(gated.gates.view(gated.rig.connection), undefined)
  await gated.pass(31_000)
  assert.equal(gated.gates.view(gated.rig.connection), undefined)
})
