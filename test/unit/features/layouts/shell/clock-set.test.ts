/** Somebody sets the wall clock in the middle of a change: what is waited for takes as long as ever. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CoordinatorState,
  newCoordinator,
  reduceCoordinator,
} from '../../../../../src/features/layouts/expansion.ts'
import { defaultTimes } from '../../../../../src/features/layouts/times.ts'
import type { Proposal } from '../../../../../src/state/topic-state.ts'
import { layout } from '../../../../support/layout-states.ts'
import { keysIn, LayoutsRig, teach } from '../../../../support/layouts-rig.ts'

test('clock set back: a batch that is held for a cut goes all the same', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, 'p')
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(5))
  assert.equal(await client.count(), 5)
  const [moved = ''] = keysIn([
    [3, 1],
    [5, 4],
  ])
  client.produce(1, [moved], 'old1')
  client.produce(1, [moved], 'old2')
  const fresh = client.produce(4, [moved], 'new')
  await rig.until(() => rig.guard().state.held.length === 1, 'it is held')
  rig.runtime.clockSetByMs = -3_600_000
  await rig.until(() => fresh.result() !== undefined, 'an answer', 10_000)
  assert.equal(fresh.result()?.errorCode, 0)
  await rig.stop()
})

test('clock set forward: the quiet before a seal is no shorter', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client(0, 'p')
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(6))
  assert.equal(await client.count(), 6)
  const from = rig.runtime.now()
  rig.runtime.clockSetByMs = 4000
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  const waitedMs = rig.runtime.now() - from
  assert.ok(waitedMs > 2900, `sealed after ${waitedMs} ms`)
  await rig.stop()
})

test('clock set back: what the coordinator asks in vain is asked again', () => {
  const proposal: Proposal = {
    id: 'x',
    at: 1,
    atMs: 0,
    proxy: 'a',
    change: 'expand',
    order: 'key',
    gates: 'seal',
    to: 6,
    ready: {},
  }
  const topic = { topicId: 'T', name: 't', layouts: [layout(0, 3)], cuts: [], proposal }
  const view = { topic, fleet: { members: {} }, position: 9 }
  let state: CoordinatorState = { ...newCoordinator('a', defaultTimes), isLeader: true, view }
  const asks = (atMs: number, wallMs: number): string[] => {
    const [next, effects] = reduceCoordinator(state, { type: 'tick', atMs, wallMs })
    state = next
    return effects.map(({ type }) => type)
  }
  assert.deepEqual(asks(1000, 1000), ['observe'])
  assert.deepEqual(asks(1001, 1001), [])
  assert.deepEqual(asks(1001 + defaultTimes.retryMs, -3_600_000), ['observe'])
})
