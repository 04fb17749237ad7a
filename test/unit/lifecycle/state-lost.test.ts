import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import type { MetadataResponse } from '../../../src/protocol/generated/03-metadata.ts'
import { LayoutsRig } from '../../support/layouts-rig.ts'

void test('without the state plain traffic goes on, and readiness, log and status say what is wrong', async () => {
  const rig = await LayoutsRig.start()
  rig.broker.cluster.createTopic('plain', 2)
  const [running] = rig.proxies
  const proxy = running?.proxy
  assert.deepEqual(proxy?.readiness(), { ready: true, reasons: [] })
  for (const apiKey of [apiKeys.Heartbeat, apiKeys.JoinGroup])
    rig.broker.cluster.controls.add(apiKey, () => ({ close: true }))
  await rig.until(() => proxy?.layoutParts?.state.mayAct() === false, 'the lease ends')
  const { ready, reasons } = proxy?.readiness() ?? { ready: false, reasons: [] }
  assert.equal(ready, true)
  assert.match(reasons.join(), /^topics with layouts wait, plain traffic goes on: cannot ask broker .* for Heartbeat/)
  assert.ok(running?.log.lines.some(({ level, message }) => level === 'warn' && message.startsWith('state lost')))
  const client = await rig.client()
  const answer = (await client.ask(apiKeys.Metadata, 9, { topics: [{ name: 'plain' }] })) as MetadataResponse
  assert.equal(answer.topics[0]?.partitions.length, 2)
  await rig.stop()
})
