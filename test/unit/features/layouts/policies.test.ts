import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LedgerEvent, newLedger, reduceLedger } from '../../../../src/features/layouts/clean.ts'
import type { MemberShare } from '../../../../src/editors/groups/policy.ts'
import { balanceMarked, isBalanced } from '../../../../src/features/layouts/marked-balance.ts'
import { type PushFacts, pushAtProduce, pushWhenIdle } from '../../../../src/features/layouts/push.ts'
import {
  expectSequence,
  isOutOfTurn,
  noSequences,
  sawSequence,
} from '../../../../src/features/layouts/sequence-guard.ts'
import { countShown, stillWide } from '../../../../src/features/layouts/shrink.ts'
import type { TopicState } from '../../../../src/state/topic-state.ts'

const batch = (sequence: number, producerEpoch = 0) => ({ producerId: '7', producerEpoch, sequence })

void test('after a refusal later sequences are refused until the expected one returns', () => {
  const guard = expectSequence(noSequences, 1, batch(10), 0)
  assert.equal(isOutOfTurn(guard, 1, batch(15), 5), true)
  assert.equal(isOutOfTurn(guard, 1, batch(10), 5), false)
  assert.equal(isOutOfTurn(guard, 2, batch(15), 5), false)
  assert.equal(isOutOfTurn(sawSequence(guard, 1, batch(10)), 1, batch(15), 5), false)
  const again = expectSequence(guard, 1, batch(15), 5)
  assert.equal(isOutOfTurn(again, 1, batch(12), 6), true)
})

void test('the sequence guard ends: with a new epoch, a new id, or after ten seconds', () => {
  const guard = expectSequence(noSequences, 1, batch(10), 0)
  assert.equal(isOutOfTurn(guard, 1, batch(15, 1), 5), false)
  assert.equal(isOutOfTurn(guard, 1, { ...batch(15), producerId: '8' }, 5), false)
  assert.equal(isOutOfTurn(guard, 1, batch(15), 9999), true)
  assert.equal(isOutOfTurn(guard, 1, batch(15), 10_000), false)
})

void test('an earlier batch that passes does not end the wait for a refused one; a batch of a new epoch does', () => {
  const guard = expectSequence(noSequences, 1, batch(10), 0)
  assert.equal(isOutOfTurn(sawSequence(guard, 1, batch(5)), 1, batch(15), 5), true)
  assert.equal(isOutOfTurn(sawSequence(guard, 1, batch(0, 1)), 1, batch(15), 5), false)
})

void test('a wait that is over is forgotten: the next refusal begins a new one', () => {
  const guard = expectSequence(noSequences, 1, batch(10), 0)
  assert.equal(isOutOfTurn(expectSequence(guard, 1, batch(20), 60_000), 1, batch(25), 60_001), true)
  assert.equal(expectSequence(guard, 2, batch(20), 60_000).size, 1)
})

const facts: PushFacts = {
  isIdempotent: false,
  pipelines: true,
  wasPushed: false,
  isShown: false,
  staysVisible: true,
  hasAcks: true,
}

void test('a request is refused only where its order survives, once, and never of a hidden partition', () => {
  assert.equal(pushAtProduce(facts), 'wait')
  assert.equal(pushAtProduce({ ...facts, isIdempotent: true }), 'refuse')
  assert.equal(pushAtProduce({ ...facts, pipelines: false }), 'refuse')
  for (const no of [{ wasPushed: true }, { isShown: true }, { staysVisible: false }, { hasAcks: false }]) {
    assert.equal(pushAtProduce({ ...facts, isIdempotent: true, ...no }), 'wait')
  }
  assert.equal(pushWhenIdle(facts, 999), 'wait')
  assert.equal(pushWhenIdle(facts, 1000), 'close')
  assert.equal(pushWhenIdle({ ...facts, isShown: true }, 1000), 'wait')
})

const share = (member: string, assigned: number[], owned = assigned): MemberShare => {
  return { member, topics: ['t'], assigned: { t: assigned }, owned: { t: owned } }
}
const partsOf = (shares: readonly MemberShare[]) => shares.map((s) => s.assigned.t)

void test('marked partitions are spread evenly, and so are the others', () => {
  const before = [share('a', [0, 3, 4, 5], []), share('b', [1], []), share('c', [2], [])]
  const after = balanceMarked(before, 't', [3, 4, 5], 'range')
  assert.deepEqual(partsOf(after), [
    [0, 3],
    [1, 4],
    [2, 5],
  ])
  assert.deepEqual(balanceMarked(after, 't', [3, 4, 5], 'range'), after)
})

void test('range gives neighbours of each kind, whoever had what, and starts the second kind where the first ended', () => {
  const marked = [3, 4, 5]
  const two = [share('b', [3, 4, 5], []), share('a', [0, 1, 2], [])]
  assert.deepEqual(partsOf(balanceMarked(two, 't', marked, 'range')), [
    [2, 4, 5],
    [0, 1, 3],
  ])
  const many = [0, 1, 2, 3, 4, 5].map((partition) => share(`m${partition}`, [partition], []))
  assert.equal(balanceMarked([...many, share('idle', [], [])], 't', marked, 'range')[3], many[3])
})

void test('what a sticky leader gave to the one that came is of both kinds, and it finds no more to even out', () => {
  const before = [share('a', [0, 1, 2], [0, 1, 2, 3, 4, 5]), share('b', [3, 4, 5], [])]
  const after = balanceMarked(before, 't', [3, 4, 5], 'sticky')
  assert.deepEqual(partsOf(after), [
    [0, 1, 3],
    [2, 4, 5],
  ])
  assert.equal(balanceMarked(after, 't', [3, 4, 5], 'sticky'), after)
  // Cooperative: what `a` owns comes to `b` with the next generation.
  const first = balanceMarked([share('a', [0, 1, 2]), share('b', [])], 't', [2], 'cooperative-sticky')
  assert.deepEqual(partsOf(first), [[0, 2], []])
})

void test('other topics count for who is given what does not divide, and stay where they are', () => {
  const other = { ...share('a', [0, 3], []), assigned: { t: [0, 3], u: [0, 1] } }
  const [a, b] = balanceMarked([other, share('b', [], [])], 't', [3], 'roundrobin')
  assert.deepEqual([a?.assigned, b?.assigned], [{ t: [], u: [0, 1] }, { t: [0, 3] }])
})

void test('whoever has a marked partition keeps it up to an even share', () => {
  const before = [share('a', [0, 5]), share('b', [1, 3, 4])]
  assert.deepEqual(partsOf(balanceMarked(before, 't', [3, 4, 5], 'sticky')), [
    [0, 5],
    [1, 3, 4],
  ])
})

void test('a cooperative member gets one only when nobody else owns it any more', () => {
  const before = [share('a', [0, 3, 4]), share('b', [1])]
  const first = balanceMarked(before, 't', [3, 4], 'cooperative-sticky')
  assert.deepEqual(partsOf(first), [[0, 3], [1]])
  const second = [share('a', [0, 3]), share('b', [1, 4], [1])]
  assert.deepEqual(partsOf(balanceMarked(second, 't', [3, 4], 'cooperative-sticky')), [
    [0, 3],
    [1, 4],
  ])
})

void test('nothing is given to members without the topic, nor taken that the leader gave to nobody', () => {
  const other: MemberShare = { member: 'x', topics: ['u'], assigned: {}, owned: {} }
  const before = [share('a', [0, 3]), other]
  assert.equal(balanceMarked(before, 't', [3, 4], 'range')[0], before[0])
  assert.equal(balanceMarked([other], 't', [3], 'range')[0], other)
  assert.equal(isBalanced('roundrobin'), true)
  assert.equal(isBalanced('my-own'), false)
})

const topic = (announced: boolean) =>
  ({
    layouts: [
      { epoch: 0, count: 6 },
      { epoch: 1, count: 3, ...(announced ? { announcedAt: 5 } : {}) },
    ],
  }) as unknown as TopicState
const known = (...events: (LedgerEvent & { atMs: number })[]) =>
  events.reduce((ledger, event) => reduceLedger(ledger, event), newLedger('i', 0))
const connected = { type: 'connected', connection: '1', epoch: 0, boundMs: 10_000, atMs: 0 } as const
const wide = [connected, { type: 'shown', epoch: 0, atMs: 0 }] as const

void test('a shrink is shown once announced, and only to instances that were not shown more', () => {
  assert.equal(countShown(topic(false), undefined).count, 6)
  assert.equal(countShown(topic(true), undefined).count, 3)
  assert.equal(countShown(topic(true), known(...wide)).count, 6)
  assert.deepEqual(stillWide(topic(true), [known(...wide), known(connected)]), ['i'])
})

void test('what an instance was shown is forgotten with its last connection', () => {
  const gone = known(...wide, { type: 'lost', connection: '1', boundMs: 1, atMs: 5 })
  assert.equal(countShown(topic(true), gone).count, 3)
  assert.equal(countShown(topic(true), reduceLedger(gone, { ...connected, atMs: 9 })).count, 3)
})

void test('a live shrink is shown to living instances too', () => {
  const [first, second] = topic(true).layouts
  const live = { layouts: [first, { ...second, isLive: true }] } as unknown as TopicState
  assert.equal(countShown(live, known(...wide)).count, 3)
})
