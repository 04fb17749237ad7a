import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyFleet, emptyFleet, type FleetState } from '../../../src/state/fleet.ts'
import type { TopicChangeRecord } from '../../../src/state/record.ts'
import { applyTopic } from '../../../src/state/topic-reducer.ts'
import { isInForce, missingVotes, openEpochs, type TopicState } from '../../../src/state/topic-state.ts'

const topicId = 'T'
type Body<R> = R extends unknown ? Omit<R, 'proxy' | 'topicId'> : never

/** A log with two proxies, a and b, registered at 0 and 1. */
class Log {
  fleet: FleetState = ['a', 'b'].reduce(
    (fleet, proxy, at) => applyFleet(fleet, { kind: 'register', proxy, host: '' }, at, 0),
    emptyFleet,
  )
  topic: TopicState | undefined
  at = 2

  add(proxy: string, body: Body<TopicChangeRecord>): this {
    const record = { ...body, proxy, topicId }
    this.topic = applyTopic(this.topic, { record, offset: this.at, atMs: this.at * 10 }, this.fleet)
    this.at += 1
    return this
  }

  expel(proxy: string): this {
    this.fleet = applyFleet(this.fleet, { kind: 'expel', proxy: 'a', expelled: proxy }, this.at, this.at * 10)
    this.at += 1
    return this
  }

  leave(proxy: string, wroteTo?: string[]): this {
    const record = { kind: 'expel', proxy, expelled: proxy, ...(wroteTo === undefined ? {} : { wroteTo }) } as const
    this.fleet = applyFleet(this.fleet, record, this.at, this.at * 10)
    this.at += 1
    return this
  }

  get missing() {
    return missingVotes(this.state, this.last ?? assert.fail(), this.fleet, this.at)
  }

  get state(): TopicState {
    assert.ok(this.topic)
    return this.topic
  }

  get last() {
    return this.state.layouts.at(-1)
  }
}

const open = { kind: 'open', proposal: 'x', starts: { 3: 0, 4: 0, 5: 0 }, leaderEpochs: {}, unsettled: [0] } as const
const proposed = (gates: 'seal' | 'cuts' = 'seal') =>
  new Log()
    .add('a', { kind: 'topic', name: 't', count: 3 })
    .add('a', { kind: 'proposal', proposal: 'x', after: 0, change: 'expand', to: 6, order: 'key', gates })
const ready = (gates: 'seal' | 'cuts' = 'seal') =>
  proposed(gates)
    .add('a', { kind: 'preparing', proposal: 'x' })
    .add('a', { kind: 'ready', proposal: 'x' })
    .add('b', { kind: 'ready', proposal: 'x' })
const opened = (gates: 'seal' | 'cuts' = 'seal') => ready(gates).add('a', { ...open, unsettled: [0] })
const vote = (ballot: number, ends = {}) =>
  ({ kind: 'vote', epoch: 1, ballot, instances: [], ends }) as Body<TopicChangeRecord>
const sealed = (lastVote: number, gaveUp: string[] = [], forced = false) =>
  ({ kind: 'sealed', epoch: 1, lastVote, boundaries: { 0: 5, 1: 5, 2: 5 }, gaveUp, forced }) as Body<TopicChangeRecord>

void test('open counts only when every proxy that lives there is ready', () => {
  assert.equal(opened().state.layouts.length, 2)
  const early = proposed().add('a', { kind: 'preparing', proposal: 'x' }).add('a', { kind: 'ready', proposal: 'x' })
  assert.equal(early.add('a', { ...open, unsettled: [0] }).state.layouts.length, 1)
  assert.equal(early.expel('b').add('a', { ...open, unsettled: [0] }).state.layouts.length, 2)
})

void test('aborted or open: whichever comes first in the log is obeyed', () => {
  const aborted = ready().add('b', { kind: 'aborted', proposal: 'x', reason: '' })
  assert.equal(aborted.add('a', { ...open, unsettled: [0] }).state.layouts.length, 1)
  assert.equal(opened().add('b', { kind: 'aborted', proposal: 'x', reason: '' }).state.layouts.length, 2)
})

void test('a proposal that arrives after another change is void', () => {
  const late = opened('cuts').add('b', {
    kind: 'proposal',
    proposal: 'y',
    after: 0,
    change: 'shrink',
    to: 3,
    order: 'key',
    gates: 'cuts',
  })
  assert.equal(late.state.proposal, undefined)
})

void test('a change with cuts waits for the seal of an earlier expansion; another expansion does not', () => {
  const shrink = {
    kind: 'proposal',
    proposal: 'y',
    after: 1,
    change: 'shrink',
    to: 3,
    order: 'key',
    gates: 'cuts',
  } as const
  assert.equal(opened().add('a', shrink).state.proposal, undefined)
  assert.equal(opened().add('a', { ...shrink, change: 'expand', to: 12, gates: 'seal' }).state.proposal?.to, 12)
  const done = opened().add('a', vote(1)).add('b', vote(1))
  const at = done.at - 1
  assert.equal(done.add('a', sealed(at)).add('a', shrink).state.proposal?.to, 3)
})

void test('a seal needs every vote, and none after the one it names', () => {
  assert.equal(opened().add('a', vote(1)).add('a', sealed(8)).last?.seal, undefined)
  const log = opened().add('a', vote(1)).add('b', vote(1))
  const lastVote = log.at - 1
  assert.equal(log.add('b', vote(2)).add('a', sealed(lastVote)).last?.seal, undefined)
  assert.ok(log.add('a', sealed(lastVote + 1)).last?.seal)
})

void test('a vote that arrives after its own withdrawal is void', () => {
  const log = opened().add('a', { kind: 'withdrawal', epoch: 1, ballot: 1 }).add('a', vote(1))
  assert.deepEqual(log.last?.votes, {})
  assert.ok(log.add('a', vote(2)).last?.votes.a)
})

void test('boundaries are raised to the acknowledged ends that votes name', () => {
  const log = opened()
    .add('a', vote(1, { 0: 9 }))
    .add('b', vote(1, { 1: 2 }))
  assert.deepEqual(log.add('a', sealed(log.at - 1)).last?.seal?.boundaries, { 0: 9, 1: 5, 2: 5 })
})

void test('a proxy that died without a vote must be given up by name, one that had voted need not', () => {
  const log = opened().add('a', vote(1)).expel('b')
  const lastVote = log.at - 2
  assert.equal(log.add('a', sealed(lastVote)).last?.seal, undefined)
  assert.ok(log.add('a', sealed(lastVote, ['b'])).last?.seal)
  const voted = opened().add('b', vote(1)).add('a', vote(1))
  const at = voted.at - 1
  assert.ok(voted.expel('b').add('a', sealed(at)).last?.seal)
})

void test('what an expelled proxy writes is void', () => {
  assert.equal(opened().expel('b').add('b', vote(1)).last?.votes.b, undefined)
})

void test('cuts are raised to earlier cuts and to boundaries, and are in force when all have read them', () => {
  const log = opened('cuts')
    .add('a', { kind: 'cut', cut: 'c1', layouts: [0, 1], ends: { 0: 7, 1: 3 } })
    .add('b', { kind: 'cut', cut: 'c2', layouts: [0, 1], ends: { 0: 5, 1: 4, 2: 1 } })
  assert.deepEqual(log.state.cuts[1]?.ends, { 0: 7, 1: 4, 2: 1 })
  const cut = () => log.state.cuts.at(1) ?? assert.fail()
  log.add('a', { kind: 'cut-read', cut: 'c2' })
  assert.equal(isInForce(cut(), log.fleet), false)
  const later = applyFleet(log.fleet, { kind: 'register', proxy: 'c', host: '' }, log.at, 0)
  assert.equal(isInForce(log.add('b', { kind: 'cut-read', cut: 'c2' }).state.cuts[1] ?? assert.fail(), later), true)
})

void test('layouts stay open until the seal and the longest Metadata age after it', () => {
  const log = opened().add('a', vote(1)).add('b', vote(1))
  assert.deepEqual(openEpochs(log.state, 1e9, 600), [0, 1])
  log.add('a', sealed(log.at - 1))
  const sealedMs = log.last?.seal?.atMs ?? 0
  assert.deepEqual(openEpochs(log.state, sealedMs + 599, 600), [0, 1])
  assert.deepEqual(openEpochs(log.state, sealedMs + 600, 600), [1])
})

void test('what was aborted is remembered, with the count that may exist hidden', () => {
  const log = proposed().add('a', { kind: 'aborted', proposal: 'x', reason: 'slow' })
  assert.deepEqual(log.state.aborted, { proposal: 'x', change: 'expand', to: 6, reason: 'slow', atMs: 40 })
  assert.equal(log.state.attempted, 6)
  log
    .add('a', { kind: 'proposal', proposal: 'y', after: 0, change: 'external', to: 9, order: 'key', gates: 'seal' })
    .add('a', { kind: 'aborted', proposal: 'y', reason: 'slow' })
  assert.deepEqual([log.state.aborted?.to, log.state.attempted], [9, 6])
})

void test('a shrink that was announced may still be announced live, not the other way round', () => {
  const log = opened('cuts').add('a', { kind: 'announced', epoch: 1 })
  assert.deepEqual([log.last?.announcedAt, log.last?.isLive], [8, undefined])
  log.add('a', { kind: 'announced', epoch: 1, live: true }).add('a', { kind: 'announced', epoch: 1 })
  assert.deepEqual([log.last?.announcedAt, log.last?.isLive], [8, true])
})

const left = (instances: Record<string, number>, ends = {}) =>
  ({ kind: 'left', sinceMs: 0, instances, gone: [], ends }) as Body<TopicChangeRecord>
const votedFor = (instances: string[]) => ({ ...vote(1), instances }) as Body<TopicChangeRecord>

void test('a proxy that stopped in good order is not missed once others vouch for its writers', () => {
  const gone = opened()
    .add('b', left({ x: 0, y: 1 }))
    .leave('b', ['T'])
  assert.deepEqual(gone.missing, { live: ['a'], dead: ['b'] })
  assert.deepEqual(gone.add('a', votedFor(['y'])).missing, { live: [], dead: ['b'] })
  assert.deepEqual(gone.add('a', votedFor(['x'])).missing, { live: [], dead: [] })
  assert.ok(gone.add('a', sealed(gone.at - 1)).last?.seal)
})

void test('nobody wrote through it: it is not missed; what it said is lost, or it said nothing: it is', () => {
  const voted = () => opened().add('a', vote(1))
  assert.deepEqual(voted().leave('b', ['U']).missing.dead, [])
  assert.deepEqual(voted().leave('b', ['T']).missing.dead, ['b'])
  assert.deepEqual(voted().leave('b').missing.dead, ['b'])
  assert.deepEqual(voted().expel('b').missing.dead, ['b'])
})

void test('boundaries are raised to what a proxy that left during the change saw acknowledged', () => {
  const log = opened()
    .add('b', left({}, { 0: 8, 1: 2 }))
    .leave('b', ['T'])
    .add('a', vote(1))
  assert.deepEqual(log.add('a', sealed(log.at - 1)).last?.seal?.boundaries, { 0: 8, 1: 5, 2: 5 })
})

void test('what a proxy says after its expulsion is void', () => {
  assert.equal(
    opened()
      .expel('b')
      .add('b', left({ x: 0 })).state.left,
    undefined,
  )
})
