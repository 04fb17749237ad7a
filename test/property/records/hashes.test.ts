import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { kafkajsLegacyHash } from '../../../src/records/hashes/kafkajs-legacy.ts'
import { murmur2 } from '../../../src/records/hashes/murmur2.ts'
import { xxh64 } from '../../../src/records/hashes/xxh64.ts'
import { varintSize, varlongSize, writeVarint, writeVarlong } from '../../../src/records/varint.ts'
import { check } from './check.ts'

const require = createRequire(import.meta.url)
const clientsMurmur2 = require('kafkajs/src/producer/partitioners/default/murmur2') as (key: Buffer) => number
const clientsLegacy = require('kafkajs/src/producer/partitioners/legacy/murmur2') as (key: Buffer) => number

const key = fc.uint8Array({ maxLength: 120 }).map((array) => Buffer.from(array))

test("murmur2 and the legacy hash are kafkajs' own, bit for bit", () => {
  check(
    fc.property(key, (bytes) => {
      assert.equal(murmur2(bytes, 0, bytes.length), clientsMurmur2(bytes) | 0)
      assert.equal(kafkajsLegacyHash(bytes, 0, bytes.length), clientsLegacy(bytes))
    }),
    2000,
  )
})

const MASK = (1n << 64n) - 1n
const P = [0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n]
const rotate = (value: bigint, bits: bigint) => ((value << bits) | (value >> (64n - bits))) & MASK
const round = (acc: bigint, lane: bigint) => (rotate((acc + lane * P[1]!) & MASK, 31n) * P[0]!) & MASK

/** xxHash64 written down as its specification has it. */
function oracle(bytes: Buffer, seed: bigint): bigint {
  let at = 0
  let hash = (seed + P[4]!) & MASK
  if (bytes.length >= 32) {
    const acc = [seed + P[0]! + P[1]!, seed + P[1]!, seed, seed - P[0]!].map((value) => value & MASK)
    for (; at + 32 <= bytes.length; at += 32) {
      for (let i = 0; i < 4; i++) acc[i] = round(acc[i]!, bytes.readBigUInt64LE(at + 8 * i))
    }
    hash = (rotate(acc[0]!, 1n) + rotate(acc[1]!, 7n) + rotate(acc[2]!, 12n) + rotate(acc[3]!, 18n)) & MASK
    for (const value of acc) hash = ((hash ^ round(0n, value)) * P[0]! + P[3]!) & MASK
  }
  hash = (hash + BigInt(bytes.length)) & MASK
  for (; at + 8 <= bytes.length; at += 8) {
    hash = (rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P[0]! + P[3]!) & MASK
  }
  for (; at + 4 <= bytes.length; at += 4) {
    hash = (rotate(hash ^ ((BigInt(bytes.readUInt32LE(at)) * P[0]!) & MASK), 23n) * P[1]! + P[2]!) & MASK
  }
  for (; at < bytes.length; at++) hash = (rotate(hash ^ ((BigInt(bytes[at]!) * P[4]!) & MASK), 11n) * P[0]!) & MASK
  hash = ((hash ^ (hash >> 33n)) * P[1]!) & MASK
  hash = ((hash ^ (hash >> 29n)) * P[2]!) & MASK
  return hash ^ (hash >> 32n)
}

test('xxHash64 in two halves is xxHash64', () => {
  check(
    fc.property(key, fc.bigInt({ min: 0n, max: MASK }), (bytes, seed) => {
      assert.equal(xxh64(bytes, 0, bytes.length, seed), oracle(bytes, seed))
    }),
    1000,
  )
})

test('varints take the bytes they are said to take, and are zigzag', () => {
  check(
    fc.property(fc.integer(), fc.integer({ min: -(2 ** 52), max: 2 ** 52 }), (int, long) => {
      const bytes = Buffer.alloc(10)
      assert.equal(writeVarint(bytes, 0, int), varintSize(int))
      const asLong = Buffer.alloc(10)
      assert.equal(writeVarlong(asLong, 0, int), varintSize(int))
      assert.deepEqual(asLong, bytes)
      assert.equal(writeVarlong(bytes, 0, long), varlongSize(long))
      let zigzag = 0n
      for (let i = varlongSize(long) - 1; i >= 0; i--) zigzag = (zigzag << 7n) | BigInt(bytes[i]! & 0x7f)
      assert.equal(zigzag, BigInt.asUintN(64, (BigInt(long) << 1n) ^ (BigInt(long) >> 63n)))
    }),
    500,
  )
})
