import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  baseOffsetOf,
  checkCrc,
  codecs,
  entryEnd,
  entrySize,
  isControl,
  isTransactional,
  lastOffsetOf,
  placeBatch,
  readHeader,
  walkEntries,
  writeCrc,
} from '../../../src/records/batch.ts'
import { buildBatch, buildMarker } from '../../../src/records/build.ts'
import { controlTypeOf, controlTypes } from '../../../src/records/control.ts'
import { readRecords } from '../../../src/records/read.ts'
import { buildMessage } from './legacy-build.ts'

const limit = 1 << 20

function three(baseOffset: number): Buffer {
  return buildBatch({
    baseOffset,
    leaderEpoch: 4,
    baseTimestamp: 1_700_000_000_000,
    records: [
      { key: Buffer.from('a'), value: Buffer.from('1') },
      { key: null, value: Buffer.from('2'), timestamp: 1_700_000_000_123 },
      {
        key: Buffer.alloc(0),
        value: null,
        headers: [
          { name: 'h', value: null },
          { name: 'ü', value: Buffer.of(1) },
        ],
      },
    ],
  })
}

test('the layout, byte for byte', () => {
  const built = buildBatch({
    baseOffset: 7,
    leaderEpoch: 0,
    records: [{ key: Buffer.from('k'), value: Buffer.from('v'), timestamp: 1 }],
  })
  const expected =
    '0000000000000007' +
    '0000003a' +
    '00000000' +
    '02' +
    built.toString('hex', 17, 21) +
    '0000' +
    '00000000' +
    '0000000000000001' +
    '0000000000000001' +
    'ffffffffffffffff' +
    'ffff' +
    'ffffffff' +
    '00000001' +
    '10' +
    '00' +
    '00' +
    '00' +
    '02' +
    '6b' +
    '02' +
    '76' +
    '00'
  assert.equal(built.toString('hex'), expected)
})

test('header fields are read where they are', () => {
  const bytes = Buffer.concat([Buffer.alloc(5), three(100)])
  const header = readHeader(bytes, 5)
  assert.deepEqual(header, {
    baseOffset: 100,
    lastOffset: 102,
    sizeBytes: bytes.length - 5,
    leaderEpoch: 4,
    crc: bytes.readUInt32BE(5 + 17),
    codec: codecs.none,
    logAppendTime: false,
    transactional: false,
    control: false,
    deleteHorizon: false,
    lastOffsetDelta: 2,
    baseTimestamp: 1_700_000_000_000,
    maxTimestamp: 1_700_000_000_123,
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    recordCount: 3,
  })
  assert.equal(entrySize(bytes, 5), bytes.length - 5)
  assert.equal(lastOffsetOf(bytes, 5), 102)
})

test('attribute bits', () => {
  const header = (extra: object) => readHeader(buildBatch({ records: [{}], ...extra }), 0)
  assert.equal(header({ logAppendTime: true }).logAppendTime, true)
  assert.equal(header({ transactional: true }).transactional, true)
  assert.equal(header({ control: true }).control, true)
  assert.equal(header({ deleteHorizon: true }).deleteHorizon, true)
  assert.equal(header({ codec: codecs.zstd }).codec, codecs.zstd)
})

test('records of a batch', () => {
  const records = readRecords(three(100), limit)
  assert.deepEqual(
    records.map(({ offset, timestamp, key, value, headers }) => ({ offset, timestamp, key, value, headers })),
    [
      { offset: 100, timestamp: 1_700_000_000_000, key: Buffer.from('a'), value: Buffer.from('1'), headers: [] },
      { offset: 101, timestamp: 1_700_000_000_123, key: null, value: Buffer.from('2'), headers: [] },
      {
        offset: 102,
        timestamp: 1_700_000_000_000,
        key: Buffer.alloc(0),
        value: null,
        headers: [
          { name: 'h', value: null },
          { name: 'ü', value: Buffer.of(1) },
        ],
      },
    ],
  )
})

test('with LogAppendTime every record has the time of the batch', () => {
  const bytes = buildBatch({
    logAppendTime: true,
    maxTimestamp: 99,
    baseTimestamp: 5,
    records: [{ timestamp: 5 }, { timestamp: 7 }],
  })
  assert.deepEqual(
    readRecords(bytes, limit).map((record) => record.timestamp),
    [99, 99],
  )
})

test('timestamps before the base, and far from it', () => {
  const stamps = [1000, 0, 1, 2 ** 41, 999, 2 ** 52]
  const bytes = buildBatch({ baseTimestamp: 1000, records: stamps.map((timestamp) => ({ timestamp })) })
  assert.deepEqual(
    readRecords(bytes, limit).map((record) => record.timestamp),
    stamps,
  )
})

test('walking stops in front of a partial batch, whatever is left of it', () => {
  const whole = Buffer.concat([three(0), three(3)])
  const second = whole.length / 2
  for (let length = 0; length <= whole.length; length++) {
    const seen: number[] = []
    const reached = walkEntries(whole.subarray(0, length), (at) => seen.push(at))
    assert.equal(reached, length < second ? 0 : length < whole.length ? second : whole.length)
    assert.deepEqual(seen, length < second ? [] : length < whole.length ? [0] : [0, second])
  }
})

test('impossible lengths and unknown magics are errors that name the batch', () => {
  const bytes = Buffer.concat([three(0), three(3)])
  const second = bytes.length / 2
  for (const length of [-1, 0, 13, 48, -0x80000000]) {
    const broken = Buffer.from(bytes)
    broken.writeInt32BE(length, second + 8)
    assert.throws(() => entryEnd(broken, second), { code: 'HG_RECORDS_CORRUPT', at: second })
  }
  const magic3 = Buffer.from(bytes)
  magic3[second + 16] = 3
  assert.throws(() => entryEnd(magic3, second), { code: 'HG_RECORDS_CORRUPT', at: second })
})

test('a wrong checksum is found, in v2 batches and in messages', () => {
  for (const bytes of [three(0), buildMessage({ magic: 1, offset: 3, value: Buffer.from('v') })]) {
    checkCrc(bytes, 0, bytes.length)
    const broken = Buffer.from(bytes)
    broken[bytes.length - 1]! ^= 1
    assert.throws(() => checkCrc(broken, 0, bytes.length), { code: 'HG_RECORDS_CRC', at: 0 })
  }
})

test('offsets of 2^53 and more are refused, just below is read', () => {
  const bytes = three(0)
  bytes.writeBigInt64BE(2n ** 53n, 0)
  assert.throws(() => baseOffsetOf(bytes, 0), { code: 'HG_RECORDS_CORRUPT' })
  bytes.writeBigInt64BE(2n ** 53n - 1n, 0)
  assert.equal(baseOffsetOf(bytes, 0), Number.MAX_SAFE_INTEGER)
  bytes.writeBigInt64BE(-1n, 0)
  assert.equal(baseOffsetOf(bytes, 0), -1)
})

test('placing a batch in a log leaves its checksum right', () => {
  const bytes = three(0)
  placeBatch(bytes, 0, 4_000_000_000, 17)
  checkCrc(bytes, 0, bytes.length)
  const header = readHeader(bytes, 0)
  assert.equal(header.baseOffset, 4_000_000_000)
  assert.equal(header.leaderEpoch, 17)
})

test('an unknown codec is an error', () => {
  const bytes = buildBatch({ records: [{}] })
  bytes.writeInt16BE(5, 21)
  writeCrc(bytes, 0, bytes.length)
  assert.throws(() => readRecords(bytes, limit), { code: 'HG_RECORDS_CODEC', at: 0 })
})

test('transaction markers', () => {
  for (const type of [controlTypes.abort, controlTypes.commit]) {
    const bytes = buildMarker({ type, producerId: 9, producerEpoch: 2, coordinatorEpoch: 5, baseOffset: 30 })
    assert.equal(controlTypeOf(bytes, 0, bytes.length), type)
    assert.equal(isControl(bytes, 0), true)
    assert.equal(isTransactional(bytes, 0), true)
    const [record] = readRecords(bytes, limit)
    assert.equal(record?.control, true)
    assert.equal(record?.value?.readInt32BE(2), 5)
  }
})
