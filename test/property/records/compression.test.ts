import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Codec, codecs } from '../../../src/records/batch.ts'
import { compress, compressXerial } from '../../../src/records/compression/compress.ts'
import { decompress } from '../../../src/records/compression/decompress.ts'
import { RecordsError } from '../../../src/records/errors.ts'
import { check } from './check.ts'

const limit = 1 << 16
const folder = new URL('../../fixtures/records/compression/', import.meta.url)

const seeds: { codec: Codec; bytes: Buffer }[] = readdirSync(folder)
  .filter((file) => /^(small|skippable|old-kafka|hard)/.test(file))
  .map((file) => ({
    codec: codecs[file.slice(file.lastIndexOf('.') + 1) as keyof typeof codecs],
    bytes: readFileSync(new URL(file, folder)),
  }))

/** Runs of repeated pieces: something to compress. */
const plain = fc
  .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 40 })), { maxLength: 12 })
  .map((runs) => Buffer.concat(runs.flatMap(([piece, times]) => Array.from({ length: times }, () => piece))))

test('compress and decompress are inverse', () => {
  check(
    fc.property(plain, fc.constantFrom(...Object.values(codecs)), (bytes, codec) => {
      assert.ok(decompress(codec, compress(codec, bytes), bytes.length).equals(bytes))
      assert.ok(decompress(codecs.snappy, compressXerial(bytes), bytes.length).equals(bytes))
    }),
    200,
  )
})

test('mutated and cut frames: a typed error, or a value within the limit', () => {
  const mutation = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 }))
  check(
    fc.property(
      fc.constantFrom(...seeds),
      fc.array(mutation, { minLength: 1, maxLength: 5 }),
      fc.option(fc.nat(), { freq: 4 }),
      ({ codec, bytes }, changes, cut) => {
        const hostile = Buffer.from(cut === null ? bytes : bytes.subarray(0, cut % bytes.length))
        if (hostile.length === 0) return
        for (const [position, change] of changes) hostile[position % hostile.length]! ^= change
        try {
          assert.ok(decompress(codec, hostile, limit).length <= limit)
        } catch (error) {
          assert.ok(error instanceof RecordsError, String(error))
        }
      },
    ),
    3000,
  )
})

test('bytes of nothing in particular: a typed error, or a value within the limit', () => {
  check(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.constantFrom(1, 2, 3, 4), (array, codec) => {
      try {
        assert.ok(decompress(codec, Buffer.from(array), limit).length <= limit)
      } catch (error) {
        assert.ok(error instanceof RecordsError, String(error))
      }
    }),
    1000,
  )
})
