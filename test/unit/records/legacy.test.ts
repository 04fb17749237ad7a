/** Message sets of magic 0 and 1 as Kafka's Java classes wrote them (test/fixtures/records/make/Legacy.java). */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { checkCrc, walkEntries } from '../../../src/records/batch.ts'
import { filterRecords } from '../../../src/records/filter.ts'
import { readRecords } from '../../../src/records/read.ts'
import { buildMessage, buildWrapper } from './legacy-build.ts'

const folder = new URL('../../fixtures/records/legacy/', import.meta.url)
const files = readdirSync(folder)
const limits = { maxInflatedBytes: 1 << 20 }

function written(file: string): { offset: number; timestamp: number; key: string | null; value: string }[] {
  const numbers = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
  return numbers.map((i) => ({
    offset: 100 + i,
    timestamp: file.startsWith('magic0')
      ? -1
      : file.includes('append-time')
        ? 1_700_000_009_999
        : 1_700_000_000_000 + i,
    key: i % 3 === 2 ? null : `key-${i}`,
    value: `value-${i}-${'x'.repeat(i * 7)}`,
  }))
}

function read(bytes: Buffer): ReturnType<typeof written> {
  return readRecords(bytes, limits.maxInflatedBytes).map(({ offset, timestamp, key, value }) => ({
    offset,
    timestamp,
    key: key?.toString() ?? null,
    value: value!.toString(),
  }))
}

test('both magics with every codec they had', () => {
  assert.equal(files.length, 9)
})

for (const file of files) {
  test(`${file}: read, filtered, passed on`, () => {
    const bytes = readFileSync(new URL(file, folder))
    assert.deepEqual(read(bytes), written(file))
    assert.deepEqual(filterRecords(bytes, 100, () => true, limits).slices, [bytes])
    const result = filterRecords(bytes, 104, (record) => record.offset % 2 === 0, limits)
    const out = Buffer.concat(result.slices)
    walkEntries(out, (at, end) => checkCrc(out, at, end))
    assert.deepEqual(
      read(out),
      written(file).filter(({ offset }) => offset % 2 === 0),
    )
    assert.deepEqual(
      [result.kept, result.survivors, result.withheld, result.lastOffset, result.nextOffset],
      [6, 4, 4, 110, 111],
    )
  })
}

test('wrappers that hold no set, another magic, or another wrapper are errors', () => {
  const message = { magic: 1 as const, offset: 1, timestamp: 1, value: Buffer.from('v') }
  const inner = { ...message, attributes: 1 }
  const code = (bytes: Buffer) => filterRecords(bytes, 0, () => true, limits).failure?.code
  assert.equal(code(buildMessage({ ...message, attributes: 1, value: null })), 'HG_RECORDS_CORRUPT')
  assert.equal(code(buildMessage({ ...message, attributes: 1 })), 'HG_RECORDS_CODEC')
  assert.equal(code(buildWrapper([message, { ...message, magic: 0 }], 1)), 'HG_RECORDS_CORRUPT')
  assert.equal(code(buildWrapper([inner], 1)), 'HG_RECORDS_CORRUPT')
  assert.equal(code(buildMessage({ ...message, attributes: 7 })), 'HG_RECORDS_CODEC')
})
