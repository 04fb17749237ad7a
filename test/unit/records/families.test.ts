/** Batches as the client families write them, from a real broker's log (test/fixtures/records/make/capture.ts). */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { AbortedBatches } from '../../../src/records/aborted.ts'
import { checkCrc, codecOf, codecs, isControl, walkEntries } from '../../../src/records/batch.ts'
import { type Keep, filterRecords } from '../../../src/records/filter.ts'
import { bucketOf } from '../../../src/records/hashes/buckets.ts'
import { type ReadRecord, readRecords } from '../../../src/records/read.ts'

interface Sent {
  readonly offset?: number
  readonly key: string | null
  readonly valueHash: string | null
  readonly headersHash: string
  readonly timestamp?: number
}

const folder = new URL('../../fixtures/records/batches/', import.meta.url)
const expected = JSON.parse(readFileSync(new URL('expected.json', folder), 'utf8')) as Record<string, Sent[]>
const limits = { maxInflatedBytes: 1 << 20 }
const families = ['java', 'librdkafka', 'kafkajs', 'franz-go', 'sarama', 'aiokafka', 'kafka-python', 'platformatic']

function hash(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex').slice(0, 16)
}

function seen(record: ReadRecord): Sent {
  const headers = record.headers.map(({ name, value }) =>
    Buffer.concat([Buffer.from(`${name}\0`), value!, Buffer.of(0)]),
  )
  return {
    offset: record.offset,
    key: record.key?.toString() ?? null,
    valueHash: record.value === null ? null : hash(record.value),
    headersHash: headers.length === 0 ? '' : hash(Buffer.concat(headers)),
    timestamp: record.timestamp,
  }
}

/** What a client does not tell of a record (aiokafka: the time) is not compared. */
function assertSame(records: readonly ReadRecord[], sent: readonly Sent[], appendTime: boolean): void {
  assert.equal(records.length, sent.length)
  records.forEach((record, i) => {
    const { timestamp, ...told } = sent[i]!
    const { timestamp: read, ...rest } = seen(record)
    assert.deepEqual({ ...rest, ...told }, rest)
    if (timestamp !== undefined && !appendTime) assert.equal(read, timestamp)
  })
}

test('every family is here with every codec', () => {
  for (const family of families) {
    for (const codec of Object.keys(codecs)) assert.ok(expected[`${family}-${codec}`], `${family} ${codec}`)
  }
})

for (const [name, sent] of Object.entries(expected)) {
  test(`${name}: read, filtered and passed on`, () => {
    const bytes = readFileSync(new URL(`${name}.bin`, folder))
    let batches = 0
    const codecsUsed = new Set<number>()
    const end = walkEntries(bytes, (at, end) => {
      batches++
      checkCrc(bytes, at, end)
      if (!isControl(bytes, at)) codecsUsed.add(codecOf(bytes, at))
    })
    assert.equal(end, bytes.length)
    assert.ok(batches > 0)
    const codec = codecs[name.slice(name.lastIndexOf('-') + 1) as keyof typeof codecs]
    if (codec !== undefined) assert.ok(codecsUsed.has(codec), 'no batch with the codec it is named after')

    const all = readRecords(bytes, limits.maxInflatedBytes)
    const data = all.filter((record) => !record.control)
    assertSame(data, sent, name === 'java-append-time')

    const half: Keep = (record) => bucketOf(record) < 0x8000
    const kept = data.filter((record) => {
      const key = record.key ?? Buffer.alloc(0)
      return half({
        bytes: key,
        offset: record.offset,
        keyStart: record.key === null ? -1 : 0,
        keyEnd: key.length,
        valueStart: -1,
        valueEnd: -1,
      })
    })
    assert.ok(kept.length > 0 && kept.length < data.length)
    const filtered = Buffer.concat(filterRecords(bytes, 0, half, limits).slices)
    assert.deepEqual(
      readRecords(filtered, limits.maxInflatedBytes).filter((record) => !record.control),
      kept,
    )
    assert.deepEqual(filterRecords(bytes, 0, () => true, limits).slices, [bytes])
  })
}

test("Java's transactions: markers are control records, and an aborted one is taken out", () => {
  const bytes = readFileSync(new URL('java-transactions.bin', folder))
  const all = readRecords(bytes, limits.maxInflatedBytes)
  const markers = all.filter((record) => record.control)
  assert.deepEqual(
    markers.map((record) => record.key!.readInt16BE(2)),
    [1, 0, 1, 1],
  )
  const abort = markers[1]!
  const aborted = new AbortedBatches([{ producerId: abort.producerId, firstOffset: markers[0]!.offset + 1 }])
  const result = filterRecords(bytes, 0, () => true, { ...limits, aborted })
  const left = readRecords(Buffer.concat(result.slices), limits.maxInflatedBytes).filter((record) => !record.control)
  const inside = (offset: number) => offset > markers[0]!.offset && offset < abort.offset
  assert.deepEqual(
    left,
    all.filter((record) => !record.control && !inside(record.offset)),
  )
  assert.equal(result.withheld, 3)
})

test('LogAppendTime: all records of a batch have its time', () => {
  const records = readRecords(readFileSync(new URL('java-append-time.bin', folder)), limits.maxInflatedBytes)
  assert.ok(new Set(records.map((record) => record.timestamp)).size < records.length)
  assert.ok(records.every((record) => record.timestamp > 1_700_000_001_000))
})
