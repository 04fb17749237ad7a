/** Bodies and frames in bytes of their own: sizes, headers, and that a later message does not touch an earlier one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import { requestBytes, requestFrame, responseBytes, responseFrame } from '../../../src/protocol/encode.ts'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import { decodeRequestHeader, decodeResponseHeader } from '../../../src/protocol/headers.ts'
import { Reader } from '../../../src/protocol/reader.ts'

const heartbeat = codec(apiKeys.Heartbeat)

test('a request frame is size, header and body', () => {
  const header = { apiKey: apiKeys.Heartbeat, apiVersion: 4, correlationId: 11, clientId: 'c' }
  const frame = requestFrame(header, heartbeat, { groupId: 'g', generationId: 3, memberId: 'm' })
  const reader = new Reader(frame)
  assert.equal(reader.int32(), frame.length - 4)
  assert.deepEqual(decodeRequestHeader(reader), header)
  assert.equal(heartbeat.decodeRequest(reader, 4).memberId, 'm')
  reader.expectEnd()
})

test('a response frame has the header of its API and version', () => {
  for (const [key, version] of [
    [apiKeys.Heartbeat, 3],
    [apiKeys.Heartbeat, 4],
    [apiKeys.ApiVersions, 4],
  ] as const) {
    const api = codec(key)
    const frame = responseFrame(12, api, { errorCode: 27 }, version)
    const reader = new Reader(frame)
    assert.equal(reader.int32(), frame.length - 4)
    assert.equal(decodeResponseHeader(reader, key, version).correlationId, 12)
    assert.equal(api.decodeResponse(reader, version).errorCode, 27)
    reader.expectEnd()
  }
})

test('bytes stay what they are when others are encoded, also after a failure and a huge message', () => {
  const first = requestBytes(heartbeat, { groupId: 'first' }, 4)
  const copy = Buffer.from(first)
  assert.throws(() => requestBytes(heartbeat, { groupId: 'x'.repeat(40_000) }, 4), ProtocolError)
  const fetch = codec(apiKeys.Fetch)
  const large = responseBytes(
    fetch,
    { responses: [{ topic: 't', partitions: [{ records: Buffer.alloc(3 << 20, 1) }] }] },
    4,
  )
  const small = responseBytes(heartbeat, { errorCode: 1 }, 0)
  assert.deepEqual(first, copy)
  assert.deepEqual(small, Buffer.from([0, 1]))
  assert.equal(
    fetch.decodeResponse(new Reader(large), 4).responses[0]?.partitions[0]?.records?.every((b) => b === 1),
    true,
  )
})
