/** Reading the commits that gates wait for: when, how often, and what a read still counts for when things have moved. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { Gated } from './gated.ts'
import { grown } from './set-state.ts'

void test('a commit that the coordinator refused opens nothing', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 100)
  const refused = { partitionIndex: 0, committedOffset: -2, committedMetadata: '' }
  gated.send(apiKeys.OffsetCommit, 7, { groupId: 'g', memberId: 'm', topics: [{ name: 't', partitions: [refused] }] })
  assert.deepEqual((await gated.fetch({ 1: 0 }, 2000)).offsets, { 1: [] })
})

void test('what stands in the way is looked for once per committed offset, not with every read', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 10_000)
  assert.equal(gated.cluster.count('firstDeliverable'), 1)
  assert.ok(gated.cluster.count('committed') >= 18 && gated.cluster.count('committed') <= 21)
})

void test('when a group has passed, its Fetches are opaque again; a new generation is asked about anew', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  await gated.fetch({ 1: 0 }, 5000)
  await gated.fetch({ 1: 0 }, 5000)
  assert.equal(gated.fetches.at(-1)?.maxWaitMs, 5000)
  gated.cluster.commit('g', 0, 0) // a tool, while the group was empty
  gated.rejoin('g', 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [] }, 'the replay is gated too')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 1500)).offsets, { 1: [0, 1] })
})

void test('a read of the commits that was sent before the group changed does not count', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  const hold = held(gated)
  const waiting = gated.fetch({ 1: 0 }, 2000)
  await gated.pass(50)
  gated.cluster.commit('g', 0, 0)
  gated.cluster.hold = undefined
  gated.rejoin('g', 2)
  await gated.pass(400) // the Fetch looks again and sees the new generation
  hold.end()
  assert.deepEqual((await waiting).offsets, { 1: [] })
})

void test('a commit that was acknowledged after a read was sent outlives that read', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 100)
  const hold = held(gated)
  const waiting = gated.fetch({ 1: 0 }, 5000)
  await gated.pass(600) // a read is on its way that has found nothing committed
  const topics = [{ name: 't', partitions: [{ partitionIndex: 0, committedOffset: 2, committedMetadata: '' }] }]
  gated.send(apiKeys.OffsetCommit, 7, { groupId: 'g', memberId: 'm', generationIdOrMemberEpoch: 1, topics })
  assert.deepEqual((await waiting).offsets, { 1: [0, 1] })
  hold.end()
  await gated.pass(10)
  assert.deepEqual(gated.gates.gatesOf('g'), [])
})

void test('what lies above a committed offset is looked for when it stands still, and for that offset only', async () => {
  const gated = await Gated.start({ topic: grown(4) })
  gated.log(0).append('ab').append('cd', { control: true })
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  const { offsets, tookMs } = await gated.fetch({ 1: 0 }, 5000)
  assert.deepEqual(offsets, { 1: [0, 1] })
  assert.ok(tookMs >= 500, 'the commits were read twice')
  gated.cluster.commit('g', 0, 1) // gone back, the same member: the next read tells
  await gated.pass(61_000)
  await gated.fetch({ 1: 0 }, 100)
  await gated.pass(100)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 3000)).offsets, { 1: [] })
})

void test('an end that the epoch of now does not tell is no reason to open', async () => {
  const gated = await Gated.start({ topic: grown(9) })
  gated.log(0).append('ab')
  gated.log(0).leaderEpoch = 3
  gated.cluster.shownEpoch = 2 // Metadata is behind
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  assert.deepEqual((await gated.fetch({ 1: 0 }, 3000)).offsets, { 1: [] })
})

void test('Heartbeats of gated members make the commits be read', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 100)
  await gated.pass(3000)
  const before = gated.cluster.count('committed')
  gated.send(apiKeys.Heartbeat, 3, { groupId: 'g', memberId: 'm', generationId: 1 })
  await gated.pass(100)
  assert.equal(gated.cluster.count('committed'), before + 1)
})

void test('while the commits cannot be read the gate stays shut, and opens when they can', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 2)
  gated.cluster.fails = true
  assert.deepEqual((await gated.fetch({ 1: 0 }, 2000)).offsets, { 1: [] })
  gated.cluster.fails = false
  assert.deepEqual((await gated.fetch({ 1: 0 }, 2000)).offsets, { 1: [0, 1] })
})

/** Answers about commits are held until `end`. */
function held(gated: Gated): { end(): void } {
  let end = (): void => undefined
  gated.cluster.hold = new Promise((resolve) => (end = resolve))
  return { end }
}
