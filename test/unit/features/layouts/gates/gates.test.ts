/** Which records a group is given while gates are shut, and when they open. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { encodeSubscription } from '../../../../../src/protocol/embedded.ts'
import { layout, sealed } from '../../../../support/layout-states.ts'
import { Gated } from './gated.ts'
import { grown, TOPIC_ID, topicOf } from './set-state.ts'

void test('a shut gate holds for the max wait and answers no bytes with the true high watermark', async () => {
  const gated = await Gated.start()
  gated.log(0).append('abc')
  gated.log(1).append('xy')
  const { offsets, highWatermarks, tookMs, answer } = await gated.fetch({ 1: 0 }, 700)
  assert.deepEqual([offsets, highWatermarks], [{ 1: [] }, { 1: 2 }])
  assert.ok(tookMs >= 700 && tookMs < 800)
  const partition = answer.responses[0]?.partitions[0]
  assert.deepEqual([partition?.errorCode, partition?.records?.length], [0, 0])
})

void test('it opens within half a second of a commit that somebody else made, and at once for one that passes here', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  const waiting = gated.fetch({ 1: 0 }, 30_000)
  await gated.pass(5_220)
  const committedAt = gated.rig.runtime.now()
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await waiting).offsets, { 1: [0, 1] })
  assert.ok(gated.rig.runtime.now() - committedAt <= 540, 'half a second, and the time of the question')

  const local = await Gated.start()
  local.log(0).append('ab')
  local.log(1).append('xy')
  await local.fetch({ 1: 0 }, 100) // the gate is known now, and its commits were just read
  const topics = [{ name: 't', partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: '' }] }]
  local.send(apiKeys.OffsetCommit, 7, { groupId: 'g', memberId: 'm', generationIdOrMemberEpoch: 1, topics })
  assert.ok((await local.fetch({ 1: 0 }, 30_000)).tookMs < 50)
})

void test('other partitions of the Fetch are not delayed, and records below the gate come', async () => {
  const topic = topicOf([layout(0, 1), layout(1, 2, { starts: { 1: 2 }, ...sealed({ 0: 2 }) })])
  const gated = await Gated.start({ topic })
  gated.log(0).append('ab').append('cd')
  gated.log(1).append('xy').append('z')
  const { offsets, tookMs } = await gated.fetch({ 0: 0, 1: 0 }, 10_000)
  assert.deepEqual(offsets, { 0: [0, 1, 2, 3], 1: [0, 1] })
  assert.ok(tookMs < 100)
  const next = await gated.fetch({ 0: 2, 1: 2 }, 10_000)
  assert.deepEqual(next.offsets, { 0: [2, 3], 1: [] })
  assert.ok(next.tookMs < 100)
})

void test('a parent with a control record, compacted records or an aborted tail up to the boundary is not waited for', async () => {
  for (const tail of ['control', 'compacted', 'aborted'] as const) {
    const gated = await Gated.start({ topic: grown(3) })
    gated
      .log(0)
      .append('ab')
      .append('c', tail === 'compacted' ? {} : { [tail]: true })
    if (tail === 'compacted') gated.log(0).compact(2, 3)
    gated.log(1).append('xy')
    gated.cluster.commit('g', 0, 1)
    assert.deepEqual((await gated.fetch({ 1: 0 }, 3000)).offsets, { 1: [] }, 'record 1 is still to come')
    gated.cluster.commit('g', 0, 2)
    const { offsets, tookMs } = await gated.fetch({ 1: 0 }, 30_000)
    assert.deepEqual(offsets, { 1: [0, 1] }, tail)
    assert.ok(tookMs < 1600)
  }
})

void test('a parent whose log begins above the boundary, or was cut below it, is done', async () => {
  const expired = await Gated.start()
  expired.log(0).append('abcd')
  expired.log(0).start = 2
  expired.log(1).append('xy')
  assert.deepEqual((await expired.fetch({ 1: 0 }, 5000)).offsets, { 1: [0, 1] })

  const cut = await Gated.start({ topic: grown(9) })
  cut.log(0).append('ab')
  cut.log(0).leaderEpoch = 3
  cut.log(1).append('xy')
  cut.cluster.commit('g', 0, 1)
  assert.deepEqual((await cut.fetch({ 1: 0 }, 5000)).offsets, { 1: [] })
  cut.cluster.commit('g', 0, 2)
  assert.deepEqual((await cut.fetch({ 1: 0 }, 5000)).offsets, { 1: [0, 1] })
})

void test('a high watermark that lags behind the boundary is waited for', async () => {
  const gated = await Gated.start({ topic: grown(3) })
  gated.log(0).append('ab').append('c')
  gated.log(0).lag = 1
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 3000)).offsets, { 1: [] })
  gated.log(0).lag = 0
  gated.cluster.commit('g', 0, 3)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 3000)).offsets, { 1: [0, 1] })
})

void test('gates are chained over two expansions', async () => {
  const topic = topicOf([
    layout(0, 1),
    layout(1, 2, { starts: { 1: 0 }, ...sealed({ 0: 2 }) }),
    layout(2, 4, { starts: { 2: 0, 3: 0 }, ...sealed({ 0: 2, 1: 0 }) }),
  ])
  const gated = await Gated.start({ topic })
  gated.log(0).append('ab')
  gated.log(3).append('xy')
  assert.deepEqual((await gated.fetch({ 3: 0 }, 2000)).offsets, { 3: [] }, 'though nothing of partition 1 is left')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 3: 0 }, 2000)).offsets, { 3: [0, 1] })
})

void test('a client in several groups waits for all of them', async () => {
  const gated = await Gated.start()
  gated.join('h')
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [] })
  gated.cluster.commit('h', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [0, 1] })
  assert.deepEqual(gated.gates.shutGroups(), [])
})

void test('of several groups only those count that may read the topic', async () => {
  const gated = await Gated.start()
  gated.join('other')
  const joining = (topic: string) => ({
    groupId: 'other',
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: encodeSubscription({ version: 1, value: { topics: [topic] } }) }],
  })
  gated.send(apiKeys.JoinGroup, 5, joining('u'))
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [0, 1] })
  gated.send(apiKeys.JoinGroup, 5, joining('t'))
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [] })
})

void test('a client whose group is not known waits ten seconds, then reads as one without a group', async () => {
  const gated = await Gated.start({ group: '' })
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  const first = await gated.fetch({ 0: 0, 1: 0 }, 500)
  assert.deepEqual(first.offsets, { 0: [0, 1], 1: [] }, 'what no group would have to wait for comes')
  const { offsets, tookMs } = await gated.fetch({ 1: 0 }, 30_000)
  assert.deepEqual(offsets, { 1: [0, 1] })
  assert.ok(tookMs > 9_000 && tookMs < 10_500)
  assert.equal(gated.gates.counts.unknownGroups, 1)
  gated.join('g')
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [] }, 'its group showed after all')
  gated.leave('g')
  assert.deepEqual(
    (await gated.fetch({ 1: 0 }, 1500)).offsets,
    { 1: [] },
    'another member may be behind the same address',
  )
})

void test('topics are found by id from v13 on', async () => {
  const gated = await Gated.start({ version: 16 })
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  const { offsets, answer } = await gated.fetch({ 1: 0 }, 700)
  assert.deepEqual([offsets, answer.responses[0]?.topicId], [{ 1: [] }, TOPIC_ID])
})
