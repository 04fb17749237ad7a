import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CoordinatorEffect,
  type CoordinatorEvent,
  newCoordinator,
  reduceCoordinator,
} from '../../../../src/features/layouts/expansion.ts'
import { defaultTimes } from '../../../../src/features/layouts/times.ts'
import { applyFleet, emptyFleet } from '../../../../src/state/fleet.ts'
import type { TopicChangeRecord } from '../../../../src/state/record.ts'
import { applyTopic } from '../../../../src/state/topic-reducer.ts'
import type { TopicState } from '../../../../src/state/topic-state.ts'

type Body = TopicChangeRecord extends infer R ? (R extends unknown ? Omit<R, 'topicId'> : never) : never
const wish: Body = {
  kind: 'proposal',
  proxy: 'b',
  proposal: 'w',
  after: 0,
  change: 'expand',
  to: 6,
  order: 'key',
  gates: 'seal',
}

class Bench {
  coordinator = newCoordinator('a', defaultTimes)
  fleet = ['a', 'b'].reduce(
    (fleet, proxy, at) => applyFleet(fleet, { kind: 'register', proxy, host: '' }, at, 0),
    emptyFleet,
  )
  topic: TopicState | undefined
  position = 2
  atMs = 0

  constructor(isLeader = true) {
    this.write({ kind: 'topic', proxy: 'b', name: 't', count: 3 })
    this.do({ type: 'leader', isLeader })
  }

  write(body: Body): this {
    const record = { ...body, topicId: 'T' }
    this.topic = applyTopic(this.topic, { record, offset: this.position, atMs: this.atMs }, this.fleet)
    this.position += 1
    return this
  }

  do(event: CoordinatorEvent, atMs = this.atMs): CoordinatorEffect[] {
    this.atMs = atMs
    const [state, effects] = reduceCoordinator(this.coordinator, { ...event, atMs })
    this.coordinator = state
    return effects
  }

  view(atMs = this.atMs): CoordinatorEffect[] {
    assert.ok(this.topic)
    return this.do({ type: 'view', view: { topic: this.topic, fleet: this.fleet, position: this.position } }, atMs)
  }

  loop(effects: CoordinatorEffect[]): CoordinatorEffect[] {
    for (const effect of effects) if (effect.type === 'append') this.write(effect.record as Body)
    return this.view()
  }

  expel(proxy: string): this {
    this.fleet = applyFleet(this.fleet, { kind: 'expel', proxy: 'a', expelled: proxy }, this.position++, this.atMs)
    return this
  }
}
const named = (effects: CoordinatorEffect[]) =>
  effects.map((effect) => (effect.type === 'append' ? effect.record.kind : effect.type))

/** As far as `ready` of both proxies. */
function prepared(bench = new Bench()): Bench {
  bench.write(wish).view()
  bench.loop(bench.do({ type: 'observed', count: 6, isLed: true, leaderEpochs: { 3: 1, 4: 1, 5: 1 } }))
  const proposal = bench.topic?.proposal?.id ?? assert.fail('no proposal')
  bench.write({ kind: 'ready', proxy: 'a', proposal }).write({ kind: 'ready', proxy: 'b', proposal })
  return bench
}

function opened(): Bench {
  const bench = prepared()
  const [ask] = bench.view()
  assert.ok(ask?.type === 'read-ends')
  bench.loop(bench.do({ type: 'ends', what: ask.what, ends: { 3: 2, 4: 0, 5: 0 } }))
  return bench
}

void test('creates what was proposed only after it has read that back', () => {
  const bench = new Bench()
  assert.deepEqual(named(bench.view()), [])
  assert.deepEqual(named(bench.write(wish).view()), ['observe'])
  assert.deepEqual(named(bench.do({ type: 'observed', count: 3, isLed: true, leaderEpochs: {} })), ['create'])
  assert.deepEqual(named(bench.do({ type: 'observed', count: 6, isLed: false, leaderEpochs: {} })), [])
  assert.deepEqual(named(bench.do({ type: 'observed', count: 6, isLed: true, leaderEpochs: {} })), ['preparing'])
})

void test('opens with the ends of the new partitions, read after the last ready', () => {
  const bench = prepared()
  const [ask] = bench.view()
  assert.ok(ask?.type === 'read-ends')
  assert.deepEqual(ask.partitions, [3, 4, 5])
  const [open] = bench.do({ type: 'ends', what: ask.what, ends: { 3: 2, 4: 0, 5: 0 } })
  assert.ok(open?.type === 'append' && open.record.kind === 'open')
  assert.deepEqual(open.record.starts, { 3: 2, 4: 0, 5: 0 })
  assert.deepEqual(open.record.leaderEpochs, { 3: 1, 4: 1, 5: 1 })
})

void test('any proxy aborts what takes too long, the leader or not', () => {
  const bench = new Bench(false)
  bench.write({
    kind: 'proposal',
    proxy: 'b',
    proposal: 'x',
    after: 0,
    change: 'expand',
    to: 6,
    order: 'key',
    gates: 'seal',
  })
  bench.write({ kind: 'preparing', proxy: 'b', proposal: 'x' })
  assert.deepEqual(named(bench.view(defaultTimes.prepareBoundMs - 1)), [])
  const effects = bench.view(defaultTimes.prepareBoundMs)
  assert.deepEqual(named(effects), ['aborted'])
  bench.loop(effects)
  assert.equal(bench.topic?.proposal, undefined)
})

void test('another coordinator goes on where the first one died', () => {
  const bench = prepared()
  bench.coordinator = newCoordinator('b', defaultTimes)
  bench.do({ type: 'leader', isLeader: true })
  assert.deepEqual(named(bench.view()), ['read-ends'])
})

void test('seals with the ends read after the last vote; a withdrawal in between makes it read again', () => {
  const bench = opened()
  assert.deepEqual(named(bench.view()), [])
  const vote = { kind: 'vote', epoch: 1, instances: [], ends: {} } as const
  bench
    .write({ ...vote, proxy: 'a', ballot: 1, instances: [] })
    .write({ ...vote, proxy: 'b', ballot: 1, instances: [] })
  const [ask] = bench.view()
  assert.ok(ask?.type === 'read-ends')
  assert.deepEqual(ask.partitions, [0, 1, 2])
  bench
    .write({ kind: 'withdrawal', proxy: 'b', epoch: 1, ballot: 1 })
    .write({ ...vote, proxy: 'b', ballot: 2, instances: [] })
  const [again] = bench.view()
  assert.ok(again?.type === 'read-ends' && again.what !== ask.what)
  assert.deepEqual(named(bench.do({ type: 'ends', what: ask.what, ends: { 0: 1, 1: 1, 2: 1 } }, 1)), [])
  const sealed = bench.do({ type: 'ends', what: again.what, ends: { 0: 7, 1: 8, 2: 9 } }, 2)
  assert.deepEqual(named(sealed), ['sealed'])
  bench.loop(sealed)
  assert.deepEqual(bench.topic?.layouts[1]?.seal?.boundaries, { 0: 7, 1: 8, 2: 9 })
})

void test('a proxy that died without a vote is waited for goneAfter long', () => {
  const bench = opened().expel('b').write({ kind: 'vote', proxy: 'a', epoch: 1, ballot: 1, instances: [], ends: {} })
  assert.deepEqual(named(bench.view(defaultTimes.goneAfterMs - 1)), [])
  assert.deepEqual(named(bench.view(defaultTimes.goneAfterMs)), ['read-ends'])
})

void test('cuts are forgotten, oldest first, once all logs start above their ends and everything is settled', () => {
  const bench = new Bench()
  const cut = { kind: 'cut' as const, proxy: 'b', layouts: [0] }
  bench
    .write({ ...cut, cut: 'c1', ends: { 0: 5, 1: 5, 2: 5 } })
    .write({ ...cut, cut: 'c2', ends: { 0: 9, 1: 5, 2: 5 } })
  assert.deepEqual(named(bench.view()), ['read-starts'])
  assert.deepEqual(named(bench.do({ type: 'starts', starts: { 0: 4, 1: 9, 2: 9 } })), [])
  bench.loop(bench.do({ type: 'starts', starts: { 0: 5, 1: 5, 2: 5 } }))
  assert.deepEqual(
    bench.topic?.cuts.map((left) => left.id),
    ['c2'],
  )
})
