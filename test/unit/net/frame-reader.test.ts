import assert from 'node:assert/strict'
import test from 'node:test'
import { CHUNK_BYTES, ChunkPool } from '../../../src/net/chunk-pool.ts'
import { FrameReader, type FrameSink } from '../../../src/net/frame-reader.ts'
import { sized } from '../../support/frames.ts'
import { Prng } from '../../support/prng.ts'

/** Keeps every frame it is given, and how it came. */
class Sink implements FrameSink {
  readonly frames: Buffer[] = []
  readonly ways: string[] = []
  readonly sizes: number[] = []
  long: 'stream' | 'gather' | 'stop' = 'stream'
  accept: (size: number) => boolean = () => true
  private pieces: Buffer[] = []

  onFrame(bytes: Buffer, at: number, total: number): void {
    this.keep('lent', Buffer.from(bytes.subarray(at, at + total)))
  }
  onOwnedFrame(buffer: Buffer, total: number): void {
    this.keep('owned', Buffer.from(buffer.subarray(0, total)))
  }
  onLongFrame(head: Buffer, total: number): 'stream' | 'gather' | 'stop' {
    assert.ok(total > CHUNK_BYTES)
    assert.equal(head.readInt32BE(0), total - 4)
    return this.long
  }
  onChunk(chunk: Buffer, length: number, last: boolean): void {
    assert.ok(length > 0 && length <= CHUNK_BYTES)
    this.pieces.push(Buffer.from(chunk.subarray(0, length)))
    if (!last) return
    this.keep('streamed', Buffer.concat(this.pieces))
    this.pieces = []
  }
  onSize(size: number): boolean {
    this.sizes.push(size)
    return this.accept(size)
  }
  private keep(way: string, frame: Buffer): void {
    this.ways.push(way)
    this.frames.push(frame)
  }
}

function frame(total: number, seed = total): Buffer {
  return sized(new Prng(seed).bytes(total))
}

/** Feeds bytes as a socket does: at most what the reader offers, cut also at the given positions. */
function feed(reader: FrameReader, bytes: Buffer, cuts: readonly number[] = [], now = 1): void {
  const stops = [...cuts, bytes.length].sort((a, b) => a - b)
  let at = 0
  for (const stop of stops) {
    while (at < stop) {
      const space = reader.buffer()
      assert.ok(space.length > 0, 'a socket must always be given room')
      const length = Math.min(space.length, stop - at)
      space.set(bytes.subarray(at, at + length))
      reader.onData(length, now)
      at += length
    }
  }
}

function check(sink: Sink, expected: readonly Buffer[]): void {
  assert.equal(sink.frames.length, expected.length)
  expected.forEach((each, i) => assert.ok(sink.frames[i]?.equals(each), `frame ${i} of ${each.length} bytes differs`))
}

const small = [8, 9, 30, 64, 200].map((total) => frame(total))

test('whole frames, glued to their neighbours', () => {
  const sink = new Sink()
  const reader = new FrameReader(sink, new ChunkPool())
  feed(reader, Buffer.concat(small))
  check(sink, small)
  assert.deepEqual(sink.ways, ['lent', 'lent', 'lent', 'lent', 'lent'])
  assert.equal(reader.incomplete, false)
  assert.equal(reader.partialSince, 0)
})

test('frames cut at every byte, alone and glued to their neighbours', () => {
  const all = Buffer.concat(small)
  for (let cut = 1; cut < all.length; cut++) {
    const sink = new Sink()
    feed(new FrameReader(sink, new ChunkPool()), all, [cut])
    check(sink, small)
  }
  const bytewise = new Sink()
  feed(new FrameReader(bytewise, new ChunkPool()), all, Array.from(all.keys()).slice(1))
  check(bytewise, small)
})

test('frames around the sizes at which the reader changes its ways', () => {
  const totals = [16383, 16384, 16385, 65535, 65536, 65537, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1]
  const frames = [...totals, 2 * CHUNK_BYTES - 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1, 1_000_003].map((n) => frame(n))
  const between = frame(40)
  for (const long of ['stream', 'gather'] as const) {
    for (const offset of [0, 1, 2, 3, 4, 5, 11, 12]) {
      const sink = new Sink()
      sink.long = long
      const all = frames.flatMap((each) => [each, between])
      // Each frame is cut `offset` bytes after its start, and once more that far before its end.
      let at = 0
      const cuts = all.flatMap((each) => {
        at += each.length
        return [at - each.length + offset, at - offset]
      })
      feed(new FrameReader(sink, new ChunkPool()), Buffer.concat(all), cuts)
      check(sink, all)
      for (const [i, each] of all.entries())
        if (each.length > CHUNK_BYTES) assert.equal(sink.ways[i], long === 'stream' ? 'streamed' : 'owned')
    }
  }
})

test('random frames in random pieces come out as they went in', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const prng = new Prng(seed)
    const sink = new Sink()
    sink.long = prng.below(2) === 0 ? 'stream' : 'gather'
    const frames = Array.from({ length: 12 }, (_, i) => {
      const kind = prng.below(10)
      return frame(kind < 6 ? prng.between(8, 400) : prng.between(8, kind < 9 ? 90_000 : 700_000), seed * 100 + i)
    })
    const all = Buffer.concat(frames)
    const cuts = Array.from({ length: 40 }, () => prng.between(1, all.length - 1))
    feed(new FrameReader(sink, new ChunkPool()), all, cuts)
    check(sink, frames)
  }
})

test('two readers share the scratch buffer without seeing each other', () => {
  const sinks = [new Sink(), new Sink()]
  const readers = sinks.map((sink) => new FrameReader(sink, new ChunkPool()))
  const streams = [1, 2].map((seed) => small.map((each) => frame(each.length, seed * 1000 + each.length)))
  const bytes = streams.map((frames) => Buffer.concat(frames))
  const step = 7
  for (let at = 0; at < (bytes[0]?.length ?? 0); at += step)
    readers.forEach((reader, i) => feed(reader, bytes[i]?.subarray(at, at + step) ?? Buffer.alloc(0)))
  sinks.forEach((sink, i) => check(sink, streams[i] ?? []))
})

test('a refused size stops the reader for good, whole and split', () => {
  for (const cuts of [[], [1], [3], [4]]) {
    const sink = new Sink()
    sink.accept = (size) => size !== 26
    const reader = new FrameReader(sink, new ChunkPool())
    feed(
      reader,
      Buffer.concat([frame(8), frame(30), frame(64)]),
      cuts.map((cut) => cut + 8),
    )
    check(sink, [frame(8)])
    assert.deepEqual(sink.sizes, [4, 26])
    assert.equal(reader.incomplete, false)
  }
})

test('a sink that stops the reader inside a frame gets nothing more', () => {
  class Once extends Sink {
    reader: FrameReader | undefined
    override onFrame(bytes: Buffer, at: number, total: number): void {
      super.onFrame(bytes, at, total)
      this.reader?.stop()
    }
  }
  const sink = new Once()
  const reader = (sink.reader = new FrameReader(sink, new ChunkPool()))
  feed(reader, Buffer.concat(small))
  check(sink, small.slice(0, 1))
  feed(reader, Buffer.concat(small))
  check(sink, small.slice(0, 1))
})

test('a long frame that is refused when its first chunk is here', () => {
  const sink = new Sink()
  sink.long = 'stop'
  const reader = new FrameReader(sink, new ChunkPool())
  feed(reader, Buffer.concat([frame(CHUNK_BYTES + 10), frame(8)]))
  check(sink, [])
  assert.equal(reader.incomplete, false)
})

test('what is incomplete since when, and whether its header is', () => {
  const reader = new FrameReader(new Sink(), new ChunkPool())
  const bytes = frame(100)
  feed(reader, bytes.subarray(0, 2), [], 10)
  assert.deepEqual(
    [reader.incomplete, reader.waitsForHeader, reader.partialSince, reader.lastByteAt],
    [true, true, 10, 10],
  )
  feed(reader, bytes.subarray(2, 6), [], 20)
  assert.deepEqual(
    [reader.incomplete, reader.waitsForHeader, reader.partialSince, reader.lastByteAt],
    [true, true, 10, 20],
  )
  feed(reader, bytes.subarray(6, 40), [], 30)
  assert.deepEqual(
    [reader.incomplete, reader.waitsForHeader, reader.partialSince, reader.lastByteAt],
    [true, false, 10, 30],
  )
  feed(reader, bytes.subarray(40), [], 40)
  assert.deepEqual(
    [reader.incomplete, reader.waitsForHeader, reader.partialSince, reader.lastByteAt],
    [false, false, 0, 40],
  )
})

test('pooled chunks are handed over or given back, never both', () => {
  const pool = new ChunkPool()
  const sink = new Sink()
  sink.long = 'gather'
  feed(new FrameReader(sink, pool), frame(CHUNK_BYTES * 3))
  assert.equal(pool.unused, 1, 'the first chunk of a gathered frame goes back')
})
