import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LayoutApi } from '../../../../../src/features/layouts/control/api.ts'
import type { GuardFacts } from '../../../../../src/features/layouts/control/topic-view.ts'
import { newLedger, reduceLedger } from '../../../../../src/features/layouts/clean.ts'
import { Fleet } from './fleet.ts'

function apiOf(fleet: Fleet, index = 0, facts?: GuardFacts): LayoutApi {
  const { control, state } = fleet.proxy(index)
  return new LayoutApi({
    runtime: fleet.runtime,
    state,
    cluster: fleet.cluster,
    control,
    rules: [fleet.rule],
    meet: () => undefined,
    guards: { guardOf: () => facts },
    gates: {
      gatesOf: () => [{ topic: 'orders', partition: 3, from: 0, seal: 1, sinceMs: 0 }],
      shutGroups: () => ['g'],
    },
    unassigned: {
      of: (group) => [
        {
          ...{ topic: 'orders', unassigned: [3], leader: `${group}/l`, sinceMs: 0 },
          unaware: [{ instance: 'i', member: 'm', partitions: 3 }],
        },
      ],
      groups: () => ['g', 'h'],
    },
  })
}
type Body = Record<string, unknown> & { layouts: Record<string, unknown>[] }
const bodyOf = (answer: Awaited<ReturnType<LayoutApi['topic']>>): Body => {
  assert.ok(answer.ok, JSON.stringify(answer))
  return answer.body as Body
}
const codeOf = (answer: Awaited<ReturnType<LayoutApi['topic']>>) =>
  answer.ok ? 'ok' : `${answer.status} ${answer.code}`

test('a topic is shown with its layouts, and grows and shrinks', async () => {
  const fleet = await Fleet.of(2)
  const api = apiOf(fleet)
  const since = new Date(fleet.proxy(0).topic.layouts[0]?.openedAtMs ?? 0).toISOString()
  const row = { topic: 'orders', topicId: 'T', partitions: 3, exists: 3, epoch: 0, order: 'key', phase: 'settled' }
  assert.deepEqual(api.topics(), [{ ...row, since, matches: '^orders$' }])
  const plan = bodyOf(await api.change('orders', 'expand', { to: 6, dryRun: true }))
  assert.deepEqual([plan.dryRun, plan.from, plan.to, plan.gates, plan.fresh], [true, 3, 6, 'seal', [3, 4, 5]])
  assert.equal(fleet.shared.records('proposal').length, 0)
  assert.equal(bodyOf(await fleet.settled(api.change('orders', 'expand', { to: 6 }))).epoch, 1)
  await fleet.until(() => fleet.proxy(0).topic.layouts[1]?.seal !== undefined)
  const grown = bodyOf(await api.topic('orders'))
  assert.deepEqual([grown.partitions, grown.phase], [6, 'settled'])
  assert.deepEqual((grown.layouts[1]?.seal as { boundaries: unknown }).boundaries, { 0: 0, 1: 0, 2: 0 })
  const shrunk = bodyOf(await fleet.settled(api.change('orders', 'shrink', { to: 3, live: true })))
  assert.deepEqual([shrunk.epoch, shrunk.live], [2, true])
  await fleet.until(() => fleet.proxy(1).topic.layouts[2]?.isLive === true)
  assert.equal(fleet.proxy(1).topic.layouts[2]?.isLive, true)
})

test('a shrink can be made live later', async () => {
  const fleet = await Fleet.of(1)
  const api = apiOf(fleet)
  await fleet.settled(api.change('orders', 'shrink', { to: 1 }))
  await fleet.until(() => fleet.proxy(0).topic.layouts[1]?.announcedAt !== undefined)
  assert.equal(codeOf(await api.change('orders', 'shrink', { to: 1 })), '400 HG_TO_SAME')
  assert.equal(bodyOf(await api.change('orders', 'shrink', { to: 1, live: true })).live, true)
  await fleet.until(() => fleet.proxy(0).topic.layouts[1]?.isLive === true)
  assert.ok(fleet.proxy(0).coordinator.isIdle)
})

test('whoever is waited for is named, with since when and how long at most', async () => {
  const fleet = await Fleet.of(2, { sealAfterMs: 60_000 })
  fleet.proxy(0).votes = false
  const writer = reduceLedger(newLedger('a', 0), { type: 'arrived', mark: 'm', age: 0, atMs: fleet.runtime.now() })
  const left = reduceLedger(
    { ...writer, instance: 'b', connections: 1 },
    { type: 'lost', connection: '1', boundMs: 10, atMs: fleet.runtime.now() },
  )
  const api = apiOf(fleet, 0, { ledgers: [writer, left], held: 1, counted: { 'held too long': 2 }, late: 3 })
  await fleet.settled(api.change('orders', 'expand', { to: 6 }))
  await fleet.until(() => fleet.shared.records('vote').length === 1)
  await fleet.until(() => false, 1000)
  const topic = bodyOf(await api.topic('orders'))
  assert.deepEqual([topic.phase, topic.held, topic.late, topic.counted], ['unsealed', 1, 3, { 'held too long': 2 }])
  const { proxies, instances } = topic.layouts[1]?.waitsFor as Record<'proxies' | 'instances', Record<string, string>[]>
  assert.equal(proxies?.length, 1)
  assert.equal(proxies?.[0]?.proxy, fleet.proxy(0).state.proxy)
  const { openedAtMs = 0 } = fleet.proxy(0).topic.layouts[1] ?? {}
  assert.equal(Date.parse(proxies?.[0]?.atMost ?? ''), openedAtMs + 60_000)
  assert.deepEqual(
    instances?.map(({ instance, why }) => [instance, why]),
    [
      ['a', 'has not asked for Metadata since the change'],
      ['b', 'left before it was clean'],
    ],
  )
  assert.ok(Date.parse(instances?.[1]?.atMost ?? '') > fleet.runtime.wallNow())
})

test('a change under way is shown with who is not ready, an aborted one with its reason', async () => {
  const fleet = await Fleet.of(2)
  fleet.proxy(1).isReady = false
  const api = apiOf(fleet)
  const change = api.change('orders', 'expand', { to: 6 })
  await fleet.until(() => fleet.proxy(0).topic.proposal?.ready[fleet.proxy(0).state.proxy] !== undefined)
  const busy = bodyOf(await api.topic('orders'))
  assert.equal(busy.phase, 'preparing')
  assert.deepEqual((busy.change as { notReady: string[] }).notReady, [fleet.proxy(1).state.proxy])
  assert.equal(codeOf(await api.change('orders', 'expand', { to: 9 })), '409 HG_CHANGE_IN_PROGRESS')
  assert.equal(codeOf(await fleet.settled(change)), '503 HG_CHANGE_ABORTED')
  const after = bodyOf(await api.topic('orders'))
  assert.deepEqual([after.partitions, after.exists, (after.aborted as { to: number }).to], [3, 6, 6])
  fleet.proxy(1).isReady = true
  assert.equal(codeOf(await fleet.settled(api.change('orders', 'expand', { to: 6 }))), 'ok')
  assert.equal(bodyOf(await api.topic('orders')).aborted, undefined, 'a later change makes it old news')
})

test('what cannot be done is refused with the reason, and nothing is changed', async () => {
  const fleet = await Fleet.of(1)
  fleet.cluster.topic('plain', 'P', 1)
  const api = apiOf(fleet)
  const before = fleet.shared.entries.length
  const cases: [string, 'expand' | 'shrink', unknown, string][] = [
    ['nope', 'expand', { to: 6 }, '404 HG_TOPIC_UNKNOWN'],
    ['plain', 'expand', { to: 6 }, '404 HG_TOPIC_NO_RULE'],
    ['orders', 'expand', { to: 3 }, '400 HG_TO_SAME'],
    ['orders', 'expand', { to: 2 }, '400 HG_TO_TOO_SMALL'],
    ['orders', 'shrink', { to: 4 }, '400 HG_TO_TOO_LARGE'],
    ['orders', 'shrink', { to: 0 }, '400 HG_TO_INVALID'],
    ['orders', 'expand', { to: 5 }, '400 HG_NOT_MULTIPLE'],
    ['orders', 'expand', { to: '6' }, '400 HG_VALUE'],
    ['orders', 'expand', { to: 6, dryrun: true }, '400 HG_VALUE'],
    ['orders', 'expand', { to: 6, live: true }, '400 HG_VALUE'],
    ['orders', 'shrink', { to: 1, any: true }, '400 HG_VALUE'],
    ['orders', 'expand', { to: 6, any: 'yes' }, '400 HG_VALUE'],
    ['orders', 'expand', null, '400 HG_VALUE'],
    ['orders', 'expand', [6], '400 HG_VALUE'],
  ]
  for (const [name, change, body, code] of cases)
    assert.equal(codeOf(await api.change(name, change, body)), code, JSON.stringify([name, change, body]))
  fleet.proxy(0).state.lapse()
  assert.equal(codeOf(await api.change('orders', 'expand', { to: 6 })), '503 HG_STATE_UNAVAILABLE')
  assert.match(String(bodyOf(await api.topic('orders')).problem), /the test says so/)
  fleet.cluster.fail = true
  assert.equal(codeOf(await api.topic('nope')), '503 HG_CLUSTER_UNREACHABLE')
  await fleet.until(() => false, 1000)
  assert.equal(fleet.shared.entries.length, before)
})

test('gates and the state pass through', async () => {
  const fleet = await Fleet.of(1)
  const api = apiOf(fleet)
  assert.deepEqual(api.gates('g'), [
    { topic: 'orders', partition: 3, from: 0, seal: 1, since: '1970-01-01T00:00:00.000Z' },
    {
      ...{ topic: 'orders', unassigned: [3], leader: 'g/l', since: '1970-01-01T00:00:00.000Z' },
      unaware: [{ instance: 'i', member: 'm', partitions: 3 }],
    },
  ])
  assert.deepEqual(api.shutGroups(), ['g', 'h'])
  assert.equal((api.state() as { condition: string }).condition, 'ready')
})
