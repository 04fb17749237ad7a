import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '../../../../src/fake-broker/control.ts'
import type { ProduceRequest } from '../../../../src/protocol/generated/00-produce.ts'
import { buildBatch } from '../../../../src/records/build.ts'
import { readRecords } from '../../../../src/records/read.ts'
import { encodeRecord } from '../../../../src/state/records.ts'
import { fakeCluster, type StateProcess, startProxy } from '../../../support/state-rig.ts'
import { VirtualRuntime } from '../../../support/virtual-runtime.ts'

const cuts = ['first', 'second', 'third', 'fourth']

/**
 * Two proxies register, one changes a topic until snapshots and tombstones are written, and leaves; at the nth durable
 * write of all this something happens. @returns how many writes there were
 */
async function story(nth: number, happens: (a: StateProcess) => Fault | undefined): Promise<number> {
  const world = new VirtualRuntime(nth)
  const broker = await fakeCluster(world, { nodeIds: [1] })
  let count = 0
  let a = startProxy(world, broker, 'a', { tailLength: 3 })
  broker.cluster.controls.add(0, ({ request }) => {
    const { topicData } = request as ProduceRequest
    const [first] = readRecords(topicData[0]?.partitionData[0]?.records ?? Buffer.alloc(0), 1_000_000)
    if (first === undefined) return undefined
    return ++count === nth ? happens(a) : undefined
  })
  const b = startProxy(world, broker, 'b', { tailLength: 3 })
  const until = async (what: string, done: () => boolean) => {
    const isDone = await world.run(() => {
      if (a.runtime.isDead) a = startProxy(world, broker, 'a', { tailLength: 3 })
      return done()
    }, 90_000)
    assert.ok(isDone, `write ${nth}: ${what}: ${JSON.stringify([a.shell.status(), b.shell.status()])}`)
  }
  const both = () => [a, b].every(({ shell }) => shell.mayAct() && shell.status().proxies.length === 2)
  await until('both are ready', both)
  for (const cut of cuts) {
    await until(`the ${cut} cut`, () => {
      const view = a.shell.view('T')
      if (view?.topic.cuts.some(({ id }) => id === cut) === true) return true
      if (!a.shell.mayAct()) return false
      if (view === undefined) a.shell.append({ kind: 'topic', proxy: a.shell.proxy, topicId: 'T', name: 't', count: 1 })
      else a.shell.append({ kind: 'cut', proxy: a.shell.proxy, topicId: 'T', cut, layouts: [0], ends: { 0: 1 } })
      return false
    })
  }
  await until('both are ready again', both)
  const left = a.shell.proxy
  void a.shell.stop()
  const gone = () => b.shell.status().proxies.every(({ proxy }) => proxy !== left) && b.shell.isLeader()
  assert.ok(await world.run(gone, 90_000), `write ${nth}: a is gone`)
  for (const cut of cuts) assert.ok(b.shell.view('T')?.topic.cuts.some(({ id }) => id === cut))
  return count
}

const events: readonly { what: string; happens: (a: StateProcess) => Fault | undefined }[] = [
  { what: 'is not served and the connection closes', happens: () => ({ close: true }) },
  { what: 'is served and its answer lost', happens: () => ({ cutAt: 0 }) },
  {
    what: 'is the last thing its proxy did',
    happens: (a) => {
      a.runtime.kill()
      return undefined
    },
  },
]

for (const { what, happens } of events) {
  void test(`a durable write that ${what}, at each of them`, async () => {
    let nth = 1
    while ((await story(nth, happens)) >= nth) nth++
    assert.ok(nth > 8, `only ${nth - 1} writes`)
  })
}

void test('nothing is shown before the log was read to its end', async () => {
  const world = new VirtualRuntime(11)
  const broker = await fakeCluster(world, { nodeIds: [1] })
  const topic = broker.cluster.createTopic('__headgate_state', 1)
  topic.configs = new Map([
    ['cleanup.policy', 'compact'],
    ['min.compaction.lag.ms', '3600000'],
  ])
  const log = topic.partitions[0]?.log
  const write = (key: string, value: Uint8Array) =>
    log?.append(buildBatch({ records: [{ key: Buffer.from(key), value }] }))
  write('register/fleet/1', encodeRecord({ kind: 'register', proxy: 'p', host: 'h' }))
  write('topic/T/2', encodeRecord({ kind: 'topic', proxy: 'p', topicId: 'T', name: 't', count: 1 }))
  const ends = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [i, 1_000_000]))
  for (let i = 0; i < 12; i++) {
    write(`cut/T/${i}`, encodeRecord({ kind: 'cut', proxy: 'p', topicId: 'T', cut: `c${i}`, layouts: [0], ends }))
  }
  const end = log?.end ?? 0
  const a = startProxy(world, broker, 'a')
  let fetches = 0
  broker.cluster.controls.add(1, () => {
    fetches++
    return undefined
  })
  assert.ok(
    await world.run(() => {
      assert.ok(a.shell.view('T') === undefined || a.shell.counts().position >= end, 'half of it is shown')
      return a.shell.view('T') !== undefined
    }),
  )
  assert.ok(fetches > 2, 'it takes several answers')
  assert.equal(a.shell.view('T')?.topic.cuts.length, 12)
})

void test('a fleet on Kafka 2.8', async () => {
  const world = new VirtualRuntime(12)
  const maxVersions = { 0: 9, 1: 12, 2: 6, 3: 11, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 19: 7, 32: 4 }
  const broker = await fakeCluster(world, { maxVersions })
  const [a, b] = [startProxy(world, broker, 'a'), startProxy(world, broker, 'b')]
  assert.ok(await world.run(() => a.shell.mayAct() && b.shell.mayAct()), JSON.stringify(a.shell.status()))
  const before = a.shell.proxy
  const topic = broker.cluster.topics.named('__headgate_state')
  if (topic !== undefined) broker.cluster.topics.delete(topic)
  broker.cluster.createTopic('__headgate_state', 1).configs = topic?.configs ?? new Map<string, string>()
  assert.ok(await world.run(() => a.shell.proxy !== before && a.shell.mayAct() && b.shell.mayAct(), 40_000))
})
