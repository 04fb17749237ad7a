import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DrainedPartitions } from '../../../../../src/features/layouts/control/drained.ts'
import { Ownership, type Owned } from '../../../../../src/features/layouts/control/ownership.ts'
import { StuckBatches } from '../../../../../src/features/layouts/control/stuck-batches.ts'
import type { Instance } from '../../../../../src/pipeline/instance.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { encodeAssignment } from '../../../../../src/protocol/embedded.ts'
import type { Layout, TopicState } from '../../../../../src/state/topic-state.ts'
import { codecRequest, codecResponse } from '../../../../support/codec-frames.ts'
import { FakeCluster } from '../../../../support/fake-cluster.ts'
import { Rig } from '../../../../support/rig.ts'
import { RecordingLog } from '../../../../support/telemetry.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'
import { plainRule } from './fleet.ts'

const instance = (softwareName = 'java') =>
  ({ softwareName, memberships: new Map([['g', { groupId: 'g' }]]) }) as unknown as Instance
const owns = (partitions: number[], isLeader = false): Owned => ({
  isLeader,
  isServerSide: false,
  partitions: new Map([['orders', partitions]]),
})

/** A topic that went from six to three partitions; sealed so long ago. */
function setting(sealedAgoMs: number | null = 700_000) {
  const runtime = new VirtualRuntime()
  const cluster = new FakeCluster()
  cluster.topic('orders', 'T', 6)
  for (const partition of cluster.topics.get('orders')?.partitions ?? []) partition.end = 10
  const seal = { at: 9, atMs: runtime.wallNow() - (sealedAgoMs ?? 0), boundaries: {}, gaveUp: [], forced: false }
  const layouts = [
    { epoch: 0, count: 6, change: 'met' },
    { epoch: 1, count: 3, change: 'shrink', ...(sealedAgoMs === null ? {} : { seal }) },
  ] as Layout[]
  const state: TopicState = { topicId: 'T', name: 'orders', layouts, cuts: [] }
  const topic = {
    name: 'orders',
    topicId: 'T',
    rule: plainRule,
    count: 6,
    view: () => ({ topic: state, fleet: { members: {} }, position: 1 }),
  }
  const owned = new Map<Instance, Owned>()
  const drained = new DrainedPartitions({
    runtime,
    cluster,
    log: new RecordingLog(),
    ownership: { of: (who) => owned.get(who) },
  })
  const commit = (...offsets: [number, number][]) =>
    cluster.commits.set('g', new Map(offsets.map(([partition, offset]) => [`orders/${partition}`, offset])))
  /** The count shown when what there is to see has been seen. */
  const shown = async (who: Instance) => {
    drained.count(topic, who)
    await runtime.run(() => false, 31_000)
    return drained.count(topic, who)
  }
  /** Whether something is known to be left, when what there is to see has been seen. */
  const hasLeft = async (who: Instance) => {
    const before = drained.hasLeft(topic, who)
    await runtime.run(() => false, 31_000)
    return [before, drained.hasLeft(topic, who)]
  }
  return { cluster, owned, commit, shown, hasLeft, drained, state }
}

test('what a group has left in marked partitions is known when it was looked for', async () => {
  const { commit, hasLeft } = setting()
  commit([3, 10], [4, 9], [5, 10])
  assert.deepEqual(await hasLeft(instance()), [false, true])
  commit([3, 10], [4, 10], [5, 10])
  assert.deepEqual(await hasLeft(instance()), [true, false])
  assert.deepEqual(await setting(5000).hasLeft(instance()), [false, false], 'it is not settled')
})

test('a marked partition is hidden from a group that has committed what is in it, from the top', async () => {
  const { owned, commit, shown } = setting()
  const member = instance()
  owned.set(member, owns([0]))
  commit([3, 10], [4, 9], [5, 10])
  assert.equal(await shown(member), 5)
  commit([3, 10], [4, 10], [5, 10])
  assert.equal(await shown(member), 3)
})

test('first the leader, then who no longer owns it', async () => {
  const { owned, commit, shown } = setting()
  const [leader, member] = [instance(), instance()]
  commit([3, 10], [4, 10], [5, 10])
  owned.set(leader, owns([0, 3], true))
  owned.set(member, owns([1, 4]))
  assert.deepEqual([await shown(leader), await shown(member)], [3, 5])
  owned.set(member, owns([1]))
  assert.equal(await shown(member), 3)
})

test('a family that breaks when its partition vanishes keeps it, as the leader too', async () => {
  const { owned, commit, shown } = setting()
  const leader = instance('platformatic-kafka')
  commit([3, 10], [4, 10], [5, 10])
  owned.set(leader, owns([0, 5], true))
  assert.equal(await shown(leader), 6)
})

test('nothing is hidden before the shrink is settled, nor from whom nothing is known', async () => {
  for (const sealedAgoMs of [null, 5000]) {
    const { owned, commit, shown } = setting(sealedAgoMs)
    const member = instance()
    owned.set(member, owns([0]))
    commit([3, 10], [4, 10], [5, 10])
    assert.equal(await shown(member), undefined)
  }
  const { owned, commit, shown } = setting()
  commit([3, 10], [4, 10], [5, 10])
  assert.equal(await shown(instance()), undefined)
  const server = instance()
  owned.set(server, { ...owns([0]), isServerSide: true })
  assert.equal(await shown(server), undefined)
  const other = setting()
  const member = instance()
  other.owned.set(member, owns([0]))
  other.cluster.fail = true
  assert.equal(await other.shown(member), undefined)
})

test('an empty partition needs no commit', async () => {
  const { owned, shown, cluster } = setting()
  const member = instance()
  owned.set(member, owns([0]))
  for (const partition of cluster.topics.get('orders')?.partitions ?? []) partition.start = 10
  assert.equal(await shown(member), 3)
})

test('leaders and what members own are seen as they join and sync', async () => {
  const ownership = new Ownership()
  const assignment = encodeAssignment({
    version: 0,
    value: { assignedPartitions: [{ topic: 'orders', partitions: [0, 3] }], userData: null },
  })
  let isKnown = true
  const rig = await Rig.start({
    handlers: [ownership],
    broker: (peer) => {
      peer.onFrame = (frame) => {
        const [apiKey, version, id] = [frame.readInt16BE(4), frame.readInt16BE(6), frame.readInt32BE(8)]
        const join = { errorCode: 0, generationId: 1, leader: 'm', memberId: 'm', protocolName: 'range' }
        const sync = { errorCode: isKnown ? 0 : 25, assignment }
        peer.send(codecResponse(apiKey, version, id, apiKey === apiKeys.JoinGroup ? join : sync))
      }
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected)
  const ask = async (apiKey: number, draft: object) => {
    const before = client.frames.length
    client.send(codecRequest(apiKey, 5, 1, { groupId: 'g', ...draft }))
    await rig.run(() => client.frames.length > before)
  }
  await ask(apiKeys.JoinGroup, { protocolType: 'consumer' })
  const who = rig.connection.instance
  assert.ok(who)
  assert.deepEqual(ownership.of(who, 'g'), {
    isLeader: true,
    isServerSide: false,
    partitions: undefined,
    assignor: 'range',
    lead: { memberId: 'm', counts: undefined, members: 0, atMs: 0 },
  })
  await ask(apiKeys.SyncGroup, { memberId: 'm' })
  assert.deepEqual(ownership.of(who, 'g')?.partitions, new Map([['orders', [0, 3]]]))
  isKnown = false
  await ask(apiKeys.SyncGroup, { memberId: 'm' })
  assert.deepEqual(ownership.of(who, 'g')?.partitions, new Map([['orders', [0, 3]]]))
  assert.equal(ownership.of(who, 'other'), undefined)
  assert.equal(ownership.of(who, 'g')?.lead?.counts, undefined, 'it has not assigned yet')
  const assignments = ['m', 'n'].map((memberId) => ({ memberId, assignment }))
  await ask(apiKeys.SyncGroup, { memberId: 'n', assignments })
  assert.equal(ownership.of(who, 'g')?.lead?.counts, undefined, 'not the leader')
  await ask(apiKeys.SyncGroup, { memberId: 'm', assignments })
  const { counts, members } = ownership.of(who, 'g')?.lead ?? {}
  assert.deepEqual([counts, members], [new Map([['orders', 4]]), 2])
  // Another protocol's bytes may read as any list of numbers.
  const partitions = Array.from({ length: 300_000 }, (_, i) => i)
  const value = { assignedPartitions: [{ topic: 'orders', partitions }], userData: null }
  const huge = [{ memberId: 'm', assignment: encodeAssignment({ version: 0, value }) }]
  await ask(apiKeys.SyncGroup, { memberId: 'm', assignments: huge })
  assert.equal(ownership.of(who, 'g')?.lead?.counts?.get('orders'), 300_000)
})

test('a producer with stuck batches is shown the full count once, and again only later', () => {
  const stuck = new StuckBatches()
  const ask = (atMs: number, hadMore = true, epoch = 1) => stuck.showsAll('p', epoch, hadMore, atMs)
  assert.deepEqual(
    [ask(0), ask(1000), ask(1100), ask(1200), ask(9000), ask(20_000)],
    [false, true, false, true, false, false],
  )
  assert.deepEqual([ask(20_500), ask(21_000), ask(21_500), ask(22_000)], [true, false, false, false])
  assert.deepEqual([ask(30_000, true, 2), ask(30_500, true, 2)], [false, true])
})

test('after a restart nobody knows what it was shown before: it is freed when it asks again and again', () => {
  const stuck = new StuckBatches()
  const asks = (...times: number[]) => times.map((atMs) => stuck.showsAll('q', 1, false, atMs))
  assert.deepEqual(asks(0, 1900, 3800, 5700, 7600), [false, false, false, false, false])
  assert.deepEqual(asks(9500, 9600), [true, false], 'the sixth in a row')
  assert.deepEqual(asks(20_000, 23_000, 26_000, 29_000, 32_000, 35_000), [false, false, false, false, false, false])
})
