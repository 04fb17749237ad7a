import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { LayoutsRig } from '../../../../support/layouts-rig.ts'

const GROUP = 0
const TRANSACTION = 1

test('while a topic shrinks, who looks for a group is shown all partitions before it joins; producers are not', async () => {
  const rig = await LayoutsRig.start({ count: 6 })
  const control = rig.proxies[0]?.proxy.layoutParts?.feature.control
  const change = control?.all()[0]?.change({ change: 'shrink', to: 3, any: false })
  assert.ok(change)
  control?.wake()
  await rig.settled(change)
  await rig.until(() => rig.topic()?.layouts[1]?.announcedAt !== undefined, 'the shrink is announced')
  const seek = async (clientId: string, keyType: number, produces = false) => {
    const client = await rig.client(0, clientId)
    if (produces) await client.ask(apiKeys.InitProducerId, 4, { transactionalId: null, transactionTimeoutMs: 1000 })
    await client.ask(apiKeys.FindCoordinator, 3, { key: 'g', keyType })
    return client.count()
  }
  const fresh = await rig.client(0, 'fresh')
  assert.equal(await fresh.count(), 3)
  assert.equal(await seek('consumer', GROUP), 6)
  assert.equal(await seek('transactional', TRANSACTION), 3)
  assert.equal(await seek('both', GROUP, true), 3)
  await rig.stop()
})
