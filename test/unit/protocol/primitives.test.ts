/** Primitive types: known bytes both ways, every refusal with its code, growth of the writer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import type { ProtocolErrorCode } from '../../../src/protocol/errors.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { zeroUuid } from '../../../src/protocol/uuid.ts'
import { Writer } from '../../../src/protocol/writer.ts'

function written(write: (writer: Writer) => void): string {
  const writer = new Writer(1)
  write(writer)
  return writer.finish().toString('hex')
}

function reader(hex: string): Reader {
  return new Reader(Buffer.from(hex, 'hex'))
}

function failsWith(code: ProtocolErrorCode, run: () => unknown): void {
  assert.throws(run, (error) => error instanceof ProtocolError && error.code === code)
}

test('unsigned varints are written with the fewest bytes and read back', () => {
  const cases: [number, string][] = [
    [0, '00'],
    [127, '7f'],
    [128, '8001'],
    [16383, 'ff7f'],
    [16384, '808001'],
    [2097152, '80808001'],
    [0xffffffff, 'ffffffff0f'],
  ]
  for (const [value, hex] of cases) {
    assert.equal(
      written((w) => w.uvarint(value)),
      hex,
    )
    assert.equal(reader(hex).uvarint(), value)
  }
  failsWith('HG_PROTOCOL_VARINT', () => reader('ffffffff1f').uvarint())
  failsWith('HG_PROTOCOL_VARINT', () => reader('808080808000').uvarint())
  failsWith('HG_PROTOCOL_TRUNCATED', () => reader('8080').uvarint())
})

test('signed varints are zigzag coded', () => {
  for (const [value, hex] of [
    [0, '00'],
    [-1, '01'],
    [1, '02'],
    [2147483647, 'feffffff0f'],
    [-2147483648, 'ffffffff0f'],
  ] as const) {
    assert.equal(
      written((w) => w.varint(value)),
      hex,
    )
    assert.equal(reader(hex).varint(), value)
  }
})

test('64-bit numbers are exact or refused', () => {
  for (const value of [0, 1, -1, -2, 2 ** 31, 2 ** 32, -(2 ** 32), -(2 ** 32) - 1, Number.MAX_SAFE_INTEGER]) {
    const hex = written((w) => w.int64(value))
    assert.equal(Buffer.from(hex, 'hex').readBigInt64BE(), BigInt(value))
    assert.equal(reader(hex).int64(), value)
  }
  failsWith('HG_PROTOCOL_INT64', () => reader('7fffffffffffffff').int64())
  failsWith('HG_PROTOCOL_INT64', () => reader('0020000000000000').int64())
  failsWith('HG_PROTOCOL_INT64', () => reader('8000000000000000').int64())
  failsWith('HG_PROTOCOL_VALUE', () => new Writer().int64(2 ** 53))
  failsWith('HG_PROTOCOL_VALUE', () => new Writer().int64(0.5))
  assert.equal(reader('7fffffffffffffff').bigint64(), 2n ** 63n - 1n)
})

test('strings: short, long, not ASCII, null, in both encodings', () => {
  for (const text of [
    '',
    'a',
    'x'.repeat(24),
    'é'.repeat(12),
    'ab€',
    'y'.repeat(126),
    'z'.repeat(127),
    '𝄞'.repeat(40),
  ]) {
    assert.equal(reader(written((w) => w.string(text))).string(), text)
    assert.equal(reader(written((w) => w.compactString(text))).compactString(), text)
    assert.equal(reader(written((w) => w.nullableString(text))).nullableString(), text)
    assert.equal(reader(written((w) => w.compactNullableString(text))).compactNullableString(), text)
  }
  assert.equal(
    written((w) => w.string('ab')),
    '00026162',
  )
  assert.equal(
    written((w) => w.compactString('ab')),
    '036162',
  )
  assert.equal(reader('ffff').nullableString(), null)
  assert.equal(reader('00').compactNullableString(), null)
  failsWith('HG_PROTOCOL_NULL', () => reader('ffff').string())
  failsWith('HG_PROTOCOL_NULL', () => reader('00').compactString())
  failsWith('HG_PROTOCOL_LENGTH', () => reader('8000').nullableString())
  failsWith('HG_PROTOCOL_TRUNCATED', () => reader('000361').string())
  failsWith('HG_PROTOCOL_VALUE', () => new Writer().string('x'.repeat(32768)))
  assert.equal(reader(written((w) => w.string('x'.repeat(32767)))).string().length, 32767)
})

test('byte fields are slices of the buffer that is read', () => {
  const buffer = Buffer.from('00000002aabb', 'hex')
  const slice = new Reader(buffer).bytes()
  assert.equal(slice.buffer, buffer.buffer)
  assert.equal(slice.byteOffset, buffer.byteOffset + 4)
  assert.equal(reader('ffffffff').nullableBytes(), null)
  failsWith('HG_PROTOCOL_LENGTH', () => reader('7fffffff00').bytes())
  failsWith('HG_PROTOCOL_LENGTH', () => reader('fffffffe').nullableBytes())
})

test('a count is compared with the bytes that remain', () => {
  assert.equal(reader('000000020000').count(1), 2)
  failsWith('HG_PROTOCOL_LENGTH', () => reader('000000020000').count(2))
  failsWith('HG_PROTOCOL_LENGTH', () => reader('7fffffff').count(4))
  failsWith('HG_PROTOCOL_NULL', () => reader('ffffffff').count(1))
  assert.equal(reader('ffffffff').nullableCount(1), -1)
  assert.equal(reader('00').compactNullableCount(1), -1)
})

test('uuids use the form of Kafka tools', () => {
  const text = 'AAECAwQFBgcICQoLDA0ODw'
  assert.equal(reader('000102030405060708090a0b0c0d0e0f').uuid(), text)
  assert.equal(
    written((w) => w.uuid(text)),
    '000102030405060708090a0b0c0d0e0f',
  )
  assert.equal(reader('00'.repeat(16)).uuid(), zeroUuid)
  assert.equal(
    written((w) => w.uuid(zeroUuid)),
    '00'.repeat(16),
  )
  failsWith('HG_PROTOCOL_VALUE', () => new Writer().uuid('AAECAwQFBgcICQoLDA0OD!'))
})

test('a tagged field of any size gets its size in front', () => {
  for (const size of [0, 1, 127, 128, 16383, 16384, 70000]) {
    const writer = new Writer(4)
    const from = writer.openTag(3)
    writer.raw(Buffer.alloc(size, 7))
    writer.closeTag(from)
    const back = new Reader(writer.finish())
    assert.equal(back.uvarint(), 3)
    const tag = back.unknownTag(3)
    assert.equal(tag.data.length, size)
    assert.ok(tag.data.every((byte) => byte === 7))
    back.expectEnd()
  }
})

test('the buffer may grow before any field, whatever its type', () => {
  for (const write of [
    (w: Writer) => w.bool(true),
    (w: Writer) => w.uvarint(1),
    (w: Writer) => w.int8(1),
    (w: Writer) => w.float64(1),
    (w: Writer) => w.bigint64(1n),
    (w: Writer) => w.compactString('x'),
    (w: Writer) => w.uuid(zeroUuid),
  ]) {
    const roomy = new Writer(4096)
    const tight = new Writer(1)
    for (let i = 0; i < 100; i++) {
      write(roomy)
      write(tight)
    }
    assert.deepEqual(tight.finish(), roomy.finish())
  }
})

test('a reader never reads outside its range', () => {
  const buffer = Buffer.from('0102030405', 'hex')
  const inner = new Reader(buffer, 1, 3)
  assert.equal(inner.int16(), 0x0203)
  failsWith('HG_PROTOCOL_TRUNCATED', () => inner.int8())
  assert.throws(() => new Reader(buffer, 0, 6), RangeError)
})
