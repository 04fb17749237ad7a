import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fleet } from './fleet.ts'

const kinds = (fleet: Fleet) =>
  fleet.shared.entries.map(({ record }) => record?.kind).filter((kind) => kind !== 'register')

test('an expansion goes from the wish to the seal: created, hidden, ready, open, voted, sealed', async () => {
  const fleet = await Fleet.of(2)
  const a = fleet.proxy(0)
  const outcome = await fleet.settled(a.ask('expand', 6))
  assert.deepEqual(outcome, { kind: 'opened', epoch: 1, count: 6 })
  assert.equal(fleet.cluster.topics.get('orders')?.partitions.length, 6)
  await fleet.until(() => a.topic.layouts[1]?.seal !== undefined)
  assert.deepEqual(kinds(fleet), ['topic', 'proposal', 'preparing', 'ready', 'ready', 'open', 'vote', 'vote', 'sealed'])
})

test('a wish made at a proxy that does not lead is fulfilled too, and told there', async () => {
  const fleet = await Fleet.of(3)
  const follower = fleet.proxies.find(({ state }) => !state.isLeader())
  assert.ok(follower)
  assert.deepEqual(await fleet.settled(follower.ask('expand', 6)), { kind: 'opened', epoch: 1, count: 6 })
  assert.equal(fleet.shared.records('proposal')[0]?.proxy, follower.state.proxy)
  assert.ok(fleet.proxies.every(({ count }) => count === 6 || count === 3))
})

test('nothing ticks while nothing is under way', async () => {
  const fleet = await Fleet.of(2)
  const a = fleet.proxy(0)
  await fleet.settled(a.ask('expand', 6))
  await fleet.until(() => fleet.proxies.every(({ topic }) => topic.layouts[1]?.seal !== undefined))
  assert.ok(fleet.proxies.every(({ coordinator }) => coordinator.isIdle))
  await fleet.until(() => false, 1000)
  fleet.cluster.asked.length = 0
  await fleet.until(() => false, 60_000)
  assert.deepEqual(fleet.cluster.asked, [])
})

test('a change that not every proxy is ready for is aborted, and names who was not', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  b.isReady = false
  const outcome = await fleet.settled(a.ask('expand', 6))
  assert.deepEqual(outcome, {
    kind: 'aborted',
    reason: `these proxies were not ready in time: ${b.state.proxy}`,
  })
  assert.equal(a.count, 3)
  assert.equal(a.topic.aborted?.to, 6)
  // The hidden partitions are known: nobody takes them for somebody else's, and the next expansion takes them up.
  await fleet.until(() => false, 70_000)
  assert.equal(a.count, 3)
  b.isReady = true
  assert.deepEqual(await fleet.settled(a.ask('expand', 6)), { kind: 'opened', epoch: 1, count: 6 })
})

test('what the cluster refuses for good ends the change with its reason', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  fleet.cluster.createPartitions = () =>
    Promise.reject(Object.assign(new Error('CreatePartitions of topic orders: not allowed'), { passes: false }))
  const outcome = await fleet.settled(a.ask('expand', 6))
  assert.deepEqual(outcome, { kind: 'aborted', reason: 'CreatePartitions of topic orders: not allowed' })
  assert.equal(a.count, 3)
})

test('what passes is tried again', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  fleet.cluster.fail = true
  const outcome = a.ask('expand', 6)
  await fleet.until(() => false, 5000)
  fleet.cluster.fail = false
  assert.equal((await fleet.settled(outcome)).kind, 'opened')
})

test('one change at a time, whichever proxy is asked', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  const outcomes = await Promise.all(
    [a.ask('expand', 6), b.ask('expand', 9), a.ask('expand', 12)].map((o) => fleet.settled(o)),
  )
  assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['opened', 'refused', 'refused'])
  for (const outcome of outcomes) if (outcome.kind === 'refused') assert.equal(outcome.code, 'HG_CHANGE_IN_PROGRESS')
})

test('a change outlives the proxy that was asked, once its proposal is in the log', async () => {
  const fleet = await Fleet.of(2)
  const follower = fleet.proxies.find(({ state }) => !state.isLeader())
  const leader = fleet.proxies.find(({ state }) => state.isLeader())
  assert.ok(follower && leader)
  void follower.ask('expand', 6)
  await fleet.until(() => fleet.shared.records('proposal').length > 0)
  follower.state.disconnect()
  follower.control.stop()
  fleet.shared.append({ kind: 'expel', proxy: leader.state.proxy, expelled: follower.state.proxy })
  assert.ok(await fleet.until(() => leader.count === 6))
})

test('the next leader goes on where the last one stopped', async () => {
  const fleet = await Fleet.of(2)
  const leader = fleet.proxies.find(({ state }) => state.isLeader())
  const other = fleet.proxies.find(({ state }) => !state.isLeader())
  assert.ok(other && leader)
  leader.isReady = false
  void leader.ask('expand', 6)
  await fleet.until(() => fleet.shared.records('preparing').length > 0)
  leader.state.disconnect()
  leader.control.stop()
  fleet.shared.append({ kind: 'expel', proxy: other.state.proxy, expelled: leader.state.proxy })
  assert.ok(await fleet.until(() => other.count === 6))
})

test('partitions that somebody else created enter at the first step, multiples or not', async () => {
  for (const [count, gates] of [
    [6, 'seal'],
    [5, 'cuts'],
  ] as const) {
    const fleet = await Fleet.of(2)
    const a = fleet.proxy(0)
    await fleet.cluster.createPartitions('orders', count)
    assert.ok(await fleet.until(() => a.count === count))
    const layout = a.topic.layouts[1]
    assert.deepEqual([layout?.change, layout?.gates], ['external', gates])
  }
})

test('Metadata that passes makes it known at once', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  await fleet.cluster.createPartitions('orders', 6)
  a.control.noticed('orders', 'T', 6)
  assert.ok(await fleet.until(() => a.count === 6, 2000))
})

test('a shrink is opened and announced, live only when asked', async () => {
  const fleet = await Fleet.of(2)
  const a = fleet.proxy(0)
  await fleet.settled(a.ask('expand', 6))
  await fleet.until(() => a.topic.layouts[1]?.seal !== undefined)
  assert.deepEqual(await fleet.settled(a.ask('shrink', 3)), { kind: 'opened', epoch: 2, count: 3 })
  await fleet.until(() => a.topic.layouts[2]?.announcedAt !== undefined)
  assert.equal(a.topic.layouts[2]?.isLive, undefined)
  a.coordinator.announceLive(2)
  await fleet.until(() => a.topic.layouts[2]?.isLive === true)
  assert.equal(a.topic.layouts[2]?.isLive, true)
})

test('a change is refused while the state cannot be had, and its end is not guessed', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  const going = a.ask('expand', 6)
  a.state.disconnect()
  const refused = await a.ask('expand', 6)
  assert.equal(refused.kind === 'refused' && refused.code, 'HG_STATE_UNAVAILABLE')
  const outcome = await fleet.settled(going)
  assert.equal(outcome.kind === 'refused' && outcome.code, 'HG_STATE_UNAVAILABLE')
})

test('partitions for given brokers are created by the asker alone', async () => {
  const fleet = await Fleet.of(2)
  const follower = fleet.proxies.find(({ state }) => !state.isLeader())
  assert.ok(follower)
  let created = 0
  const creation = {
    isAssigned: true,
    create: async () => {
      created += 1
      assert.equal(fleet.cluster.asked.includes('createPartitions'), false)
      await fleet.cluster.createPartitions('orders', 6)
    },
  }
  const outcome = follower.coordinator.change({ change: 'expand', to: 6, any: true }, creation)
  follower.control.wake()
  assert.equal((await fleet.settled(outcome)).kind, 'opened')
  assert.equal(created, 1)
  assert.equal(fleet.cluster.asked.filter((what) => what === 'createPartitions').length, 1)
})

test('an asker that cannot create them says why', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  const creation = { isAssigned: true, create: () => Promise.reject(new Error('broker 9 does not exist')) }
  const outcome = a.coordinator.change({ change: 'expand', to: 6, any: true }, creation)
  a.control.wake()
  assert.deepEqual(await fleet.settled(outcome), { kind: 'aborted', reason: 'broker 9 does not exist' })
})

test('without the right to create partitions the asker creates them; each change has its own patience', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  const allowed = fleet.cluster.createPartitions.bind(fleet.cluster)
  fleet.cluster.createPartitions = () => Promise.reject(Object.assign(new Error('not allowed'), { passes: false }))
  for (const to of [6, 12, 24]) {
    // It takes its time, as a busy controller does.
    const create = () =>
      new Promise<void>((resolve, reject) => {
        fleet.runtime.timer(2000, () => void allowed('orders', to).then(resolve, reject))
      })
    const outcome = a.coordinator.change({ change: 'expand', to, any: false }, { isAssigned: false, create })
    a.control.wake()
    assert.equal((await fleet.settled(outcome)).kind, 'opened', `to ${to}`)
    await fleet.until(() => a.topic.layouts.at(-1)?.seal !== undefined)
  }
})

const never = (): Promise<void> => new Promise(() => undefined)

test('whoever asked is told when the topic is deleted, or made again, before its change is decided', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  fleet.cluster.createPartitions = never
  const asked = b.ask('expand', 6)
  await fleet.until(() => b.topic.proposal !== undefined)
  for (const { topics } of [a, b]) topics.length = 0
  const outcome = await fleet.settled(asked, 2000)
  assert.ok(outcome.kind === 'refused' && outcome.code === 'HG_TOPIC_UNKNOWN', JSON.stringify(outcome))
  assert.match(outcome.message, /^topic orders was deleted before its change to 6 partitions was decided$/)
})

test('whoever asked is told when the proxy stops', async () => {
  const fleet = await Fleet.of(1)
  fleet.cluster.createPartitions = never
  const asked = fleet.proxy(0).ask('expand', 6)
  await fleet.until(() => fleet.proxy(0).topic.proposal !== undefined)
  fleet.proxy(0).control.stop()
  const outcome = await fleet.settled(asked, 100)
  assert.match(outcome.kind === 'refused' ? outcome.message : '', /^this proxy stops; what becomes of the change/)
})

test('whoever asked is told in the end when the state stays away, or the proxy is expelled again and again', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  a.state.disconnect()
  // The lease has lapsed, and nothing was proposed.
  assert.equal((await fleet.settled(a.ask('expand', 6), 100)).kind, 'refused')
  a.state.reconnect()
  await fleet.until(() => a.state.mayAct())
  fleet.cluster.createPartitions = never
  const asked = a.ask('expand', 6)
  await fleet.until(() => b.topic.proposal !== undefined)
  a.state.disconnect()
  const outcome = await fleet.settled(asked, 60_000)
  assert.match(outcome.kind === 'refused' ? outcome.message : '', /^what became of the change .* is not known/)
})

test('a wish outlives the expulsion of its proxy, before and after it was read back', async () => {
  const fleet = await Fleet.of(2)
  const [a] = [fleet.proxy(0)]
  const asked = a.ask('expand', 6)
  a.state.expel()
  assert.deepEqual(await fleet.settled(asked), { kind: 'opened', epoch: 1, count: 6 })
  const next = a.ask('expand', 12)
  await fleet.until(() => a.topic.proposal !== undefined)
  a.state.expel()
  assert.deepEqual(await fleet.settled(next), { kind: 'opened', epoch: 2, count: 12 })
})

test('whoever asked is told when the state log was lost, and layouts begin anew', async () => {
  const fleet = await Fleet.of(1)
  const a = fleet.proxy(0)
  await fleet.settled(a.ask('expand', 6))
  fleet.cluster.createPartitions = never
  const asked = a.ask('expand', 12)
  await fleet.until(() => a.topic.proposal !== undefined)
  a.state.startAfresh()
  a.state.append({ kind: 'topic', proxy: a.state.proxy, topicId: 'T', name: 'orders', count: 6 })
  const outcome = await fleet.settled(asked, 5000)
  assert.match(outcome.kind === 'refused' ? outcome.message : '', /^the state log was lost meanwhile/)
})

test('what our own user may not read ends the change with what it lacks', async () => {
  for (const what of ['describeTopics', 'endOffsets'] as const) {
    const fleet = await Fleet.of(1)
    const a = fleet.proxy(0)
    const refused = Object.assign(new Error(`${what} failed: allow Describe`), { passes: false })
    fleet.cluster[what] = (): Promise<never> => Promise.reject(refused)
    assert.deepEqual(await fleet.settled(a.ask('expand', 6)), { kind: 'aborted', reason: refused.message })
    assert.equal(a.count, 3)
  }
})
