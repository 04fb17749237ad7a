import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatesOf } from '../../../../src/features/layouts/gate.ts'
import type { Cut, Layout, TopicState } from '../../../../src/state/topic-state.ts'
import { layout, sealed as seal } from '../../../support/layout-states.ts'

const cut = (at: number, layouts: number[], ends: Record<number, number>): Cut => {
  return { id: `c${at}`, proxy: 'a', at, atMs: 0, layouts, ends, readers: {} }
}
const topic = (layouts: Layout[], cuts: Cut[] = []): TopicState => ({ topicId: 'T', name: 't', layouts, cuts })
const committed =
  (...offsets: number[]) =>
  (q: number, end: number) =>
    (offsets[q] ?? 0) >= end

void test('fresh partitions wait at their start for the seal, then for the parent at its boundary', () => {
  const growing = [layout(0, 3), layout(1, 6, { starts: { 3: 0, 4: 2, 5: 0 } })]
  assert.deepEqual(gatesOf(topic(growing), committed(9, 9, 9)).limits, [Infinity, Infinity, Infinity, 0, 2, 0])
  const grown = [layout(0, 3), layout(1, 6, { starts: { 3: 0, 4: 2, 5: 0 }, ...seal({ 0: 5, 1: 5, 2: 5 }) })]
  const { limits, waits } = gatesOf(topic(grown), committed(5, 4, 6))
  assert.deepEqual(limits, [Infinity, Infinity, Infinity, Infinity, 2, Infinity])
  assert.deepEqual(waits, [{ partition: 4, from: 2, seal: 1, parent: 1, until: 5 }])
})

void test('gates are chained over two expansions, even through a partition without a record', () => {
  const chain = [
    layout(0, 1),
    layout(1, 2, { starts: { 1: 0 }, ...seal({ 0: 8 }) }),
    layout(2, 4, { starts: { 2: 0, 3: 0 }, ...seal({ 0: 9, 1: 0 }) }),
  ]
  // Partition 1 is empty, so it is done trivially; keys of 3 may still lie in 0 below 8.
  assert.equal(gatesOf(topic(chain), committed(7, 0)).limits[3], 0)
  assert.equal(gatesOf(topic(chain), committed(8, 0)).limits[3], Infinity)
})

void test('a cut gates every partition that shares keys with another under two of its layouts', () => {
  const layouts = [layout(0, 2), layout(1, 3, { gates: 'cuts', starts: { 2: 0 } })]
  const cuts = [cut(15, [0, 1], { 0: 4, 1: 6, 2: 0 })]
  assert.deepEqual(gatesOf(topic(layouts, cuts), committed(4, 5)).limits, [4, Infinity, 0])
  assert.deepEqual(gatesOf(topic(layouts, cuts), committed(4, 6)).limits, [Infinity, Infinity, Infinity])
})

void test('with a multiple a cut makes only kin wait', () => {
  const layouts = [layout(0, 2), layout(1, 4, { gates: 'cuts', starts: { 2: 0, 3: 0 } })]
  const cuts = [cut(15, [0, 1], { 0: 4, 1: 6, 2: 0, 3: 0 })]
  assert.deepEqual(gatesOf(topic(layouts, cuts), committed(0, 6)).limits, [Infinity, Infinity, 0, Infinity])
})

void test('two cuts never wait for each other: one of them always lets somebody go on', () => {
  const layouts = [layout(0, 2), layout(1, 3, { gates: 'cuts', starts: { 2: 0 } })]
  const cuts = [cut(15, [0, 1], { 0: 4, 1: 6, 2: 0 }), cut(16, [0, 1], { 0: 9, 1: 8, 2: 3 })]
  const offsets = [0, 0, 0]
  const ends = [12, 12, 12]
  for (let step = 0; step < 20; step++) {
    const { limits } = gatesOf(topic(layouts, cuts), committed(...offsets))
    offsets.forEach((offset, p) => (offsets[p] = Math.max(offset, Math.min(limits[p] ?? 0, ends[p] ?? 0))))
  }
  assert.deepEqual(offsets, ends)
})

void test('partitions that waited for a seal are left out of a cut and wait for the seal only', () => {
  const layouts = [layout(0, 2), layout(1, 4, { starts: { 2: 0, 3: 0 } })]
  const cuts = [cut(15, [0, 1], { 0: 4, 1: 6 })]
  assert.deepEqual(gatesOf(topic(layouts, cuts), committed(0, 0)).limits, [Infinity, Infinity, 0, 0])
})
