/** Gates of groups that never commit, and what is told of gates that are shut. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layout } from '../../../../support/layout-states.ts'
import { Gated } from './gated.ts'
import { topicOf } from './set-state.ts'

void test('policies for groups that never commit: by position, after a time; both are counted', async () => {
  const byPosition = await Gated.start({ rules: [{ group: /g/, gate: 'position' }] })
  byPosition.log(0).append('ab')
  byPosition.log(1).append('xy')
  assert.deepEqual((await byPosition.fetch({ 0: 0, 1: 0 }, 500)).offsets, { 0: [0, 1], 1: [] })
  assert.deepEqual((await byPosition.fetch({ 0: 2, 1: 0 }, 500)).offsets, { 0: [], 1: [0, 1] })
  assert.deepEqual(byPosition.gates.counts.byPolicy, { position: 1, after: 0 })

  const after = await Gated.start({
    rules: [
      { group: /x/, gate: 'block' },
      { group: /g/, gate: 3000 },
    ],
  })
  after.log(0).append('ab')
  after.log(1).append('xy')
  const { offsets, tookMs } = await after.fetch({ 1: 0 }, 30_000)
  assert.deepEqual(offsets, { 1: [0, 1] })
  assert.ok(tookMs >= 3000 && tookMs < 4100)
  assert.deepEqual(after.gates.counts.byPolicy, { position: 0, after: 1 })
})

void test('no policy opens what waits for the seal', async () => {
  const topic = topicOf([layout(0, 1), layout(1, 2, { starts: { 1: 0 } })])
  for (const gate of ['position', 500] as const) {
    const gated = await Gated.start({ topic, rules: [{ group: /g/, gate }] })
    gated.log(1).append('xy')
    assert.deepEqual((await gated.fetch({ 0: 0, 1: 0 }, 3000)).offsets, { 0: [], 1: [] })
  }
})

void test('shut gates are shown with what they wait for, counted, and told of when it takes long', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  gated.cluster.commit('g', 0, 1)
  const sinceMs = gated.rig.runtime.wallNow()
  await gated.fetch({ 1: 0 }, 40_000)
  const [view, ...others] = gated.gates.gatesOf('g')
  assert.deepEqual(others, [])
  assert.ok(view !== undefined && Math.abs(view.sinceMs - sinceMs) < 100)
  const { sinceMs: _, ...rest } = view
  assert.deepEqual(rest, { topic: 't', partition: 1, from: 0, seal: 1, parent: 0, until: 2, committed: 1 })
  assert.deepEqual(gated.gates.shutGroups(), ['g'])
  const [held] = gated.gates.held()
  assert.ok(held?.topic === 't' && held.shut === 1 && held.heldSeconds > 39 && held.heldSeconds < 41)
  assert.deepEqual(
    gated.lines.map(({ level, fields }) => ({ level, ...fields })),
    [
      {
        level: 'warn',
        group: 'g',
        topic: 't',
        waits: ['partition 1 from 0 on (layout 1): for partition 0 up to 2, committed 1'],
      },
    ],
  )
  gated.cluster.commit('g', 0, 2)
  await gated.fetch({ 1: 0 }, 5000)
  await gated.pass(6000)
  assert.equal(gated.lines.at(-1)?.level, 'info')
  assert.deepEqual(gated.gates.gatesOf('g'), [])
})
