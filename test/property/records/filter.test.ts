import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  attributeBits,
  attributesOf,
  baseOffsetOf,
  checkCrc,
  isControl,
  lastOffsetOf,
  magicOf,
  readHeader,
  walkEntries,
  writeCrc,
} from '../../../src/records/batch.ts'
import { RecordsError } from '../../../src/records/errors.ts'
import { type Keep, filterRecords } from '../../../src/records/filter.ts'
import { bucketOf } from '../../../src/records/hashes/buckets.ts'
import { readRecords } from '../../../src/records/read.ts'
import { slice } from './arbitrary.ts'
import { check } from './check.ts'

const limit = 1 << 20
const limits = { maxInflatedBytes: limit }

const question = fc.record({
  slice,
  from: fc.double({ min: 0, max: 1, noNaN: true }),
  cut: fc.double({ min: 0, max: 1, noNaN: true }),
  buckets: fc.integer({ min: 0, max: 65_536 }),
  endOffset: fc.option(fc.double({ min: 0, max: 1.1, noNaN: true }), { freq: 3 }),
})

test('filtering gives what decoding everything and choosing gives', () => {
  check(
    fc.property(question, ({ slice: { bytes, firstOffset, nextOffset }, from, cut, buckets, endOffset: end }) => {
      const received = bytes.subarray(0, Math.round(bytes.length * cut))
      const fetchOffset = firstOffset + Math.floor((nextOffset - firstOffset) * from)
      const keep: Keep = (record) => bucketOf(record) < buckets
      const endOffset =
        end === null ? Number.POSITIVE_INFINITY : firstOffset + Math.floor((nextOffset - firstOffset) * end)

      const all = readRecords(received, limit).filter((record) => !record.control)
      const stays = (record: (typeof all)[number]) =>
        record.offset < endOffset &&
        bucketOf({
          bytes: record.key ?? Buffer.alloc(0),
          offset: record.offset,
          keyStart: record.key === null ? -1 : 0,
          keyEnd: record.key?.length ?? -1,
        }) < buckets
      const expected = all.filter(stays)

      const result = filterRecords(received, fetchOffset, keep, { ...limits, ...(end === null ? {} : { endOffset }) })
      const out = Buffer.concat(result.slices)
      assert.equal(result.failure, undefined)
      assert.deepEqual(
        readRecords(out, limit).filter((record) => !record.control),
        expected,
      )
      assert.equal(result.kept, expected.length)
      assert.equal(result.survivors, expected.filter((record) => record.offset >= fetchOffset).length)
      assert.equal(result.lastKeptOffset, expected.at(-1)?.offset ?? -1)
      if (end === null) assert.equal(result.withheld, all.length - expected.length)
      checkShape(received, out, endOffset)
      checkProgress(received, result, fetchOffset, endOffset)
    }),
    400,
  )
})

test('read in parts of any size, each part from where the one before ended, everything comes once', () => {
  const parts = fc.record({
    slice,
    buckets: fc.integer({ min: 0, max: 65_536 }),
    maxBytes: fc.integer({ min: 1, max: 2000 }),
  })
  check(
    fc.property(parts, ({ slice: { bytes, firstOffset, nextOffset }, buckets, maxBytes }) => {
      const keep: Keep = (record) => bucketOf(record) < buckets
      const whole = filterRecords(bytes, firstOffset, keep, limits)
      const expected = offsetsOf(whole.slices)
      const given: number[] = []
      for (let at = firstOffset; at < nextOffset; ) {
        const part = filterRecords(fromBatchOf(bytes, at), at, keep, { ...limits, maxBytes })
        assert.ok(part.nextOffset > at)
        given.push(...offsetsOf(part.slices).filter((offset) => offset >= at && offset < part.nextOffset))
        at = part.nextOffset
      }
      assert.deepEqual(given, expected)
    }),
    200,
  )
})

/** As a broker answers: from the batch on that holds the offset. */
function fromBatchOf(bytes: Buffer, offset: number): Buffer {
  let from = bytes.length
  walkEntries(bytes, (at) => {
    if (lastOffsetOf(bytes, at) >= offset) from = Math.min(from, at)
  })
  return bytes.subarray(from)
}

function offsetsOf(slices: readonly Buffer[]): number[] {
  return readRecords(Buffer.concat(slices), limit)
    .filter((record) => !record.control)
    .map((record) => record.offset)
}

/** Every entry of the output is one of the input, whole or rebuilt as the rules say. */
function checkShape(input: Buffer, out: Buffer, endOffset: number): void {
  const inputs = new Map<number, number>()
  walkEntries(input, (at) => {
    if (magicOf(input, at) === 2) inputs.set(baseOffsetOf(input, at), at)
  })
  const reached = walkEntries(out, (at, end) => {
    checkCrc(out, at, end)
    if (magicOf(out, at) < 2) return
    const source = inputs.get(baseOffsetOf(out, at))
    assert.ok(source !== undefined, 'a base offset that was not in the input')
    const before = readHeader(input, source)
    const after = readHeader(out, at)
    assert.ok(after.control || after.recordCount > 0, 'a batch without records')
    if (isControl(out, at) || after.recordCount === before.recordCount) assert.equal(after.sizeBytes, before.sizeBytes)
    assert.equal(after.lastOffset, Math.min(before.lastOffset, endOffset - 1))
    const same = { codec: 0, crc: 0, sizeBytes: 0, recordCount: 0, lastOffset: 0, lastOffsetDelta: 0 } as const
    assert.deepEqual({ ...after, ...same }, { ...before, ...same })
  })
  assert.equal(reached, out.length)
}

function checkProgress(
  input: Buffer,
  result: ReturnType<typeof filterRecords>,
  fetchOffset: number,
  endOffset: number,
): void {
  let last = -1
  let ended = false
  const reached = walkEntries(input, (at) => {
    const wrapped = magicOf(input, at) < 2 && (attributesOf(input, at) & attributeBits.CODEC_MASK) !== 0
    ended ||= !wrapped && baseOffsetOf(input, at) >= endOffset
    if (!ended) last = Math.min(lastOffsetOf(input, at), endOffset - 1)
  })
  assert.equal(result.lastOffset, last)
  assert.equal(result.nextOffset, Math.max(fetchOffset, last + 1))
  if (endOffset === Number.POSITIVE_INFINITY) assert.equal(result.partialBatchBytes > 0, reached < input.length)
}

test('when everything stays, nothing is copied', () => {
  check(
    fc.property(slice, ({ bytes, firstOffset }) => {
      const result = filterRecords(bytes, firstOffset, () => true, limits)
      for (const part of result.slices) assert.equal(part.buffer, bytes.buffer)
      const empty = readEmpty(bytes)
      assert.equal(result.sizeBytes, bytes.length - empty)
    }),
    200,
  )
})

/** Bytes of the batches without records: the only thing taken out when everything stays. */
function readEmpty(bytes: Buffer): number {
  let total = 0
  walkEntries(bytes, (at, end) => {
    if (magicOf(bytes, at) === 2 && readHeader(bytes, at).recordCount === 0) total += end - at
  })
  return total
}

test('filtering twice is filtering once', () => {
  check(
    fc.property(slice, fc.integer({ min: 0, max: 65_536 }), ({ bytes, firstOffset }, buckets) => {
      const keep: Keep = (record) => bucketOf(record) < buckets
      const once = Buffer.concat(filterRecords(bytes, firstOffset, keep, limits).slices)
      const twice = Buffer.concat(filterRecords(once, firstOffset, keep, limits).slices)
      assert.ok(twice.equals(once))
    }),
    200,
  )
})

test('a call that a limit stops goes on behind what it read, with the same outcome', () => {
  check(
    fc.property(
      slice,
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 0, max: 65_536 }),
      (whole, maxBytes, buckets) => {
        const { bytes, firstOffset } = whole
        const keep: Keep = (record) => bucketOf(record) < buckets
        const parts: Buffer[] = []
        let at = 0
        let offset = firstOffset
        while (at < bytes.length) {
          const result = filterRecords(bytes.subarray(at), offset, keep, { ...limits, maxBytes })
          assert.ok(result.readBytes > 0)
          parts.push(...result.slices)
          at += result.readBytes
          offset = result.nextOffset
        }
        const once = filterRecords(bytes, firstOffset, keep, limits)
        assert.ok(Buffer.concat(parts).equals(Buffer.concat(once.slices)))
        assert.equal(offset, once.nextOffset)
      },
    ),
    200,
  )
})

const mutations = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 6 })

test('mutated slices, with their checksums put right again: a typed failure or a value', () => {
  check(
    fc.property(slice, mutations, fc.boolean(), ({ bytes, firstOffset }, changes, forgeCrc) => {
      if (bytes.length === 0) return
      const hostile = Buffer.from(bytes)
      for (const [position, change] of changes) hostile[position % hostile.length]! ^= change
      if (forgeCrc) {
        try {
          walkEntries(hostile, (at, end) => {
            if (magicOf(hostile, at) === 2) writeCrc(hostile, at, end)
          })
        } catch (error) {
          assert.ok(error instanceof RecordsError)
        }
      }
      const result = filterRecords(hostile, firstOffset, (record) => bucketOf(record) < 0x8000, limits)
      assert.ok(result.sizeBytes <= hostile.length + 10 * limit)
      for (const part of result.slices) walkEntries(part, (at, end) => checkCrc(part, at, end))
      try {
        for (const record of readRecords(hostile, limit)) assert.ok(Number.isSafeInteger(record.offset))
      } catch (error) {
        assert.ok(error instanceof RecordsError, String(error))
      }
    }),
    600,
  )
})
