/**
 * Writing v2 batches: for our own state log, the fake broker and tests. What is left out has the value that a producer
 * without idempotence writes; a leader sets base offset and epoch afterwards (`placeBatch`).
 */
import { type Codec, HEADER_SIZE, LENGTH_END, attributeBits, codecs, writeCrc } from './batch.ts'
import { compress } from './compression/compress.ts'
import { controlKey, controlValue } from './control.ts'
import { varintSize, varlongSize, writeVarint, writeVarlong } from './varint.ts'

export interface RecordToWrite {
  readonly key?: Uint8Array | null
  readonly value?: Uint8Array | null
  readonly headers?: readonly { readonly name: string; readonly value: Uint8Array | null }[]
  /** Milliseconds since 1970; that of the batch when left out. */
  readonly timestamp?: number
  /** Distance to the base offset; one more than the record before when left out. */
  readonly offsetDelta?: number
}

export interface BatchToWrite {
  readonly records: readonly RecordToWrite[]
  readonly baseOffset?: number
  readonly leaderEpoch?: number
  readonly codec?: Codec
  /** Milliseconds since 1970, 0 when left out. */
  readonly baseTimestamp?: number
  /** The latest of the records when left out; with `logAppendTime` it is the time of all. */
  readonly maxTimestamp?: number
  readonly logAppendTime?: boolean
  readonly transactional?: boolean
  readonly control?: boolean
  readonly deleteHorizon?: boolean
  /** The last record's when left out; larger where records were removed from the end. */
  readonly lastOffsetDelta?: number
  readonly producerId?: number
  readonly producerEpoch?: number
  readonly baseSequence?: number
}

/** The bytes of one batch. */
export function buildBatch(batch: BatchToWrite): Buffer {
  const baseTimestamp = batch.baseTimestamp ?? batch.records[0]?.timestamp ?? 0
  const { payload, lastDelta, latest } = writeRecords(batch.records, baseTimestamp)
  const codec = batch.codec ?? codecs.none
  const body = codec === codecs.none ? payload : compress(codec, payload)
  const bytes = Buffer.allocUnsafeSlow(HEADER_SIZE + body.length)
  bytes.writeBigInt64BE(BigInt(batch.baseOffset ?? 0), 0)
  bytes.writeInt32BE(bytes.length - LENGTH_END, 8)
  bytes.writeInt32BE(batch.leaderEpoch ?? -1, 12)
  bytes[16] = 2
  bytes.writeInt16BE(codec | flags(batch), 21)
  bytes.writeInt32BE(batch.lastOffsetDelta ?? lastDelta, 23)
  bytes.writeBigInt64BE(BigInt(baseTimestamp), 27)
  bytes.writeBigInt64BE(BigInt(batch.maxTimestamp ?? latest), 35)
  bytes.writeBigInt64BE(BigInt(batch.producerId ?? -1), 43)
  bytes.writeInt16BE(batch.producerEpoch ?? -1, 51)
  bytes.writeInt32BE(batch.baseSequence ?? -1, 53)
  bytes.writeInt32BE(batch.records.length, 57)
  bytes.set(body, HEADER_SIZE)
  writeCrc(bytes, 0, bytes.length)
  return bytes
}

export interface MarkerToWrite {
  readonly type: number
  readonly producerId: number
  readonly producerEpoch: number
  readonly coordinatorEpoch?: number
  readonly baseOffset?: number
  readonly leaderEpoch?: number
  readonly timestamp?: number
}

/** The control batch that ends a transaction: `type` is one of `controlTypes`. */
export function buildMarker(marker: MarkerToWrite): Buffer {
  return buildBatch({
    records: [{ key: controlKey(marker.type), value: controlValue(marker.coordinatorEpoch ?? 0) }],
    baseOffset: marker.baseOffset ?? 0,
    leaderEpoch: marker.leaderEpoch ?? -1,
    baseTimestamp: marker.timestamp ?? 0,
    producerId: marker.producerId,
    producerEpoch: marker.producerEpoch,
    transactional: true,
    control: true,
  })
}

function flags(batch: BatchToWrite): number {
  return (
    (batch.logAppendTime === true ? attributeBits.LOG_APPEND_TIME : 0) |
    (batch.transactional === true ? attributeBits.TRANSACTIONAL : 0) |
    (batch.control === true ? attributeBits.CONTROL : 0) |
    (batch.deleteHorizon === true ? attributeBits.DELETE_HORIZON : 0)
  )
}

function writeRecords(
  records: readonly RecordToWrite[],
  baseTimestamp: number,
): { payload: Buffer; lastDelta: number; latest: number } {
  let lastDelta = -1
  let latest = records.length === 0 ? -1 : Number.NEGATIVE_INFINITY
  let total = 0
  const plans = records.map((record) => {
    const offsetDelta = record.offsetDelta ?? lastDelta + 1
    const timestamp = record.timestamp ?? baseTimestamp
    lastDelta = Math.max(lastDelta, offsetDelta)
    latest = Math.max(latest, timestamp)
    const headers = (record.headers ?? []).map(({ name, value }) => ({ name: Buffer.from(name), value }))
    const size =
      1 +
      varlongSize(timestamp - baseTimestamp) +
      varintSize(offsetDelta) +
      sizeWithLength(record.key ?? null) +
      sizeWithLength(record.value ?? null) +
      varintSize(headers.length) +
      headers.reduce((sum, header) => sum + sizeWithLength(header.name) + sizeWithLength(header.value), 0)
    total += varintSize(size) + size
    return { record, headers, size, offsetDelta, timestampDelta: timestamp - baseTimestamp }
  })
  const payload = Buffer.allocUnsafeSlow(total)
  let at = 0
  for (const { record, headers, size, offsetDelta, timestampDelta } of plans) {
    at = writeVarint(payload, at, size)
    payload[at++] = 0
    at = writeVarlong(payload, at, timestampDelta)
    at = writeVarint(payload, at, offsetDelta)
    at = writeWithLength(payload, at, record.key ?? null)
    at = writeWithLength(payload, at, record.value ?? null)
    at = writeVarint(payload, at, headers.length)
    for (const header of headers) {
      at = writeWithLength(payload, at, header.name)
      at = writeWithLength(payload, at, header.value)
    }
  }
  return { payload, lastDelta: Math.max(lastDelta, 0), latest }
}

function sizeWithLength(bytes: Uint8Array | null): number {
  return bytes === null ? 1 : varintSize(bytes.length) + bytes.length
}

function writeWithLength(target: Buffer, at: number, bytes: Uint8Array | null): number {
  if (bytes === null) return writeVarint(target, at, -1)
  at = writeVarint(target, at, bytes.length)
  target.set(bytes, at)
  return at + bytes.length
}
