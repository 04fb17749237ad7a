/** Peeks into hand-made frames; the property test compares them with the full decoders. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { encodeRequestHeader } from '../../../src/protocol/headers.ts'
import {
  peekAcks,
  peekApiKey,
  peekApiVersion,
  peekBodyStart,
  peekClientId,
  peekCorrelationId,
  peekGroup,
  peekLeavingMembers,
  unknownPosition,
} from '../../../src/protocol/peek.ts'
import { Writer } from '../../../src/protocol/writer.ts'

test('the fixed header, client id and body start', () => {
  for (const apiVersion of [8, 9]) {
    const writer = new Writer()
    writer.raw(Buffer.alloc(3)) // the frame may start anywhere in a chunk
    const unknownTags = apiVersion === 9 ? [{ tag: 200, data: Buffer.alloc(300) }] : []
    encodeRequestHeader(writer, { apiKey: 0, apiVersion, correlationId: 77, clientId: 'é', unknownTags })
    const bodyAt = writer.at
    const buffer = writer.finish()
    assert.equal(peekApiKey(buffer, 3), 0)
    assert.equal(peekApiVersion(buffer, 3), apiVersion)
    assert.equal(peekCorrelationId(buffer, 3), 77)
    assert.equal(peekClientId(buffer, 3, bodyAt), 'é')
    assert.equal(peekBodyStart(buffer, 3, bodyAt), bodyAt)
    for (let end = 3; end < bodyAt; end++) assert.equal(peekBodyStart(buffer, 3, end), unknownPosition)
  }
})

test('acks behind a transactional id of any length', () => {
  for (const version of [0, 3, 9, 13]) {
    for (const transactionalId of version === 0
      ? [null]
      : [null, '', 'tx', 'x'.repeat(126), 'y'.repeat(127), 'z'.repeat(300)]) {
      const writer = new Writer()
      if (version >= 9) writer.compactNullableString(transactionalId)
      else if (version >= 3) writer.nullableString(transactionalId)
      writer.int16(-1)
      const buffer = writer.finish()
      assert.equal(peekAcks(buffer, 0, version, buffer.length), -1)
      for (let end = 0; end < buffer.length; end++) assert.equal(peekAcks(buffer, 0, version, end), undefined)
    }
  }
})

test('a length that points far outside is not followed', () => {
  assert.equal(peekAcks(Buffer.from('ffffffff0f0000', 'hex'), 0, 9, 7), undefined)
  assert.equal(peekAcks(Buffer.from('7fff0000', 'hex'), 0, 3, 4), undefined)
  assert.equal(peekGroup(apiKeys.Heartbeat, 4, Buffer.from('ff', 'hex'), 0, 1), undefined)
  assert.equal(peekGroup(apiKeys.Metadata, 4, Buffer.alloc(9), 0, 9), undefined)
})

test('a batched LeaveGroup names its members', () => {
  const writer = new Writer()
  writer.compactString('g')
  writer.uvarint(3)
  for (const [memberId, instanceId] of [
    ['m1', null],
    ['', 'static'],
  ] as const) {
    writer.compactString(memberId)
    writer.compactNullableString(instanceId)
    writer.compactNullableString('closing')
    writer.unknownTags(undefined)
  }
  writer.unknownTags(undefined)
  const buffer = writer.finish()
  assert.deepEqual(peekLeavingMembers(5, buffer, 0, buffer.length), [
    { memberId: 'm1', instanceId: null },
    { memberId: '', instanceId: 'static' },
  ])
  assert.deepEqual(peekGroup(apiKeys.LeaveGroup, 5, buffer, 0, buffer.length), {
    groupId: 'g',
    memberId: 'm1',
    generation: -1,
    instanceId: null,
  })
})
