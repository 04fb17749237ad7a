/** Nothing grows or waits for ever, whatever clients do while a change is never settled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reduceLedger, newLedger, owesOlder } from '../../../../src/features/layouts/clean.ts'
import { forgetGone } from '../../../../src/features/layouts/forgetting.ts'
import { latesOf } from '../../../../src/features/layouts/late-answers.ts'
import { noteSent, type Sent } from '../../../../src/features/layouts/sent.ts'
import { defaultTimes as times } from '../../../../src/features/layouts/times.ts'
import { batch, Bench, named } from './guard-bench.ts'

/** Instance i writes by the old layout, so that there is no vote. */
function writing(to: number, gates: 'seal' | 'cuts'): Bench {
  const bench = new Bench().open(to, gates)
  const old = batch(0, [0])
  bench.do({ type: 'batch', batch: old })
  bench.view()
  bench.do({ type: 'answered', id: old.id, end: 0, lapsed: false })
  return bench
}

/** Many late batches, answered one after the other. */
function answerLate(bench: Bench, count: number): void {
  for (let i = 0; i < count; i++) {
    const late = batch(1, [4])
    bench.do({ type: 'batch', batch: late })
    bench.do({ type: 'answered', id: late.id, end: i + 1, lapsed: false })
  }
}

void test('of late batches whose seal is still to come the newest are kept, of those that no seal judges none', () => {
  const sealed = writing(6, 'seal')
  answerLate(sealed, 5000)
  const kept = [...latesOf(sealed.guard.lates)]
  assert.ok(kept.length >= 1000 && kept.length <= 2000)
  assert.deepEqual([kept[0]?.end, kept.at(-1)?.end], [5000, 5001 - kept.length])
  const cut = writing(5, 'cuts')
  answerLate(cut, 10)
  assert.deepEqual([...latesOf(cut.guard.lates)], [])
})

void test('a seal that gave a proxy up counts each late batch above its boundary once', () => {
  const bench = writing(6, 'seal')
  answerLate(bench, 3)
  const seal = { kind: 'sealed', proxy: 'b', epoch: 1, lastVote: -1, gaveUp: [], forced: true } as const
  const found = bench.write({ ...seal, gaveUp: [], boundaries: { 0: 0, 1: 1, 2: 0 } }).view()
  assert.deepEqual(named(found), ['late above the boundary', 'late above the boundary'])
  assert.deepEqual(named(bench.view()), [])
  const flying = batch(1, [4])
  bench.do({ type: 'batch', batch: flying })
  const answered = bench.do({ type: 'answered', id: flying.id, end: 9, lapsed: false })
  assert.deepEqual(named(answered), ['late above the boundary'])
})

/** A batch of the new layout waits, old ones arrive every 50 ms. Returns when it went, at most until `untilMs`. */
function waitAmongOld(bench: Bench, fromMs: number, untilMs: number): number {
  const fresh = batch(4, [4])
  const isGone = (effects: ReturnType<Bench['do']>): boolean =>
    effects.some((effect) => effect.type === 'forward' && effect.batch === fresh)
  let isOver = isGone(bench.do({ type: 'batch', batch: fresh }, fromMs))
  let atMs = fromMs
  for (; !isOver && atMs < untilMs; atMs += 50) {
    const late = batch(1, [4])
    const effects = bench.do({ type: 'batch', batch: late }, atMs)
    effects.push(...bench.do({ type: 'answered', id: late.id, end: 1, lapsed: false }))
    for (const effect of effects) if (effect.type === 'append') bench.write(effect.record as never)
    effects.push(...bench.do({ type: 'tick' }))
    for (const effect of effects) {
      if (effect.type === 'read-ends') effects.push(...bench.do({ type: 'ends', round: effect.round, ends: {} }))
    }
    isOver = isGone(effects)
    for (const effect of bench.loop(effects, atMs + 25)) {
      if (effect.type === 'append' && effect.record.kind === 'cut-read') {
        const read = { kind: 'cut-read', cut: effect.record.cut } as const
        isOver ||= isGone(
          bench
            .write({ ...read, proxy: 'a' })
            .write({ ...read, proxy: 'b' })
            .view(),
        )
      }
    }
  }
  return atMs
}

void test('a batch gets its cut within the bound even if older ones never stop coming', () => {
  const bench = writing(5, 'cuts')
  const atMs = waitAmongOld(bench, 1000, 30_000)
  assert.ok(atMs >= 1000 + times.cutBoundMs && atMs < 1000 + times.holdBoundMs, `went at ${atMs}`)
})

void test('one that changes layout again and again is not cut any more, but counted', () => {
  const bench = writing(5, 'cuts')
  let atMs = 1000
  for (let i = 0; i < 20; i++) {
    atMs = waitAmongOld(bench, atMs + 100, atMs + 20_000)
    answerLate(bench, 1)
  }
  assert.ok(atMs > 20 * times.cutBoundMs)
  const free = bench.do({ type: 'batch', batch: batch(4, [4]) }, atMs + 100)
  assert.deepEqual(named(free), ['to and fro', 'forward'])
})

void test('what is owed while the clock stands still is bounded, and as old as the oldest of it', () => {
  let ledger = reduceLedger(newLedger('i', 0), { type: 'connected', connection: '1', epoch: 0, boundMs: 1, atMs: 0 })
  ledger = reduceLedger(ledger, { type: 'stopped', reason: 'leader 1', atMs: 0 })
  for (let i = 0; i < 3000; i++) {
    ledger = reduceLedger(ledger, {
      type: 'refused',
      mark: `m${i}`,
      age: i === 0 ? 0 : 1,
      oldest: i === 0 ? 0 : 1,
      atMs: i,
    })
  }
  assert.ok(ledger.owed.length <= 500)
  assert.ok(owesOlder(ledger, 1, 3_600_000, times))
})

void test('what was sent long ago is forgotten once there is much of it', () => {
  let sent: Sent = {}
  for (let i = 0; i < 5000; i++) sent = noteSent(sent, `cut ${i}`, i * 1000)
  assert.ok(Object.keys(sent).length <= 101)
  assert.equal(sent['cut 4999'], 4_999_000)
})

void test('a withdrawal that was lost with its vote is repeated, and the vote follows', () => {
  const bench = new Bench().open(6, 'seal')
  assert.deepEqual(named(bench.view()), ['vote'])
  // The vote is lost, and so is the withdrawal for a batch that is gone again at once.
  assert.deepEqual(named(bench.do({ type: 'batch', batch: batch(1, [4]) })), ['withdrawal'])
  bench.guard = { ...bench.guard, held: [], ledgers: new Map() }
  const again = bench.do({ type: 'tick' }, 1000)
  assert.deepEqual(named(again), ['withdrawal'])
  assert.deepEqual(named(bench.loop(again)), ['vote'])
})

void test('instances that left long ago are forgotten, their layout only when all is settled', () => {
  const bench = writing(5, 'cuts')
  bench.do({ type: 'connected', instance: 'i', connection: '1' })
  bench.do({ type: 'batch', batch: batch(1, [4]) })
  bench.do({ type: 'lost', instance: 'i', connection: '1' })
  assert.deepEqual(forgetGone(bench.guard, times.goneAfterMs - 1, false).gone, [])
  assert.deepEqual(forgetGone(bench.guard, times.goneAfterMs, false).gone, [], 'a batch of it is unanswered')
  bench.do({ type: 'failed', id: [...bench.guard.flying.keys()][0] ?? '' })
  const { state, gone } = forgetGone(bench.guard, times.goneAfterMs, false)
  assert.deepEqual([gone, state.ledgers.size, state.cutting.size], [['i'], 0, 1])
  assert.equal(forgetGone(state, times.goneAfterMs, true).state.cutting.size, 0)
})
