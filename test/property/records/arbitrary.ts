/** Random `records` slices: batches of every codec and kind, messages of magic 0 and 1, in log order. */
import fc from 'fast-check'
import { codecs } from '../../../src/records/batch.ts'
import { type RecordToWrite, buildBatch, buildMarker } from '../../../src/records/build.ts'
import { buildMessage, buildWrapper } from '../../unit/records/legacy-build.ts'

export const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))
export const nullable = fc.option(bytes, { freq: 4 })

export interface Gap {
  /** How many offsets are missing in front of the record. */
  readonly gap: number
  readonly record: RecordToWrite
}

const gappedRecord: fc.Arbitrary<Gap> = fc.record({
  gap: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 300 }) }),
  record: fc.record({
    key: nullable,
    value: nullable,
    headers: fc.array(fc.record({ name: fc.string({ maxLength: 5 }), value: nullable }), { maxLength: 2 }),
    timestamp: fc.oneof(
      fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      fc.maxSafeNat().map((n) => Math.floor(n / 4)),
    ),
  }),
})

/** Writes a piece of log from an offset on; the offset after it. */
export type Piece = (baseOffset: number) => { bytes: Buffer; nextOffset: number }

const dataBatch: fc.Arbitrary<Piece> = fc
  .record({
    gapped: fc.array(gappedRecord, { maxLength: 12 }),
    removedFromEnd: fc.integer({ min: 0, max: 3 }),
    codec: fc.constantFrom(...Object.values(codecs)),
    logAppendTime: fc.boolean(),
    transactional: fc.boolean(),
    deleteHorizon: fc.boolean(),
    producerId: fc.integer({ min: -1, max: 3 }),
    baseSequence: fc.integer({ min: -1, max: 100 }),
  })
  .map(({ gapped, removedFromEnd, ...batch }) => (baseOffset) => {
    let delta = -1
    const records = gapped.map(({ gap, record }) => ({ ...record, offsetDelta: (delta += 1 + gap) }))
    const lastOffsetDelta = Math.max(delta, 0) + removedFromEnd
    const built = buildBatch({ ...batch, baseOffset, records, lastOffsetDelta, leaderEpoch: 7, producerEpoch: 1 })
    return { bytes: built, nextOffset: baseOffset + lastOffsetDelta + 1 }
  })

const marker: fc.Arbitrary<Piece> = fc
  .record({ type: fc.constantFrom(0, 1), producerId: fc.integer({ min: 0, max: 3 }) })
  .map(({ type, producerId }) => (baseOffset) => ({
    bytes: buildMarker({ type, producerId, producerEpoch: 1, baseOffset }),
    nextOffset: baseOffset + 1,
  }))

const legacy: fc.Arbitrary<Piece> = fc
  .record({
    magic: fc.constantFrom(0 as const, 1 as const),
    fields: fc.array(fc.record({ key: nullable, value: nullable, timestamp: fc.nat() }), {
      minLength: 1,
      maxLength: 6,
    }),
    codec: fc.constantFrom(codecs.none, codecs.gzip, codecs.snappy, codecs.lz4),
    logAppendTime: fc.boolean(),
  })
  .map(({ magic, fields, codec, logAppendTime }) => (baseOffset) => {
    const messages = fields.map((field, i) => ({ ...field, magic, offset: baseOffset + i }))
    const built =
      codec === codecs.none
        ? Buffer.concat(messages.map(buildMessage))
        : buildWrapper(messages, codec, 5000, logAppendTime && magic === 1)
    return { bytes: built, nextOffset: baseOffset + fields.length }
  })

export const piece = fc.oneof(
  { weight: 6, arbitrary: dataBatch },
  { weight: 1, arbitrary: marker },
  { weight: 1, arbitrary: legacy },
)

export interface Slice {
  readonly bytes: Buffer
  readonly firstOffset: number
  readonly nextOffset: number
}

/** A slice of whole entries, with gaps between them as compaction leaves them. */
export const slice: fc.Arbitrary<Slice> = fc
  .record({
    firstOffset: fc.oneof(fc.nat({ max: 100 }), fc.constant(2 ** 40)),
    pieces: fc.array(fc.record({ piece, gap: fc.nat({ max: 2 }) }), { maxLength: 6 }),
  })
  .map(({ firstOffset, pieces }) => {
    const parts: Buffer[] = []
    let offset = firstOffset
    for (const { piece: write, gap } of pieces) {
      const written = write(offset + gap)
      parts.push(written.bytes)
      offset = written.nextOffset
    }
    return { bytes: Buffer.concat(parts), firstOffset, nextOffset: offset }
  })
