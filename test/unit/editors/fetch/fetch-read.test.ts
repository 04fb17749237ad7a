import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SkipPointers } from '../../../../src/editors/fetch/skip-pointers.ts'
import { codecs } from '../../../../src/records/batch.ts'
import { readRecords } from '../../../../src/records/read.ts'
import { answered, batch, brokerAnswer, only, reading, step } from './reading.ts'

const OFFSET_OUT_OF_RANGE = 1
const CORRUPT_MESSAGE = 2
const NOT_LEADER = 6
const diverging = { epoch: 1, endOffset: 5 }

function offsetsOf(records: Buffer | null): number[] {
  return readRecords(records ?? Buffer.alloc(0), 1 << 20).map(({ offset }) => offset)
}

/** A client at offset 0 has been told nothing, and offsets 0 to 9 were looked through for it in leader epoch 3. */
function scannedToTen(): SkipPointers {
  const pointers = new SkipPointers()
  const read = reading({ offset: 0, epoch: 2 }, only('a'), pointers)
  step(read, { records: batch(0, 'bbbbbbbbbb', { leaderEpoch: 3 }) })
  assert.equal(read.complete, false, 'nothing for the client yet')
  read.remember(pointers)
  return pointers
}

test('what was looked through is not read again, and the broker is told its epoch', () => {
  const read = reading({ offset: 0, epoch: 2 }, only('a'), scannedToTen())
  assert.deepEqual(step(read, { records: batch(10, 'ba') }), { offset: 10, epoch: 3 })
  assert.deepEqual(offsetsOf(answered(read).records), [11])
})

test('a client at another offset than it was left at is read for from there', () => {
  const pointers = scannedToTen()
  assert.equal(step(reading({ offset: 4 }, only('a'), pointers), {}).offset, 4)
  assert.equal(step(reading({ offset: 0 }, only('a'), pointers), {}).offset, 0, 'a seek drops the pointer for good')
})

for (const [what, cut] of [
  ['diverges', { divergingEpoch: diverging }],
  ['ends below', { errorCode: OFFSET_OUT_OF_RANGE }],
] as const) {
  test(`a log that ${what} where it was read ahead is read again from the client's own offset`, () => {
    const pointers = scannedToTen()
    const read = reading({ offset: 0, epoch: 2 }, only('a'), pointers)
    assert.deepEqual(step(read, cut), { offset: 10, epoch: 3 })
    assert.equal(read.complete, false, 'the client is not told: its own offset may be good')
    assert.deepEqual(step(read, { records: batch(0, 'ba') }), { offset: 0, epoch: 2 })
    assert.deepEqual(offsetsOf(answered(read).records), [1])
  })

  test(`a log that ${what} at the client's own offset is the client's to know`, () => {
    const read = reading({ offset: 0 }, only('a'), new SkipPointers())
    step(read, cut)
    assert.ok(read.complete)
    const { errorCode, divergingEpoch } = answered(read)
    assert.deepEqual({ errorCode, divergingEpoch }, { errorCode: 0, divergingEpoch: null, ...cut })
  })
}

test('an error drops what was remembered: leaders change and logs are cut with errors', () => {
  const pointers = scannedToTen()
  const read = reading({ offset: 0 }, only('a'), pointers)
  step(read, { errorCode: NOT_LEADER, currentLeader: { leaderId: 2, leaderEpoch: 9 } })
  read.remember(pointers)
  assert.deepEqual(
    [answered(read).errorCode, answered(read).currentLeader],
    [NOT_LEADER, { leaderId: 2, leaderEpoch: 9 }],
  )
  assert.equal(step(reading({ offset: 0 }, only('a'), pointers), {}).offset, 0)
})

test('an error after records were found waits for the next Fetch, and is not asked for again and again', () => {
  const read = reading({ offset: 0, minBytes: 1 << 19 }, only('a'), new SkipPointers())
  step(read, { records: batch(0, 'ab') })
  assert.equal(read.complete, false, 'min.bytes is not reached')
  step(read, { errorCode: NOT_LEADER })
  assert.ok(read.complete)
  assert.equal(answered(read).errorCode, 0)
  assert.deepEqual(offsetsOf(answered(read).records), [0])
})

test('a corrupt batch is the answer where it comes first, and what is before it goes first', () => {
  const broken = batch(2, 'aaaa')
  broken[broken.length - 1]! ^= 1
  const found = reading({ offset: 0 }, only('a'), new SkipPointers())
  step(found, { records: Buffer.concat([batch(0, 'ab'), broken]) })
  assert.deepEqual([answered(found).errorCode, offsetsOf(answered(found).records)], [0, [0]])
  const first = reading({ offset: 2 }, only('a'), new SkipPointers())
  step(first, { records: broken })
  assert.ok(first.complete)
  assert.deepEqual([answered(first).errorCode, answered(first).records?.length], [CORRUPT_MESSAGE, 0])
  assert.equal(first.failures()[0]?.failure?.code, 'HG_RECORDS_CRC')
})

test('a batch that inflates beyond the bound is corrupt', () => {
  const bomb = batch(0, 'a', { codec: codecs.gzip, value: Buffer.alloc(2 << 20) })
  const read = reading({ offset: 0 }, only('a'), new SkipPointers())
  step(read, { records: bomb })
  assert.equal(answered(read).errorCode, CORRUPT_MESSAGE)
  assert.equal(read.failures()[0]?.failure?.code, 'HG_RECORDS_TOO_LARGE')
})

test('records wait until min.bytes are there', () => {
  const value = Buffer.alloc(1000, 1)
  const read = reading({ offset: 0, minBytes: 4000 }, only('a'), new SkipPointers())
  step(read, { records: batch(0, 'aa', { value }) })
  const found = answered(read).records?.length ?? 0
  assert.ok(!read.complete && found > 2000)
  assert.equal(read.request(500)?.minBytes, 4000 - found)
  step(read, { records: batch(2, 'aa', { value }) })
  assert.ok(read.complete)
  assert.deepEqual(offsetsOf(answered(read).records), [0, 1, 2, 3])
})

test('a few records do not keep the whole answer of the broker in memory', () => {
  const read = reading({ offset: 0, minBytes: 4000 }, only('a'), new SkipPointers())
  const upstream = Buffer.concat([batch(0, 'a'), batch(1, 'b', { value: Buffer.alloc(500_000) })])
  step(read, { records: upstream })
  read.request(500)
  const { records } = answered(read)
  assert.ok(records !== null && records.buffer.byteLength === records.length, 'it lies in memory of its own')
})

test('an answer ends with the batch that reaches the limit of the partition, and goes on after it', () => {
  const pointers = new SkipPointers()
  const value = Buffer.alloc(1000)
  const batches = [batch(0, 'ab', { value }), batch(2, 'ab', { value }), batch(4, 'ab', { value })]
  const first = reading({ offset: 0, partitionMaxBytes: 1500 }, only('a'), pointers)
  step(first, { records: Buffer.concat(batches) })
  assert.ok(first.complete)
  assert.deepEqual(offsetsOf(answered(first).records), [0, 2])
  first.remember(pointers)
  assert.equal(step(reading({ offset: 4 }, only('a'), pointers), {}).offset, 4)
})

test('behind a shut limit: no records, the true high watermark, asked for once', () => {
  let limit = 0
  const read = reading(
    { offset: 0 },
    only('a', () => limit),
    new SkipPointers(),
  )
  const peek = read.request(500)
  assert.deepEqual([peek?.maxWaitMs, peek?.topics[0]?.partitions[0]?.partitionMaxBytes], [0, 1])
  read.ingest(brokerAnswer({ records: batch(0, 'aaaa'), highWatermark: 77 }))
  assert.equal(read.complete, false)
  assert.equal(read.request(400), undefined, 'nothing to ask while it is shut')
  assert.deepEqual([answered(read).highWatermark, answered(read).records?.length], [77, 0])
  limit = 2
  step(read, { records: batch(0, 'aaaa') })
  assert.ok(read.complete)
  assert.deepEqual(offsetsOf(answered(read).records), [0, 1])
})

test('a Fetch that asks for nothing to wait for is answered at once', () => {
  const read = reading({ offset: 0, minBytes: 0 }, only('a'), new SkipPointers())
  assert.equal(read.request(500)?.maxWaitMs, 0)
  step(read, { records: batch(0, 'b') })
  assert.ok(read.complete)
})
