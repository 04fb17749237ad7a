import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { encodeSubscription } from '../../../../../src/protocol/embedded.ts'
import { Gated, grown, layout, sealed, TOPIC_ID, topicOf } from './gated-cluster.ts'

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

void test('a commit that the coordinator refused opens nothing', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 100)
  const refused = { partitionIndex: 0, committedOffset: -2, committedMetadata: '' }
  gated.send(apiKeys.OffsetCommit, 7, { groupId: 'g', memberId: 'm', topics: [{ name: 't', partitions: [refused] }] })
  assert.deepEqual((await gated.fetch({ 1: 0 }, 2000)).offsets, { 1: [] })
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

void test('what stands in the way is looked for once per committed offset, not with every read', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  await gated.fetch({ 1: 0 }, 10_000)
  assert.equal(gated.cluster.count('firstDeliverable'), 1)
  assert.ok(gated.cluster.count('committed') >= 18 && gated.cluster.count('committed') <= 21)
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

void test('hidden partitions are shut, also when the topic has no gates yet', async () => {
  const proposal = {
    id: 'x',
    proxy: 'p',
    at: 1,
    atMs: 0,
    change: 'expand',
    to: 2,
    order: 'key',
    gates: 'seal',
    ready: {},
  }
  const gated = await Gated.start({ topic: topicOf([layout(0, 1)], { proposal } as never) })
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  assert.deepEqual((await gated.fetch({ 0: 0, 1: 0 }, 300)).offsets, { 0: [0, 1], 1: [] })
  const aborted = await Gated.start({ topic: topicOf([layout(0, 1)]), count: 2 })
  aborted.log(1).append('xy')
  assert.deepEqual((await aborted.fetch({ 1: 0 }, 300)).offsets, { 1: [] })
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

void test('state that is lost in the middle of a Fetch: what was read before is not delivered after', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  let go = (): void => undefined
  gated.stall = new Promise((resolve) => (go = resolve))
  const waiting = gated.fetch({ 0: 0 }, 1000)
  await gated.rig.run(() => gated.fetches.length > 0)
  gated.state.isLeased = false
  go()
  assert.deepEqual((await waiting).offsets, { 0: [] })
  gated.state.isLeased = true
  assert.deepEqual((await gated.fetch({ 0: 0 }, 1000)).offsets, { 0: [0, 1] })
})

void test('a topic at rest passes unopened, but not what arrives after the lease lapsed or a change was prepared', async () => {
  const proposal = {
    id: 'x',
    proxy: 'p',
    at: 1,
    atMs: 0,
    change: 'expand',
    to: 2,
    order: 'key',
    gates: 'seal',
    ready: {},
  }
  for (const change of ['lapse', 'gate', 'proposal'] as const) {
    const gated = await Gated.start({ topic: topicOf([layout(0, 2)]) })
    gated.log(1).append('ab')
    assert.deepEqual((await gated.fetch({ 1: 0 }, 5000)).offsets, { 1: [0, 1] })
    assert.equal(gated.fetches[0]?.maxWaitMs, 5000, 'the very request of the client')
    const waiting = gated.fetch({ 1: 2 }, 5000)
    await gated.pass(100)
    if (change === 'lapse') gated.state.isLeased = false
    else if (change === 'gate') gated.state.set(grown(7))
    else gated.state.set(topicOf([layout(0, 2)], { proposal } as never))
    gated.log(1).append('c')
    assert.deepEqual((await waiting).offsets, { 1: change === 'proposal' ? [2] : [] }, change)
  }
})

void test('without the state everything that may wait is shut, or passes by the last layout where that is wanted', async () => {
  const held = await Gated.start()
  held.log(0).append('ab')
  held.state.isLeased = false
  assert.deepEqual((await held.fetch({ 0: 0 }, 300)).offsets, { 0: [] })

  const passing = await Gated.start({ rule: { stateLoss: 'pass' } })
  passing.log(0).append('ab')
  passing.log(1).append('xy')
  await passing.fetch({ 1: 0 }, 300)
  passing.state.isLeased = false
  assert.deepEqual(
    (await passing.fetch({ 0: 0, 1: 0 }, 300)).offsets,
    { 0: [0, 1], 1: [] },
    'the limits that were known',
  )
  assert.equal(passing.gates.counts.stateLost.get('t'), 2)
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

/** Answers about commits are held until `end`. */
function held(gated: Gated): { end(): void } {
  let end = (): void => undefined
  gated.cluster.hold = new Promise((resolve) => (end = resolve))
  return { end }
}

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

void test('policies for groups that never commit: by position, after a time; both are counted', async () => {
  const byPosition = await Gated.start({ rules: [{ group: /g/, gate: 'position' }] })
  byPosition.log(0).append('ab')
  byPosition.log(1).append('xy')
  assert.deepEqual((await byPosition.fetch({ 0: 0, 1: 0 }, 500)).offsets, { 0: [0, 1], 1: [] })
  assert.deepEqual((await byPosition.fetch({ 0: 2, 1: 0 }, 500)).offsets, { 0: [], 1: [0, 1] })
  assert.deepEqual(byPosition.gates.counts.byPolicy, { position: 1, after: 0 })

  const after = await Gated.start({
    rules: [
      { group: /x/, gate: 'block' },
      { group: /g/, gate: 3000 },
    ],
  })
  after.log(0).append('ab')
  after.log(1).append('xy')
  const { offsets, tookMs } = await after.fetch({ 1: 0 }, 30_000)
  assert.deepEqual(offsets, { 1: [0, 1] })
  assert.ok(tookMs >= 3000 && tookMs < 4100)
  assert.deepEqual(after.gates.counts.byPolicy, { position: 0, after: 1 })
})

void test('no policy opens what waits for the seal', async () => {
  const topic = topicOf([layout(0, 1), layout(1, 2, { starts: { 1: 0 } })])
  for (const gate of ['position', 500] as const) {
    const gated = await Gated.start({ topic, rules: [{ group: /g/, gate }] })
    gated.log(1).append('xy')
    assert.deepEqual((await gated.fetch({ 0: 0, 1: 0 }, 3000)).offsets, { 0: [], 1: [] })
  }
})

void test('shut gates are shown with what they wait for, counted, and told of when it takes long', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 1)
  const sinceMs = gated.rig.runtime.wallNow()
  await gated.fetch({ 1: 0 }, 40_000)
  const [view, ...others] = gated.gates.gatesOf('g')
  assert.deepEqual(others, [])
  assert.ok(view !== undefined && Math.abs(view.sinceMs - sinceMs) < 100)
  const { sinceMs: _, ...rest } = view
  assert.deepEqual(rest, { topic: 't', partition: 1, from: 0, seal: 1, parent: 0, until: 2, committed: 1 })
  assert.deepEqual(gated.gates.shutGroups(), ['g'])
  const [held] = gated.gates.held()
  assert.ok(held?.topic === 't' && held.shut === 1 && held.heldSeconds > 39 && held.heldSeconds < 41)
  assert.deepEqual(
    gated.lines.map(({ level, fields }) => ({ level, ...fields })),
    [
      {
        level: 'warn',
        group: 'g',
        topic: 't',
        waits: ['partition 1 from 0 on (layout 1): for partition 0 up to 2, committed 1'],
      },
    ],
  )
  gated.cluster.commit('g', 0, 2)
  await gated.fetch({ 1: 0 }, 5000)
  await gated.pass(6000)
  assert.equal(gated.lines.at(-1)?.level, 'info')
  assert.deepEqual(gated.gates.gatesOf('g'), [])
})

void test('topics are found by id from v13 on', async () => {
  const gated = await Gated.start({ version: 16 })
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  const { offsets, answer } = await gated.fetch({ 1: 0 }, 700)
  assert.deepEqual([offsets, answer.responses[0]?.topicId], [{ 1: [] }, TOPIC_ID])
})

void test('a topic that this proxy has not met yet waits, by name and by id', async () => {
  for (const version of [11, 16]) {
    const gated = await Gated.start({ version, topic: topicOf([layout(0, 2)]) })
    gated.isMet = false
    gated.log(1).append('ab')
    assert.deepEqual((await gated.fetch({ 1: 0 }, 500)).offsets, { 1: [] })
    gated.isMet = true
    assert.deepEqual((await gated.fetch({ 1: 0 }, 500)).offsets, { 1: [0, 1] })
  }
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
