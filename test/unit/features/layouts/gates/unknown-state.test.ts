/** Gates while the state of a topic is lost, not there yet, or about to change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layout } from '../../../../support/layout-states.ts'
import { Gated } from './gated.ts'
import { grown, topicOf } from './set-state.ts'

/** To two partitions. */
const proposal = {
  id: 'x',
  proxy: 'p',
  at: 1,
  atMs: 0,
  change: 'expand',
  to: 2,
  order: 'key',
  gates: 'seal',
  ready: {},
}

void test('hidden partitions are shut, also when the topic has no gates yet', async () => {
  const gated = await Gated.start({ topic: topicOf([layout(0, 1)], { proposal } as never) })
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  assert.deepEqual((await gated.fetch({ 0: 0, 1: 0 }, 300)).offsets, { 0: [0, 1], 1: [] })
  const aborted = await Gated.start({ topic: topicOf([layout(0, 1)]), count: 2 })
  aborted.log(1).append('xy')
  assert.deepEqual((await aborted.fetch({ 1: 0 }, 300)).offsets, { 1: [] })
})

void test('state that is lost in the middle of a Fetch: what was read before is not delivered after', async () => {
  const gated = await Gated.start()
  gated.log(0).append('ab')
  gated.log(1).append('xy')
  let go = (): void => undefined
  gated.stall = new Promise((resolve) => (go = resolve))
  const waiting = gated.fetch({ 0: 0 }, 1000)
  await gated.rig.run(() => gated.fetches.length > 0)
  gated.state.isLeased = false
  go()
  assert.deepEqual((await waiting).offsets, { 0: [] })
  gated.state.isLeased = true
  assert.deepEqual((await gated.fetch({ 0: 0 }, 1000)).offsets, { 0: [0, 1] })
})

void test('a topic at rest passes unopened, but not what arrives after the lease lapsed or a change was prepared', async () => {
  for (const change of ['lapse', 'gate', 'proposal'] as const) {
    const gated = await Gated.start({ topic: topicOf([layout(0, 2)]) })
    gated.log(1).append('ab')
    assert.deepEqual((await gated.fetch({ 1: 0 }, 5000)).offsets, { 1: [0, 1] })
    assert.equal(gated.fetches[0]?.maxWaitMs, 5000, 'the very request of the client')
    const waiting = gated.fetch({ 1: 2 }, 5000)
    await gated.pass(100)
    if (change === 'lapse') gated.state.isLeased = false
    else if (change === 'gate') gated.state.set(grown(7))
    else gated.state.set(topicOf([layout(0, 2)], { proposal } as never))
    gated.log(1).append('c')
    assert.deepEqual((await waiting).offsets, { 1: change === 'proposal' ? [2] : [] }, change)
  }
})

void test('without the state everything that may wait is shut, or passes by the last layout where that is wanted', async () => {
  const held = await Gated.start()
  held.log(0).append('ab')
  held.state.isLeased = false
  assert.deepEqual((await held.fetch({ 0: 0 }, 300)).offsets, { 0: [] })

  const passing = await Gated.start({ rule: { stateLoss: 'pass' } })
  passing.log(0).append('ab')
  passing.log(1).append('xy')
  await passing.fetch({ 1: 0 }, 300)
  passing.state.isLeased = false
  assert.deepEqual(
    (await passing.fetch({ 0: 0, 1: 0 }, 300)).offsets,
    { 0: [0, 1], 1: [] },
    'the limits that were known',
  )
  assert.equal(passing.gates.counts.stateLost.get('t'), 2)
})

void test('a topic that this proxy has not met yet waits, by name and by id', async () => {
  for (const version of [11, 16]) {
    const gated = await Gated.start({ version, topic: topicOf([layout(0, 2)]) })
    gated.isMet = false
    gated.log(1).append('ab')
    assert.deepEqual((await gated.fetch({ 1: 0 }, 500)).offsets, { 1: [] })
    gated.isMet = true
    assert.deepEqual((await gated.fetch({ 1: 0 }, 500)).offsets, { 1: [0, 1] })
  }
})
