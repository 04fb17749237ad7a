import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withOtherRules } from '../../../../src/state/state.ts'
import { fakeCluster, type StateProcess, startProxy } from '../../../support/state-rig.ts'
import { VirtualRuntime } from '../../../support/virtual-runtime.ts'

const ready = (...proxies: StateProcess[]) => proxies.every(({ shell }) => shell.mayAct())
const leaders = (...proxies: StateProcess[]) => proxies.filter(({ shell }) => shell.isLeader())

void test('two proxies make the topic, register, and one of them leads', async () => {
  const world = new VirtualRuntime(1)
  const broker = await fakeCluster(world)
  const a = startProxy(world, broker, 'a')
  const b = startProxy(world, broker, 'b')
  assert.equal(a.shell.status().condition, 'loading')
  assert.ok(await world.run(() => ready(a, b) && leaders(a, b).length === 1), JSON.stringify(a.shell.status()))
  const topic = broker.cluster.topics.named('__headgate_state')
  assert.equal(topic?.partitions.length, 1)
  assert.equal(topic.configs.get('cleanup.policy'), 'compact')
  assert.equal(topic.configs.get('min.compaction.lag.ms'), '3600000')
  assert.ok(await world.run(() => a.shell.status().proxies.length === 2))
  assert.equal(a.shell.status().leader, b.shell.status().leader)
})

void test('when the leader dies, the other leads and expels it a full session time-out later', async () => {
  const world = new VirtualRuntime(2)
  const broker = await fakeCluster(world)
  const a = startProxy(world, broker, 'a')
  const b = startProxy(world, broker, 'b')
  await world.run(() => ready(a, b) && leaders(a, b).length === 1)
  const [leader] = leaders(a, b)
  const other = leader === a ? b : a
  const dead = leader?.shell.proxy ?? ''
  const killedMs = world.now()
  leader?.runtime.kill()
  assert.ok(await world.run(() => other.shell.isLeader()))
  assert.ok(await world.run(() => other.shell.status().proxies.every(({ proxy }) => proxy !== dead)))
  assert.ok(world.now() - killedMs >= 19_000, `after ${world.now() - killedMs} ms`)
})

void test('a proxy that is cut off loses its lease before it is expelled, and resumes under a new id', async () => {
  const world = new VirtualRuntime(3)
  const broker = await fakeCluster(world)
  const a = startProxy(world, broker, 'a')
  const b = startProxy(world, broker, 'b')
  await world.run(() => ready(a, b) && a.shell.status().proxies.length === 2)
  const before = a.shell.proxy
  a.runtime.cutOff(true)
  assert.ok(await world.run(() => !a.shell.mayAct(), 5100))
  assert.equal(a.shell.status().condition, 'lost')
  assert.ok(b.shell.status().proxies.some(({ proxy }) => proxy === before))
  assert.ok(await world.run(() => b.shell.status().proxies.every(({ proxy }) => proxy !== before)))
  a.runtime.cutOff(false)
  assert.ok(await world.run(() => a.shell.mayAct()))
  assert.notEqual(a.shell.proxy, before)
})

void test('a proxy that stops is expelled at once', async () => {
  const world = new VirtualRuntime(4)
  const broker = await fakeCluster(world)
  const a = startProxy(world, broker, 'a')
  const b = startProxy(world, broker, 'b')
  await world.run(() => ready(a, b) && b.shell.status().proxies.length === 2)
  const before = a.shell.proxy
  void a.shell.stop()
  assert.ok(await world.run(() => b.shell.status().proxies.every(({ proxy }) => proxy !== before), 1000))
  assert.ok(await world.run(() => b.shell.isLeader(), 5000))
})

void test('proxies with other rules are named by each of them, as long as both live', async () => {
  const world = new VirtualRuntime(7)
  const broker = await fakeCluster(world)
  const a = startProxy(world, broker, 'a', { rules: 'one' })
  const silent = startProxy(world, broker, 'c')
  await world.run(() => ready(a, silent) && a.shell.status().proxies.length === 2)
  assert.deepEqual(withOtherRules(a.shell.status()), [], 'one that does not say has none')
  const b = startProxy(world, broker, 'b', { rules: 'two' })
  await world.run(() => ready(a, b, silent) && a.shell.status().proxies.length === 3)
  assert.deepEqual(
    withOtherRules(a.shell.status()).map(({ host }) => host),
    ['b:9190'],
  )
  await world.run(() => false, 1000)
  const warnings = ({ log }: StateProcess) => log.lines.filter(({ message }) => /have other rules/.test(message))
  assert.deepEqual([warnings(a).length, warnings(b).length, warnings(silent).length], [1, 1, 0])
  void b.shell.stop()
  assert.ok(await world.run(() => a.log.lines.some(({ message }) => /the same rules again/.test(message))))
})
