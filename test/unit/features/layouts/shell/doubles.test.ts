/** Two producers with one client id on one address are one instance: what that may cost is counted, never silent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysIn, LayoutsRig, teach } from '../../../../support/layouts-rig.ts'

/** A topic went from 3 to 6: of two producers that wrote by 3, the first was shown 6. */
async function grown(one: string, other: string) {
  const rig = await LayoutsRig.start()
  const [first, second] = [await rig.client(0, one), await rig.client(0, other)]
  for (const client of [first, second]) {
    await client.count()
    await teach(rig, client, 3)
  }
  const outcome = rig.expand(6)
  await rig.until(() => rig.topic()?.layouts.length === 2, 'the new layout is open')
  await rig.settled(outcome)
  assert.equal(await first.count(), 6)
  return { rig, second }
}

test('doubles: one producer is shown the new layout, the other one of its name writes by the old: counted', async () => {
  const { rig, second } = await grown('same', 'same')
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed')
  const [moved = ''] = keysIn([
    [3, 1],
    [6, 4],
  ])
  const late = second.produce(1, [moved], 'late')
  await rig.until(() => late.result() !== undefined, 'the late batch is answered')
  assert.equal(late.result()?.errorCode, 0)
  const counted = rig.guard().facts.counted
  assert.deepEqual(Object.keys(counted).sort(), ['late above the boundary', 'late after the seal'])
  await rig.stop()
})

test('doubles: with client ids of their own the change waits for both', async () => {
  const { rig } = await grown('one', 'two')
  await rig.pause(20_000)
  assert.equal(rig.topic()?.layouts[1]?.seal, undefined)
  await rig.stop()
})
