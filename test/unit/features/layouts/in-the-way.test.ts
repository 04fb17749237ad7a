/** What is held for a cut lets what its client still has to send by the old layout go first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Batch, GuardEffect } from '../../../../src/features/layouts/guard-state.ts'
import { batch, Bench, named } from './guard-bench.ts'

const sequenced = (sequence: number): Partial<Batch> => ({
  mayRefuse: true,
  sequenced: { producerId: '7', producerEpoch: 0, sequence },
})
/** 4: partition 1 of three, 4 of five; 9 and 14 as well of five, 0 and 2 of three; 6: 0 of three, 1 of five. */
const old = (sequence: number, more: Partial<Batch> = {}): Batch => batch(1, [4], { ...sequenced(sequence), ...more })
const fresh = (sequence: number, more: Partial<Batch> = {}): Batch => batch(4, [9], { ...sequenced(sequence), ...more })
const idsOf = (effects: readonly GuardEffect[], type: 'forward' | 'refuse'): string[] =>
  effects.flatMap((effect) => (effect.type === type ? [effect.batch.id] : []))

/** A topic that went from three partitions to five, at a proxy that has voted. */
function grown(): Bench {
  const bench = new Bench().open(5, 'cuts')
  bench.loop(bench.view())
  return bench
}

/** The cut for what waits is recorded and read by both proxies. */
function cutNow(bench: Bench, ends: Readonly<Record<number, number>>): GuardEffect[] {
  const ask = bench.do({ type: 'tick' }, bench.atMs + 600).find((effect) => effect.type === 'read-ends')
  assert.ok(ask?.type === 'read-ends')
  const recorded = bench.do({ type: 'ends', round: ask.round, ends })
  const cut = recorded.find((effect) => effect.type === 'append' && effect.record.kind === 'cut')
  assert.ok(cut?.type === 'append' && cut.record.kind === 'cut')
  bench.loop(bench.loop(recorded))
  bench.write({ kind: 'cut-read', proxy: 'b', cut: cut.record.cut })
  return bench.view()
}

void test('the answer to an older batch does not wait behind a held one: that comes again', () => {
  const bench = grown()
  const [held, second, late] = [fresh(0), fresh(1), old(5)]
  assert.deepEqual(named(bench.do({ type: 'batch', batch: held }, 1000)), [])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: second }, 1010)), [])
  const effects = bench.do({ type: 'batch', batch: late }, 1020)
  assert.deepEqual(idsOf(effects, 'refuse'), [held.id, second.id])
})

void test('what is held at another broker, or may not be refused, stays', () => {
  const bench = grown()
  bench.do({ type: 'batch', batch: fresh(0, { connection: 'other' }) }, 1000)
  bench.do({ type: 'batch', batch: batch(3, [8]) }, 1000)
  const bound = fresh(0)
  bench.do({ type: 'batch', batch: bound }, 1000)
  bench.do({ type: 'bound', id: bound.id })
  assert.deepEqual(idsOf(bench.do({ type: 'batch', batch: old(5) }, 1020), 'refuse'), [])
})

void test('where nothing more fits on the connection all that is held comes again, so that what was refused can', () => {
  const bench = grown()
  const pushed = old(5, { isPushed: true })
  assert.deepEqual(named(bench.do({ type: 'batch', batch: pushed }, 990)), ['refuse'])
  const [first, second] = [fresh(0), fresh(1)]
  bench.do({ type: 'batch', batch: first }, 1000)
  bench.do({ type: 'batch', batch: second }, 1010)
  const last = fresh(2, { hasRoom: false })
  assert.deepEqual(idsOf(bench.do({ type: 'batch', batch: last }, 1020), 'refuse'), [first.id, second.id, last.id])
})

void test('beside an older batch that is not answered yet a new one is not held', () => {
  const bench = grown()
  assert.deepEqual(named(bench.loop(bench.do({ type: 'batch', batch: old(5) }, 1000))), ['forward'])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: fresh(0) }, 1000)), ['refuse'])
})

void test('a new batch behind a mixed one waits for a cut of its own, after it', () => {
  const bench = grown()
  const first = fresh(0)
  bench.do({ type: 'batch', batch: first }, 1000)
  assert.deepEqual(idsOf(cutNow(bench, { 0: 5, 1: 5, 2: 5, 3: 0, 4: 0 }), 'forward'), [first.id])
  bench.do({ type: 'answered', id: first.id, end: 1, lapsed: false })
  const mixed = batch(1, [4, 6], { ...sequenced(5), connection: 'other' })
  const behind = fresh(1)
  assert.deepEqual(named(bench.loop(bench.do({ type: 'batch', batch: mixed }, 3000))), [])
  assert.deepEqual(named(bench.do({ type: 'batch', batch: behind }, 3000)), [])
  const between = cutNow(bench, { 0: 5, 1: 5, 2: 5, 3: 0, 4: 1 })
  assert.deepEqual(idsOf(between, 'forward'), [mixed.id])
  bench.do({ type: 'answered', id: mixed.id, end: 7, lapsed: false })
  assert.deepEqual(idsOf(cutNow(bench, { 0: 5, 1: 7, 2: 5, 3: 0, 4: 1 }), 'forward'), [behind.id])
})
