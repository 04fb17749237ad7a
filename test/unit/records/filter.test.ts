import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AbortedBatches } from '../../../src/records/aborted.ts'
import { checkCrc, codecs, readHeader, walkEntries } from '../../../src/records/batch.ts'
import { buildBatch, buildMarker } from '../../../src/records/build.ts'
import { controlTypes } from '../../../src/records/control.ts'
import { type FilteredRecords, type Keep, filterRecords } from '../../../src/records/filter.ts'
import { readRecords } from '../../../src/records/read.ts'
import { buildMessage, buildWrapper } from './legacy-build.ts'

const limits = { maxInflatedBytes: 1 << 20 }
const all: Keep = () => true
const even: Keep = (record) => record.offset % 2 === 0

function ten(baseOffset: number, extra: object = {}): Buffer {
  const records = Array.from({ length: 10 }, (_, i) => ({
    key: Buffer.from(`k${baseOffset + i}`),
    value: Buffer.from(`v${i}`),
    headers: [{ name: 'n', value: Buffer.of(i) }],
    timestamp: 1000 + i,
  }))
  return buildBatch({ baseOffset, leaderEpoch: 3, records, ...extra })
}

function joined(result: FilteredRecords): Buffer {
  const bytes = Buffer.concat(result.slices)
  assert.equal(bytes.length, result.sizeBytes)
  walkEntries(bytes, (at, end) => checkCrc(bytes, at, end))
  return bytes
}

function offsets(result: FilteredRecords): number[] {
  return readRecords(joined(result), 1 << 20).map((record) => record.offset)
}

test('when everything stays the slice is the input itself, without its partial end', () => {
  const bytes = Buffer.concat([ten(0), ten(10, { codec: codecs.gzip }), ten(20)])
  const result = filterRecords(bytes.subarray(0, bytes.length - 1), 0, all, limits)
  assert.equal(result.slices.length, 1)
  const [slice] = result.slices
  assert.equal(slice?.buffer, bytes.buffer)
  assert.equal(slice?.byteOffset, bytes.byteOffset)
  assert.deepEqual(
    offsets(result),
    Array.from({ length: 20 }, (_, i) => i),
  )
  assert.deepEqual([result.kept, result.withheld, result.lastOffset, result.nextOffset], [20, 0, 19, 20])
  assert.equal(result.partialBatchBytes, ten(20).length)
})

test('a batch that loses records keeps all but count, length, CRC and codec', () => {
  for (const codec of [codecs.none, codecs.gzip, codecs.snappy, codecs.lz4, codecs.zstd]) {
    const extra = {
      codec,
      producerId: 12,
      producerEpoch: 1,
      baseSequence: 77,
      transactional: true,
      logAppendTime: true,
    }
    const bytes = ten(40, { ...extra, maxTimestamp: 5000, lastOffsetDelta: 14 })
    const result = filterRecords(bytes, 40, (record) => record.offset === 43 || record.offset > 46, limits)
    const out = joined(result)
    const before = readHeader(bytes, 0)
    assert.deepEqual(readHeader(out, 0), {
      ...before,
      codec: codecs.none,
      sizeBytes: out.length,
      crc: out.readUInt32BE(17),
      recordCount: 4,
    })
    const survivors = readRecords(bytes, 1 << 20).filter(({ offset }) => offset === 43 || offset > 46)
    assert.deepEqual(readRecords(out, 1 << 20), survivors)
    assert.deepEqual([result.kept, result.survivors, result.withheld], [4, 4, 6])
    assert.deepEqual([result.lastKeptOffset, result.lastOffset, result.nextOffset], [49, 54, 55])
  }
})

test('a batch that loses all disappears; its neighbours stay as they are', () => {
  const bytes = Buffer.concat([ten(0), ten(10), ten(20)])
  const result = filterRecords(bytes, 0, (record) => record.offset < 10 || record.offset >= 20, limits)
  assert.equal(result.slices.length, 2)
  assert.ok(result.slices.every((slice) => slice.buffer === bytes.buffer))
  assert.equal(result.kept, 20)
  const none = filterRecords(bytes, 0, () => false, limits)
  assert.deepEqual(none.slices, [])
  assert.deepEqual([none.lastOffset, none.nextOffset, none.withheld, none.lastKeptOffset], [29, 30, 30, -1])
})

test('survivors below the fetch offset are no news', () => {
  const result = filterRecords(ten(0), 7, (record) => record.offset === 2 || record.offset === 7, limits)
  assert.deepEqual([result.kept, result.survivors], [2, 1])
  const behind = filterRecords(ten(0), 8, even, limits)
  assert.deepEqual([behind.kept, behind.survivors], [5, 1])
  assert.equal(filterRecords(ten(0), 9, even, limits).survivors, 0)
})

test('null and empty keys are told apart', () => {
  const bytes = buildBatch({ records: [{ key: null }, { key: Buffer.alloc(0) }, { key: Buffer.from('x') }] })
  const seen: [number, number][] = []
  filterRecords(
    bytes,
    0,
    (record) => seen.push([record.keyStart < 0 ? -1 : record.keyEnd - record.keyStart, record.offset]) > 0,
    limits,
  )
  assert.deepEqual(seen, [
    [-1, 0],
    [0, 1],
    [1, 2],
  ])
})

test('control batches pass whatever keep says, and are not counted', () => {
  const marker = buildMarker({ type: controlTypes.commit, producerId: 1, producerEpoch: 0, baseOffset: 10 })
  const result = filterRecords(Buffer.concat([ten(0), marker]), 0, () => false, limits)
  assert.deepEqual(result.slices, [marker])
  assert.deepEqual([result.kept, result.survivors, result.withheld, result.nextOffset], [0, 0, 10, 11])
})

test('a batch that compaction emptied is taken out: nothing in it could move a client', () => {
  const empty = buildBatch({ baseOffset: 5, lastOffsetDelta: 4, records: [], producerId: 3, producerEpoch: 0 })
  const result = filterRecords(Buffer.concat([empty, ten(10)]), 5, all, limits)
  assert.deepEqual(
    offsets(result),
    Array.from({ length: 10 }, (_, i) => 10 + i),
  )
  assert.equal(filterRecords(empty, 5, all, limits).nextOffset, 10)
})

test('aborted transactions are taken out as a read_committed consumer would', () => {
  const txn = (baseOffset: number, producerId: number) =>
    ten(baseOffset, { producerId, producerEpoch: 0, baseSequence: 0, transactional: true })
  const marker = (type: number, baseOffset: number, producerId: number) =>
    buildMarker({ type, producerId, producerEpoch: 0, baseOffset })
  const bytes = Buffer.concat([
    txn(0, 1),
    txn(10, 2),
    ten(20),
    marker(controlTypes.abort, 30, 1),
    txn(31, 1),
    marker(controlTypes.commit, 41, 2),
    marker(controlTypes.commit, 42, 1),
    txn(43, 2),
    marker(controlTypes.abort, 53, 2),
  ])
  const aborted = new AbortedBatches([
    { producerId: 2, firstOffset: 43 },
    { producerId: 1, firstOffset: 0 },
  ])
  const result = filterRecords(bytes, 0, all, { ...limits, aborted })
  const data = readRecords(joined(result), 1 << 20).filter((record) => !record.control)
  const range = (from: number) => Array.from({ length: 10 }, (_, i) => from + i)
  assert.deepEqual(
    data.map((record) => record.offset),
    [...range(10), ...range(20), ...range(31)],
  )
  assert.equal(result.withheld, 20)
})

test('an end offset cuts like the end of the log: positions do not move past it', () => {
  const bytes = Buffer.concat([ten(0), ten(10), ten(20)])
  const result = filterRecords(bytes, 0, all, { ...limits, endOffset: 14 })
  assert.deepEqual(
    offsets(result),
    Array.from({ length: 14 }, (_, i) => i),
  )
  assert.equal(readHeader(joined(result), ten(0).length).lastOffset, 13)
  assert.deepEqual([result.lastOffset, result.nextOffset], [13, 14])
  const atBoundary = filterRecords(bytes, 0, all, { ...limits, endOffset: 10 })
  assert.deepEqual([atBoundary.slices.length, atBoundary.nextOffset, atBoundary.withheld], [1, 10, 0])
  assert.equal(atBoundary.slices[0]?.buffer, bytes.buffer)
  const nothing = filterRecords(bytes, 0, all, { ...limits, endOffset: 0 })
  assert.deepEqual([nothing.slices.length, nothing.nextOffset, nothing.lastOffset], [0, 0, -1])
  const wide = ten(0, { lastOffsetDelta: 20 })
  assert.equal(readHeader(joined(filterRecords(wide, 0, all, { ...limits, endOffset: 15 })), 0).lastOffset, 14)
})

test('what lies in front of a broken batch is given, and the failure says where it is', () => {
  const bytes = Buffer.concat([ten(0), ten(10), ten(20)])
  const size = ten(0).length
  bytes[size + 70]! ^= 1
  const result = filterRecords(bytes, 0, all, limits)
  assert.deepEqual(
    offsets(result),
    Array.from({ length: 10 }, (_, i) => i),
  )
  assert.equal(result.failure?.code, 'HG_RECORDS_CRC')
  assert.equal(result.failure?.at, size)
  assert.equal(result.nextOffset, 10)
})

test('an error of keep is not taken for one of the bytes', () => {
  const boom = new Error('boom')
  assert.throws(
    () =>
      filterRecords(
        ten(0),
        0,
        () => {
          throw boom
        },
        limits,
      ),
    boom,
  )
})

test('inflating beyond the limit is a failure of that batch', () => {
  const big = buildBatch({ codec: codecs.gzip, records: [{ value: Buffer.alloc(100_000) }] })
  const result = filterRecords(big, 0, all, { maxInflatedBytes: 50_000 })
  assert.equal(result.failure?.code, 'HG_RECORDS_TOO_LARGE')
  assert.equal(result.failure?.at, 0)
})

test('bombs in a row: a call inflates one of them too many at most, and gives no more than asked for', () => {
  const bomb = (baseOffset: number) =>
    buildBatch({
      baseOffset,
      codec: codecs.gzip,
      records: Array.from({ length: 10 }, () => ({ value: Buffer.alloc(9_000) })),
    })
  const bytes = Buffer.concat(Array.from({ length: 20 }, (_, i) => bomb(10 * i)))
  const none = filterRecords(bytes, 0, () => false, { maxInflatedBytes: 100_000 })
  assert.deepEqual([none.withheld, none.nextOffset, none.readBytes], [20, 20, 2 * bomb(0).length])
  const half = filterRecords(bytes, 0, even, { maxInflatedBytes: 1 << 20, maxBytes: 50_000 })
  assert.deepEqual([half.kept, half.nextOffset], [6, 12])
  assert.ok(half.sizeBytes < 60_000)
})

test('a batch that grows beyond what was asked for is given in parts, each record once', () => {
  for (const codec of [codecs.gzip, codecs.snappy, codecs.lz4, codecs.zstd]) {
    const records = Array.from({ length: 1000 }, () => ({ value: Buffer.alloc(1000) }))
    const bytes = Buffer.concat([ten(90), buildBatch({ baseOffset: 100, codec, records, lastOffsetDelta: 1004 })])
    const given: number[] = []
    let [position, withheld, parts] = [100, 0, 0]
    for (; position < 1105; parts++) {
      const part = filterRecords(bytes, position, even, { maxInflatedBytes: 4 << 20, maxBytes: 20_000 })
      assert.equal(part.failure, undefined)
      assert.ok(part.sizeBytes <= Math.max(bytes.length, 20_000) + 1500, `${part.sizeBytes} bytes`)
      assert.ok(part.nextOffset > position && part.survivors > 0)
      given.push(...offsets(part).filter((offset) => offset >= position))
      withheld += part.withheld
      position = part.nextOffset
    }
    assert.deepEqual(
      given,
      Array.from({ length: 500 }, (_, i) => 100 + 2 * i),
    )
    assert.equal(position, 1105)
    // The writers of this Node may store zeros as they are: then nothing grows.
    assert.ok(parts > 5 || bytes.length > 100_000, `codec ${codec}: ${parts} parts`)
    if (codec === codecs.gzip) assert.ok(bytes.length < 20_000)
    assert.ok(withheld >= 500)
  }
})

test('a batch that loses nothing stays compressed, however large it is inside', () => {
  const records = Array.from({ length: 1000 }, () => ({ value: Buffer.alloc(1000) }))
  const bytes = buildBatch({ codec: codecs.gzip, records })
  const result = filterRecords(bytes, 0, all, { maxInflatedBytes: 4 << 20, maxBytes: 20_000 })
  assert.deepEqual([result.kept, result.sizeBytes], [1000, bytes.length])
})

test('a record that is larger than what was asked for is given alone', () => {
  const values = [10, 50_000, 10].map((size) => ({ value: Buffer.alloc(size) }))
  const bytes = buildBatch({ codec: codecs.gzip, records: [...values, { value: Buffer.alloc(10) }] })
  const keep: Keep = ({ offset }) => offset !== 3
  const limited = { maxInflatedBytes: 1 << 20, maxBytes: 1000 }
  const parts = [0, 1, 2].map((from) => filterRecords(bytes, from, keep, limited))
  assert.deepEqual(
    parts.map((part) => [offsets(part), part.nextOffset]),
    [
      [[0], 1],
      [[1], 2],
      [[2], 4],
    ],
  )
})

for (const magic of [0, 1] as const) {
  const messages = Array.from({ length: 6 }, (_, i) => ({
    magic,
    offset: 50 + i,
    timestamp: 100 + i,
    key: i === 2 ? null : Buffer.from(`k${i}`),
    value: i === 3 ? null : Buffer.from(`v${i}`),
  }))
  const seen = messages.map(({ offset, timestamp, key, value }) => ({
    offset,
    timestamp: magic === 1 ? timestamp : -1,
    key,
    value,
  }))
  const read = (bytes: Buffer) =>
    readRecords(bytes, 1 << 20).map(({ offset, timestamp, key, value }) => ({ offset, timestamp, key, value }))

  test(`magic ${magic}: messages are read and filtered one by one`, () => {
    const bytes = Buffer.concat(messages.map(buildMessage))
    assert.deepEqual(read(bytes), seen)
    const result = filterRecords(bytes, 50, even, limits)
    assert.deepEqual(
      read(joined(result)),
      seen.filter(({ offset }) => offset % 2 === 0),
    )
    assert.deepEqual([result.kept, result.withheld, result.lastOffset, result.nextOffset], [3, 3, 55, 56])
    assert.ok(result.slices.every((slice) => slice.buffer === bytes.buffer))
  })

  test(`magic ${magic}: a wrapper that loses records becomes plain messages with absolute offsets`, () => {
    for (const codec of [codecs.gzip, codecs.snappy, codecs.lz4]) {
      const bytes = buildWrapper(messages, codec)
      assert.deepEqual(read(bytes), seen)
      const untouched = filterRecords(bytes, 50, all, limits)
      assert.equal(untouched.slices[0]?.buffer, bytes.buffer)
      const result = filterRecords(bytes, 53, even, limits)
      assert.deepEqual(
        read(joined(result)),
        seen.filter(({ offset }) => offset % 2 === 0),
      )
      assert.deepEqual([result.kept, result.survivors, result.lastOffset], [3, 1, 55])
      const cut = filterRecords(bytes, 50, all, { ...limits, endOffset: 52 })
      assert.deepEqual(read(joined(cut)), seen.slice(0, 2))
      assert.equal(cut.nextOffset, 52)
    }
  })
}

test('magic 1 with LogAppendTime: the time of the wrapper goes into what is taken out of it', () => {
  const messages = [0, 1, 2].map((i) => ({ magic: 1 as const, offset: i, timestamp: i, value: Buffer.of(i) }))
  const bytes = buildWrapper(messages, codecs.gzip, 777, true)
  const out = joined(filterRecords(bytes, 0, even, limits))
  assert.deepEqual(
    readRecords(out, 1 << 20).map((record) => record.timestamp),
    [777, 777],
  )
  assert.equal(out[17]! & 8, 8)
})

test('messages and batches may follow each other in one answer', () => {
  const bytes = Buffer.concat([buildMessage({ magic: 0, offset: 0, value: Buffer.of(1) }), ten(1)])
  assert.equal(filterRecords(bytes, 0, all, limits).kept, 11)
})
