import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { crc32, crc32c } from '../../../src/records/crc.ts'

const digits = Buffer.from('123456789')

test('the check values of both checksums', () => {
  assert.equal(crc32c(digits), 0xe3069283)
  assert.equal(crc32(digits), 0xcbf43926)
  assert.equal(crc32c(Buffer.alloc(0)), 0)
})

test('RFC 3720: CRC-32C of 32 zeros, 32 ones, ascending and descending bytes', () => {
  const ascending = Buffer.from(Array.from({ length: 32 }, (_, i) => i))
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa)
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43)
  assert.equal(crc32c(ascending), 0x46dd794e)
  assert.equal(crc32c(Buffer.from(ascending).reverse()), 0x113fdb5c)
})

test('every length and start gives what a byte-wise computation gives, on both sides of the native threshold', () => {
  const bytes = Buffer.from(Array.from({ length: 700 }, (_, i) => (i * 197) & 0xff))
  const bytewise = (polynomial: number, start: number, end: number) => {
    let crc = -1
    for (let i = start; i < end; i++) {
      crc ^= bytes[i]!
      for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
    }
    return ~crc >>> 0
  }
  for (const start of [0, 1, 7]) {
    for (let end = start; end <= bytes.length; end += end < 170 ? 1 : 53) {
      assert.equal(crc32c(bytes, start, end), bytewise(0x82f63b78, start, end))
      assert.equal(crc32(bytes, start, end), bytewise(0xedb88320, start, end))
    }
  }
})

test('CRC-32 is that of zlib, where this Node has it', () => {
  const bytes = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 31) & 0xff))
  if (typeof zlibCrc32 === 'function') assert.equal(crc32(bytes), zlibCrc32(bytes))
})
