import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ownership } from '../../../../../src/features/layouts/control/ownership.ts'
import type { Exchange } from '../../../../../src/pipeline/exchange.ts'
import type { Instance } from '../../../../../src/pipeline/instance.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { codecRequest } from '../../../../support/codec-frames.ts'
import { peekBodyStart } from '../../../../../src/protocol/peek.ts'

test('of an instance that goes from group to group those used last are remembered', () => {
  const ownership = new Ownership()
  const instance = {} as Instance
  const beat = (groupId: string): void => {
    const bytes = codecRequest(apiKeys.ConsumerGroupHeartbeat, 0, 1, { groupId, memberId: 'm', memberEpoch: 1 })
    ownership.onRequest({
      apiKey: apiKeys.ConsumerGroupHeartbeat,
      apiVersion: 0,
      request: { bytes, at: 0, total: bytes.length, owned: true },
      requestBodyAt: () => peekBodyStart(bytes, 4, bytes.length),
      connection: { instance },
    } as unknown as Exchange)
  }
  for (let i = 0; i < 1500; i++) {
    beat(`group-${i}`)
    beat('used')
  }
  assert.equal(ownership.of(instance, 'group-0'), undefined)
  assert.equal(ownership.of(instance, 'group-1499')?.isServerSide, true)
  assert.equal(ownership.of(instance, 'used')?.isServerSide, true)
})
