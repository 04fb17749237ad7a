/** Every cell (API, version, direction): defaults survive the round trip, and the committed code is the generator's. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { apiKeys, apis } from '../../../src/protocol/api-table.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'

test('every API that a client may send has a codec for all its versions', () => {
  for (const api of apis) {
    const found = codec(api.key)
    assert.equal(found !== undefined, api.client, api.name)
    if (found === undefined) continue
    assert.deepEqual(
      [found.name, found.minVersion, found.maxVersion],
      [api.name, api.minVersion, api.maxVersion],
      `${api.name} agrees with the table`,
    )
  }
})

test('a message of defaults is the same after decoding and encoding', () => {
  for (const api of apis.filter((one) => one.client)) {
    const found = codec(api.key)
    assert.ok(found)
    for (let version = api.minVersion; version <= api.maxVersion; version++) {
      for (const side of ['Request', 'Response'] as const) {
        const writer = new Writer()
        found[`encode${side}`](writer, {}, version)
        const bytes = Buffer.from(writer.finish())
        const reader = new Reader(bytes)
        const value = found[`decode${side}`](reader, version)
        reader.expectEnd()
        writer.reset()
        found[`encode${side}`](writer, value, version)
        assert.deepEqual(writer.finish(), bytes, `${api.name} ${side} v${version}`)
      }
    }
  }
})

test('an error names message, field and offset', () => {
  const writer = new Writer()
  const fetch = codec(apiKeys.Fetch)
  fetch.encodeResponse(writer, { responses: [{ topic: 't', partitions: [{ highWatermark: 5 }] }] }, 4)
  const whole = writer.finish()
  const partitionAt = 4 + 4 + 3 + 4
  const failing = (run: () => unknown, code: string, field: string, offset: number) =>
    assert.throws(run, (error) => {
      assert.ok(error instanceof ProtocolError)
      assert.deepEqual(
        [error.code, error.field, error.offset],
        [code, `responses[].partitions[].${field}`, offset],
        error.message,
      )
      return error.subject === 'Fetch response v4'
    })
  const cut = () => fetch.decodeResponse(new Reader(whole, 0, partitionAt + 20), 4)
  failing(cut, 'HG_PROTOCOL_TRUNCATED', 'lastStableOffset', partitionAt + 14)
  whole.writeUInt8(0x7f, partitionAt + 6)
  failing(() => fetch.decodeResponse(new Reader(whole), 4), 'HG_PROTOCOL_INT64', 'highWatermark', partitionAt + 6)
})

test('a version outside the range, and a field that a version lacks, are refused', () => {
  const code = (expected: string) => (error: unknown) => error instanceof ProtocolError && error.code === expected
  const produce = codec(apiKeys.Produce)
  assert.throws(() => produce.decodeRequest(new Reader(Buffer.alloc(8)), 14), code('HG_PROTOCOL_VERSION'))
  assert.throws(() => produce.encodeRequest(new Writer(), {}, -1), code('HG_PROTOCOL_VERSION'))
  assert.throws(() => produce.encodeRequest(new Writer(), { transactionalId: 'x' }, 2), code('HG_PROTOCOL_VALUE'))
  assert.throws(() => produce.encodeRequest(new Writer(), { acks: 70000 }, 3), code('HG_PROTOCOL_VALUE'))
})

test('the generated code is what the generator writes', () => {
  const run = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/codegen.ts', '--check'], { encoding: 'utf8' })
  assert.equal(run.status, 0, run.stderr)
})
