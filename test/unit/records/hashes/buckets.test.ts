import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  BUCKETS,
  bucketOf,
  bucketOfHashSpace,
  bucketOfKey,
  bucketOfOffset,
  keyHash,
} from '../../../../src/records/hashes/buckets.ts'
import { partitioners } from '../../../../src/records/hashes/partitioners.ts'
import { xxh64 } from '../../../../src/records/hashes/xxh64.ts'

interface Vectors {
  keys: { key: string; hash: string; bucket: number }[]
  nullKeys: { offset: number; bucket: number }[]
  hashSpace: { point: string; bucket: number }[]
}

const vectors = JSON.parse(readFileSync(new URL('../../../vectors/key-hash.json', import.meta.url), 'utf8')) as Vectors

test('xxHash64: published values of seed 0', () => {
  const of = (text: string) => xxh64(Buffer.from(text), 0, text.length, 0n)
  assert.equal(of(''), 0xef46db3751d8e999n)
  assert.equal(of('a'), 0xd24ec4f1a98c6e5bn)
  assert.equal(of('abc'), 0x44bc2cf5ad770999n)
})

test('the published vectors: hash and bucket of keys', () => {
  for (const { key: hex, hash, bucket } of vectors.keys) {
    const key = Buffer.from(hex, 'hex')
    assert.equal(keyHash(key).toString(16).padStart(16, '0'), hash, hex)
    assert.equal(bucketOfKey(key, 0, key.length), bucket, hex)
    const framed = Buffer.concat([Buffer.of(1, 2, 3), key, Buffer.of(4)])
    assert.equal(bucketOf({ bytes: framed, keyStart: 3, keyEnd: 3 + key.length, offset: 99 }), bucket)
  }
})

test('the published vectors: records without a key, and the hash space of the proposal', () => {
  for (const { offset, bucket } of vectors.nullKeys) {
    assert.equal(bucketOfOffset(offset), bucket, String(offset))
    assert.equal(bucketOf({ bytes: Buffer.alloc(0), keyStart: -1, keyEnd: -1, offset }), bucket)
  }
  for (const { point, bucket } of vectors.hashSpace) assert.equal(bucketOfHashSpace(BigInt(point)), bucket, point)
})

test('an empty key is a key: where it goes does not depend on the offset', () => {
  const empty = (offset: number) => bucketOf({ bytes: Buffer.alloc(0), keyStart: 0, keyEnd: 0, offset })
  assert.equal(empty(1), empty(2))
  assert.notEqual(bucketOfOffset(1), bucketOfOffset(2))
})

test('offsets in a row meet every bucket once, and few of them are spread over ranges already', () => {
  const seen = new Set<number>()
  for (let offset = 1000; offset < 1000 + BUCKETS; offset++) seen.add(bucketOfOffset(offset))
  assert.equal(seen.size, BUCKETS)
  const eighths = new Array<number>(8).fill(0)
  for (let offset = 0; offset < 80; offset++) eighths[bucketOfOffset(offset) >>> 13]!++
  for (const count of eighths) assert.ok(count >= 8 && count <= 12, String(eighths))
})

test('inside one partition of any partitioner the keys fill all ranges evenly', () => {
  for (const partition of [0, 3]) {
    const eighths = new Array<number>(8).fill(0)
    let total = 0
    for (let i = 0; i < 40_000; i++) {
      const key = Buffer.from(`customer-${i}`)
      if (partitioners['murmur2-mask'](key, 0, key.length, 8) !== partition) continue
      eighths[bucketOfKey(key, 0, key.length) >>> 13]!++
      total++
    }
    for (const count of eighths) assert.ok(Math.abs(count - total / 8) < total / 40, String(eighths))
  }
})
