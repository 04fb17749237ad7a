/**
 * A group that reads through the gates while its topic grows, is cut, sealed, and its commits go on and back: whatever
 * happens, no record is delivered at or above a limit that an oracle works out anew from the state and the commits that
 * the proxy can know, and the limits that are kept are those that would be worked out now.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { gatesOf } from '../../../src/features/layouts/gate.ts'
import type { TopicState } from '../../../src/state/topic-state.ts'
import { checkAsync } from '../../support/property.ts'
import { layout, sealed } from '../../support/layout-states.ts'
import { Gated } from '../../unit/features/layouts/gates/gated.ts'
import { topicOf } from '../../unit/features/layouts/gates/set-state.ts'

const ends = fc.tuple(fc.nat(8), fc.nat(8), fc.nat(8), fc.nat(8))
const record = (offsets: readonly number[], count: number): Record<number, number> =>
  Object.fromEntries(offsets.slice(0, count).map((offset, q) => [q, offset]))

/** One to three layouts: by seals, by cuts, sealed or not. */
const topic: fc.Arbitrary<TopicState> = fc
  .record({
    counts: fc.constantFrom([1], [1, 2], [2, 4], [1, 2, 4], [2, 3], [3, 1]),
    seals: fc.tuple(fc.boolean(), fc.boolean()),
    boundaries: fc.tuple(ends, ends),
    start: fc.nat(3),
    cuts: fc.array(ends, { maxLength: 2 }),
  })
  .map(({ counts, seals, boundaries, start, cuts }) => {
    const layouts = counts.map((count, epoch) => {
      const before = counts[epoch - 1] ?? count
      const isSeal = epoch > 0 && count % before === 0
      const starts = Object.fromEntries(
        Array.from({ length: Math.max(0, count - before) }, (_, i) => [before + i, isSeal ? start : 0]),
      )
      const seal = epoch > 0 && seals[epoch - 1] === true ? sealed(record(boundaries[epoch - 1] ?? [], before)) : {}
      return layout(epoch, count, { gates: isSeal || epoch === 0 ? 'seal' : 'cuts', starts, ...seal })
    })
    const isCut = layouts.some(({ gates }) => gates === 'cuts')
    const made = isCut ? cuts : []
    return topicOf(layouts, {
      cuts: made.map((offsets, index) => ({
        id: `c${index}`,
        proxy: 'p',
        at: 50 + index,
        atMs: 0,
        layouts: layouts.map(({ epoch }) => epoch),
        ends: record(offsets, Math.max(...counts)),
        readers: {},
      })),
    })
  })

type Step =
  | { kind: 'view'; topic: TopicState }
  | { kind: 'commit'; q: number; offset: number }
  | { kind: 'wait'; ms: number }
  | { kind: 'lapse' }
  | { kind: 'rejoin' }
  | { kind: 'fetch'; positions: Record<number, number> }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: topic.map((each): Step => ({ kind: 'view', topic: each })) },
  {
    weight: 4,
    arbitrary: fc.record({ q: fc.nat(3), offset: fc.nat(8) }).map((each): Step => ({ kind: 'commit', ...each })),
  },
  { weight: 2, arbitrary: fc.nat(1500).map((ms): Step => ({ kind: 'wait', ms })) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'lapse' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'rejoin' }) },
  {
    weight: 5,
    arbitrary: fc
      .dictionary(fc.constantFrom('0', '1', '2', '3'), fc.nat(8), { minKeys: 1 })
      .map((positions): Step => ({ kind: 'fetch', positions })),
  },
)

void test('nothing is delivered at or above a limit, and what is kept of limits is never out of date', async () => {
  await checkAsync(
    fc.asyncProperty(topic, fc.array(step, { minLength: 3, maxLength: 14 }), async (first, steps) => {
      const gated = await Gated.start({ topic: first, count: 4 })
      for (const q of [0, 1, 2, 3]) gated.log(q).append('ab').append('c').append('def').append('gh')
      // A group passes what it had passed at some time since the proxy last learned that it may have gone back.
      let passed = [0, 0, 0, 0]
      let generation = 1
      for (const each of steps) {
        if (each.kind === 'view') gated.state.set(each.topic)
        else if (each.kind === 'commit') {
          gated.cluster.commit('g', each.q, each.offset)
          passed[each.q] = Math.max(passed[each.q] ?? 0, each.offset)
        } else if (each.kind === 'wait') await gated.pass(each.ms)
        else if (each.kind === 'lapse') gated.state.isLeased = !gated.state.isLeased
        else if (each.kind === 'rejoin') {
          gated.rejoin('g', ++generation)
          passed = [0, 1, 2, 3].map((q) => gated.cluster.commits.get('g')?.get(q) ?? 0)
        } else await fetch(gated, each.positions, passed)
      }
    }),
    150,
  )
})

async function fetch(gated: Gated, positions: Record<number, number>, passed: readonly number[]): Promise<void> {
  const { offsets } = await gated.fetch(positions, 600)
  const state = gated.state.topic as TopicState
  const isDone = (q: number, end: number): boolean => (passed[q] ?? 0) >= end || gated.log(q).end <= (passed[q] ?? 0)
  const { limits } = gatesOf(state, isDone)
  for (const [name, found] of Object.entries(offsets)) {
    const limit = gated.state.isLeased ? (limits[Number(name)] ?? -1) : -1
    const above = found.filter((offset) => offset >= limit)
    assert.deepEqual(above, [], `partition ${name} at or above ${limit}`)
  }
  const gates = gated.gates.known('g')?.topics.get(state.topicId)
  if (gates === undefined || !gated.state.isLeased) return
  assert.deepEqual(
    limits.map((_, q) => gates.limit(state, q)),
    gatesOf(state, gates.progress.done).limits,
  )
}
