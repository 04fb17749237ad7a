import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FakeBroker } from '../../../../src/fake-broker/fake-broker.ts'
import { errorCodes } from '../../../../src/protocol/error-codes.ts'
import { buildBatch } from '../../../../src/records/build.ts'
import { encodeRecord } from '../../../../src/state/records.ts'
import { fakeCluster, type StateProcess, startProxy } from '../../../support/state-rig.ts'
import { VirtualRuntime } from '../../../support/virtual-runtime.ts'

const name = '__headgate_state'
const denied = errorCodes.TOPIC_AUTHORIZATION_FAILED

async function rig(seed: number) {
  const world = new VirtualRuntime(seed)
  return { world, broker: await fakeCluster(world) }
}

function appendRaw(broker: FakeBroker, key: string, value: Uint8Array | null): void {
  const log = broker.cluster.topics.partition(name, 0)?.log
  log?.append(buildBatch({ records: [{ key: Buffer.from(key), value }] }))
  broker.cluster.wake()
}

const problemOf = ({ shell }: StateProcess) => shell.status().problem ?? ''
const warnings = ({ log }: StateProcess) =>
  log.lines.filter(({ level }) => level === 'warn').map((line) => line.message)

const goodConfigs = new Map([
  ['cleanup.policy', 'compact'],
  ['min.compaction.lag.ms', '3600000'],
])

for (const { what, count, configs, says } of [
  { what: 'two partitions', count: 2, configs: goodConfigs, says: /has 2 partitions and must have 1.*delete it/ },
  {
    what: 'no compaction',
    count: 1,
    configs: new Map<string, string>(),
    says: /has cleanup\.policy=delete and must have compact/,
  },
  {
    what: 'retention beside compaction',
    count: 1,
    configs: new Map([...goodConfigs, ['cleanup.policy', 'compact,delete']]),
    says: /kafka-configs --alter --topic __headgate_state --add-config cleanup\.policy=compact$/,
  },
  {
    what: 'a short compaction lag',
    count: 1,
    configs: new Map([...goodConfigs, ['min.compaction.lag.ms', '1000']]),
    says: /min\.compaction\.lag\.ms=1000 and must have 3600000/,
  },
]) {
  void test(`a state topic with ${what} is refused, left as it is, and used once it is right`, async () => {
    const { world, broker } = await rig(1)
    const topic = broker.cluster.createTopic(name, count)
    topic.configs = new Map(configs)
    const a = startProxy(world, broker, 'a')
    assert.ok(await world.run(() => says.test(problemOf(a))), problemOf(a))
    await world.run(() => false, 20_000)
    assert.equal(a.shell.status().condition, 'loading')
    assert.equal(topic.partitions[0]?.log.end, 0)
    assert.deepEqual(topic.configs, configs)
    assert.equal(
      warnings(a).filter((line) => says.test(line.replace('; retrying', ''))).length,
      1,
      'one line a problem',
    )
    topic.configs = goodConfigs
    if (count !== 1) return
    assert.ok(await world.run(() => a.shell.mayAct()), problemOf(a))
    assert.equal(problemOf(a), '')
  })
}

for (const { what, value, says } of [
  {
    what: 'a foreign record',
    value: Buffer.from('not json'),
    says: /is not JSON.*\(key "x\/y\/z"\): find out who writes/,
  },
  { what: 'a record of a newer version', value: Buffer.from('{"v":9,"kind":"new"}'), says: /: update this proxy$/ },
  {
    what: 'a snapshot that is none',
    value: encodeRecord({ kind: 'topic-snapshot', proxy: 'a', topicId: 'y', below: 1, state: {} as never }),
    says: /: find out who writes/,
  },
]) {
  void test(`${what} ends the lease and says why; a tombstone for its key gives it back`, async () => {
    const { world, broker } = await rig(2)
    const a = startProxy(world, broker, 'a')
    await world.run(() => a.shell.mayAct())
    appendRaw(broker, 'x/y/z', value)
    assert.ok(await world.run(() => !a.shell.mayAct(), 6000))
    assert.match(problemOf(a), says)
    assert.equal(a.shell.status().condition, 'lost')
    const late = startProxy(world, broker, 'late')
    assert.ok(await world.run(() => says.test(problemOf(late))), problemOf(late))
    appendRaw(broker, 'x/y/z', null)
    assert.ok(await world.run(() => a.shell.mayAct() && late.shell.mayAct(), 10_000), problemOf(a))
  })
}

for (const { what, apiKey, answer, says } of [
  {
    what: 'create the topic',
    apiKey: 19,
    answer: { topics: [{ name, errorCode: denied, errorMessage: null }] },
    says: /CreateTopics of __headgate_state failed with TOPIC_AUTHORIZATION_FAILED: allow Create on this topic/,
  },
  {
    what: 'see its settings',
    apiKey: 32,
    answer: { results: [{ errorCode: denied, errorMessage: null, resourceType: 2, resourceName: name }] },
    says: /DescribeConfigs of topic __headgate_state failed with TOPIC_AUTHORIZATION_FAILED: allow DescribeConfigs/,
  },
  {
    what: 'join the group',
    apiKey: 11,
    answer: { errorCode: errorCodes.GROUP_AUTHORIZATION_FAILED, protocolName: '', members: [] },
    says: /JoinGroup of the group __headgate failed with GROUP_AUTHORIZATION_FAILED: allow Read/,
  },
]) {
  void test(`without the right to ${what} it says which one, and goes on once it has it`, async () => {
    const { world, broker } = await rig(3)
    const forbid = broker.cluster.controls.add(apiKey, () => ({ answer }))
    const a = startProxy(world, broker, 'a')
    assert.ok(await world.run(() => says.test(problemOf(a))), problemOf(a))
    assert.equal(a.shell.mayAct(), false)
    forbid()
    assert.ok(await world.run(() => a.shell.mayAct()), problemOf(a))
  })
}

void test('without the right to write it says so, and the lease it has ends with nothing lost', async () => {
  const { world, broker } = await rig(4)
  const forbid = broker.cluster.controls.add(0, ({ request }) => {
    const { topicData } = request as { topicData: { name: string; topicId: string }[] }
    const partitionResponses = [{ index: 0, errorCode: denied, baseOffset: -1 }]
    return { answer: { responses: topicData.map((topic) => ({ ...topic, partitionResponses })) } }
  })
  const a = startProxy(world, broker, 'a')
  const says = /Produce of topic __headgate_state, partition 0 failed with TOPIC_AUTHORIZATION_FAILED: allow Write/
  assert.ok(await world.run(() => says.test(problemOf(a))), problemOf(a))
  assert.equal(a.shell.mayAct(), false)
  forbid()
  assert.ok(await world.run(() => a.shell.mayAct()), problemOf(a))
})

void test('members of another kind in the group are named', async () => {
  const { world, broker } = await rig(5)
  const group = broker.cluster.coordinators.getOrCreate('__headgate', 0)
  group.join(
    {
      memberId: '',
      instanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.alloc(0) }],
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      clientId: 'other',
      clientHost: '',
      requireKnownMember: false,
      canSkipAssignment: false,
    },
    0,
    () => undefined,
  )
  const a = startProxy(world, broker, 'a')
  assert.ok(await world.run(() => /members of another kind use this group/.test(problemOf(a))), problemOf(a))
})

void test('the topic deleted: everything starts afresh, under a new id', async () => {
  const { world, broker } = await rig(6)
  const a = startProxy(world, broker, 'a')
  await world.run(() => a.shell.mayAct())
  a.shell.append({ kind: 'topic', proxy: a.shell.proxy, topicId: 'T', name: 't', count: 3 })
  assert.ok(await world.run(() => a.shell.view('T') !== undefined))
  const before = a.shell.proxy
  const topic = broker.cluster.topics.named(name)
  if (topic !== undefined) broker.cluster.topics.delete(topic)
  broker.cluster.wake()
  assert.ok(await world.run(() => a.shell.proxy !== before && a.shell.mayAct(), 30_000), problemOf(a))
  assert.equal(a.shell.view('T'), undefined)
  assert.equal(broker.cluster.topics.named(name)?.configs.get('cleanup.policy'), 'compact')
})
