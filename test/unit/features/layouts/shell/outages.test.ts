/**
 * The state topic, or the topic itself, is deleted in each phase of a change: whoever asked is told, no partition that was
 * shown is hidden again, and clients are served.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { currentLayout } from '../../../../../src/state/topic-state.ts'
import { LayoutsRig, teach, TOPIC } from '../../../../support/layouts-rig.ts'

const phases: readonly (readonly [name: string, isReached: (rig: LayoutsRig) => boolean])[] = [
  ['proposed', (rig) => rig.topic()?.proposal !== undefined],
  ['preparing', (rig) => rig.topic()?.proposal?.preparingAt !== undefined],
  ['open', (rig) => rig.topic()?.layouts[1] !== undefined],
  ['sealed', (rig) => rig.topic()?.layouts[1]?.seal !== undefined],
]

for (const victim of ['__headgate_state', TOPIC]) {
  for (const [phase, isReached] of phases) {
    test(`outages: ${victim} is deleted when a change is ${phase}`, async () => {
      const rig = await LayoutsRig.start({ proxies: 2, rule: { goneAfter: '5s' } })
      const client = await rig.client(1, 'p')
      await client.count()
      await teach(rig, client, 3)
      const outcome = rig.expand(6, 1)
      await rig.until(() => isReached(rig), phase)
      const shown = currentLayout(rig.topic() ?? assert.fail()).count
      const admin = await rig.client(0, 'admin')
      await admin.ask(apiKeys.DeleteTopics, 5, { topicNames: [victim], timeoutMs: 1000 })
      await rig.settled(outcome)
      if (victim === TOPIC) return rig.stop()
      const isBack = (): boolean => rig.topic()?.layouts.length === 1
      await rig.until(isBack, 'the state begins afresh')
      assert.equal(rig.topic()?.layouts[0]?.count, shown)
      const other = await rig.client(0, 'q')
      await rig.until(() => rig.topic()?.layouts.at(-1)?.count === 6, 'what is hidden is found', 40_000)
      await rig.until(
        () => rig.topic()?.layouts.at(-1)?.change === 'met' || rig.topic()?.layouts[1]?.seal !== undefined,
        'sealed',
      )
      assert.equal(await other.count(), 6)
      const sent = other.produce(0, ['a'], 'x')
      await rig.until(() => sent.result()?.errorCode === 0, 'a record is taken')
      await rig.stop()
    })
  }
}
