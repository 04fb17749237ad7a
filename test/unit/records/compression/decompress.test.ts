import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { type Codec, codecs } from '../../../../src/records/batch.ts'
import { compress, compressXerial } from '../../../../src/records/compression/compress.ts'
import { decompress } from '../../../../src/records/compression/decompress.ts'
import { RecordsError } from '../../../../src/records/errors.ts'

const folder = new URL('../../../fixtures/records/compression/', import.meta.url)
const files = readdirSync(folder)
const compressed = Object.entries(codecs).filter(([, codec]) => codec !== codecs.none)

/** What test/fixtures/records/make/frames.py compressed. */
function text(lines: number): Buffer {
  const line = (i: number) => `{"id":${i},"user":"user-${(i * 7919) % 13}","note":"${'ab'.repeat(i % 47)}"}\n`
  return Buffer.from(Array.from({ length: lines }, (_, i) => line(i)).join(''))
}

const small = text(40)
const large = text(4000)

function fixture(file: string): { codec: Codec; bytes: Buffer; plain: Buffer } {
  const codec = codecs[file.slice(file.lastIndexOf('.') + 1) as keyof typeof codecs]
  const plain = /^(small|skippable|old-kafka)/.test(file) ? small : large
  return { codec, bytes: readFileSync(new URL(file, folder)), plain }
}

function code(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    if (error instanceof RecordsError) return error.code
    throw error
  }
  return 'value'
}

test('there are fixtures of every codec', () => {
  for (const [name] of compressed)
    assert.ok(
      files.some((file) => file.endsWith(`.${name}`)),
      name,
    )
})

for (const file of files) {
  test(`${file} inflates, at exactly the limit too, and not beyond it`, () => {
    const { codec, bytes, plain } = fixture(file)
    assert.ok(decompress(codec, bytes, 1 << 26).equals(plain))
    assert.ok(decompress(codec, bytes, plain.length).equals(plain))
    assert.throws(() => decompress(codec, bytes, plain.length - 1), { code: 'HG_RECORDS_TOO_LARGE' })
    assert.throws(() => decompress(codec, bytes, 10), { code: 'HG_RECORDS_TOO_LARGE' })
  })
}

test('zstd inflates around the size that is inflated in one piece, with and without a content size', () => {
  const piece = 1 << 20
  for (const length of [0, 1, 63, 64, 65, 16_384, piece - 1, piece, piece + 1, 3 * piece]) {
    const plain = Buffer.alloc(length, 'a record ')
    const frame = compress(codecs.zstd, plain)
    assert.ok(decompress(codecs.zstd, frame, 4 * piece).equals(plain), `${length}`)
    assert.ok(decompress(codecs.zstd, Buffer.concat([frame, frame]), 8 * piece).equals(Buffer.concat([plain, plain])))
    if (length > 0) assert.throws(() => decompress(codecs.zstd, frame, length - 1), { code: 'HG_RECORDS_TOO_LARGE' })
  }
})

test('what ends early is an error of the codec, at every byte', () => {
  for (const file of files.filter((name) => /^(small|skippable|old-kafka)/.test(name))) {
    const { codec, bytes } = fixture(file)
    for (let length = 1; length < bytes.length; length++) {
      const outcome = code(() => decompress(codec, bytes.subarray(0, length), 1 << 20))
      assert.equal(outcome, 'HG_RECORDS_CODEC', `${file} at ${length}`)
    }
  }
})

test('compress and decompress are inverse, for small, large and empty input', () => {
  for (const plain of [
    Buffer.alloc(0),
    Buffer.of(7),
    small,
    large,
    Buffer.concat(Array.from({ length: 20 }, () => large)),
  ]) {
    for (const [name, codec] of compressed) {
      assert.ok(decompress(codec, compress(codec, plain), plain.length).equals(plain), `${name} ${plain.length}`)
    }
    assert.ok(decompress(codecs.snappy, compressXerial(plain), plain.length).equals(plain))
  }
})

test('xerial: a header again in the middle of the stream is stepped over', () => {
  const twice = Buffer.concat([compressXerial(small), compressXerial(large)])
  assert.ok(decompress(codecs.snappy, twice, 1 << 24).equals(Buffer.concat([small, large])))
})

test('xerial: the limit holds for all blocks together', () => {
  const framed = compressXerial(large)
  assert.equal(
    code(() => decompress(codecs.snappy, framed, large.length - 1)),
    'HG_RECORDS_TOO_LARGE',
  )
  assert.equal(
    code(() => decompress(codecs.snappy, framed.subarray(0, framed.length - 1), 1 << 24)),
    'HG_RECORDS_CODEC',
  )
})

/** A zstd frame of `blocks` blocks that say "128 KiB of zeros": 4 bytes each. */
function zstdBomb(blocks: number): Buffer {
  const bytes = Buffer.alloc(6 + blocks * 4)
  bytes.writeUInt32LE(0xfd2fb528, 0)
  bytes[5] = 7 << 3
  for (let i = 0; i < blocks; i++) {
    bytes.writeUIntLE(((128 * 1024) << 3) | 2 | (i === blocks - 1 ? 1 : 0), 6 + i * 4, 3)
  }
  return bytes
}

/** One lz4 block: a literal, then one match that repeats it for as long as its length bytes say. */
function lz4Bomb(lengthBytes: number): Buffer {
  const block = Buffer.concat([Buffer.of(0x1f, 0, 1, 0), Buffer.alloc(lengthBytes, 255), Buffer.of(0, 0x10, 0)])
  const frame = Buffer.from('04224d18607073', 'hex')
  const length = Buffer.alloc(4)
  length.writeUInt32LE(block.length)
  return Buffer.concat([frame, length, block, Buffer.alloc(4)])
}

test('bombs stop at the limit, with memory in proportion to it', () => {
  const limit = 1 << 20
  const bombs: [Codec, Buffer][] = [
    [codecs.zstd, zstdBomb(3200)],
    [codecs.lz4, lz4Bomb(100_000)],
    [codecs.gzip, compress(codecs.gzip, Buffer.alloc(64 << 20))],
    [codecs.snappy, compress(codecs.snappy, Buffer.alloc(64 << 20))],
  ]
  for (const [codec, bytes] of bombs) {
    assert.ok(bytes.length < 4 << 20 || codec === codecs.snappy)
    const before = process.memoryUsage().arrayBuffers
    const outcome = code(() => decompress(codec, bytes, limit))
    // A fallback may have stored the zeros as they are: then the input itself is over the limit.
    assert.equal(outcome, 'HG_RECORDS_TOO_LARGE', `codec ${codec}`)
    assert.ok(process.memoryUsage().arrayBuffers - before < 8 * limit, `codec ${codec}`)
  }
  assert.equal(decompress(codecs.zstd, zstdBomb(4), limit).length, 512 * 1024)
})

test('sizes that lie are refused before anything of that size is allocated', () => {
  const hugeSnappy = Buffer.from('ffffffff0f00', 'hex')
  assert.equal(
    code(() => decompress(codecs.snappy, hugeSnappy, 2 ** 33)),
    'HG_RECORDS_CODEC',
  )
  const hugeContent = Buffer.from('28b52ffde0ffffffffff000000010000', 'hex')
  assert.equal(
    code(() => decompress(codecs.zstd, hugeContent, 2 ** 50)),
    'HG_RECORDS_CODEC',
  )
  const window = zstdBomb(1)
  window[5] = 21 << 3
  assert.equal(
    code(() => decompress(codecs.zstd, window, 2 ** 40)),
    'HG_RECORDS_CODEC',
  )
  window[5] = 17 << 3
  const before = process.memoryUsage().arrayBuffers
  assert.equal(decompress(codecs.zstd, window, 1 << 20).length, 128 * 1024)
  assert.ok(process.memoryUsage().arrayBuffers - before < 8 << 20)
})

test('what needs a dictionary, is of another format or version, is an error', () => {
  const cases: [Codec, string][] = [
    [codecs.zstd, '28b52ffd0100' + '01' + '010000'],
    [codecs.zstd, '28b52ffd0838' + '010000'],
    [codecs.zstd, '1f8b0800'],
    [codecs.lz4, '04224d18617073' + '00000000' + '00000000'],
    [codecs.lz4, '04224d18a07073' + '00000000'],
    [codecs.lz4, '04224d18602073' + '00000000'],
    [codecs.lz4, '02214c18' + '00000000'],
    [codecs.gzip, '28b52ffd'],
    [codecs.snappy, ''],
    [codecs.zstd, ''],
    [codecs.lz4, ''],
    [codecs.gzip, ''],
    [codecs.zstd, '502a4d1800000000'],
    [codecs.snappy, '82534e4150505900' + '0000000100000001' + '00'],
  ]
  for (const [codec, hex] of cases) {
    assert.equal(
      code(() => decompress(codec, Buffer.from(hex, 'hex'), 1 << 20)),
      'HG_RECORDS_CODEC',
      hex,
    )
  }
})
