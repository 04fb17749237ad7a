/** Record batches as people want to see them: counts and sizes, and the records themselves only when asked for. */
import { codecOf, entryEnd, isControl, isTransactional, magicOf } from '../../records/batch.ts'
import { RecordsError } from '../../records/errors.ts'
import { readRecords } from '../../records/read.ts'
import { batchHead, layoutBytes } from './layouts.ts'

const codecNames = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
/** What a compressed batch may inflate to here. */
const maxInflatedBytes = 16 * 1024 * 1024

export interface ShownBatch {
  readonly offsets: string
  readonly count: number
  readonly bytes: number
  readonly codec: string
  readonly leaderEpoch: number
  readonly producer?: string
  readonly transactional?: true
  readonly control?: true
  readonly records?: readonly ShownRecord[]
}

export interface ShownRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: string | null
  readonly value: string | null
}

/** @param withRecords their keys and values too, as text where they are text, else in base64 */
export function describeRecords(bytes: Buffer, withRecords: boolean): unknown {
  const batches: ShownBatch[] = []
  let at = 0
  try {
    while (at < bytes.length) {
      const end = entryEnd(bytes, at)
      if (end < 0) break
      batches.push(magicOf(bytes, at) === 2 ? describe(bytes.subarray(at, end), withRecords) : old(bytes, at, end))
      at = end
    }
  } catch (error) {
    if (!(error instanceof RecordsError)) throw error
    return { bytes: bytes.length, batches, problem: error.message }
  }
  return { bytes: bytes.length, batches, ...(at < bytes.length ? { cutOff: bytes.length - at } : {}) }
}

function describe(batch: Buffer, withRecords: boolean): ShownBatch {
  const head = batchHead.parse(batch.subarray(0, layoutBytes.batch))
  const first = Number(head.baseOffset)
  const records = withRecords && !isControl(batch, 0) ? { records: show(batch) } : {}
  return {
    offsets: `${first}-${first + head.lastOffsetDelta}`,
    count: head.count,
    bytes: batch.length,
    codec: codecNames[codecOf(batch, 0)] ?? 'unknown',
    leaderEpoch: head.leaderEpoch,
    ...(head.producerId >= 0n
      ? { producer: `${head.producerId}/${head.producerEpoch} from ${head.baseSequence}` }
      : {}),
    ...(isTransactional(batch, 0) ? { transactional: true } : {}),
    ...(isControl(batch, 0) ? { control: true } : {}),
    ...records,
  }
}

function old(bytes: Buffer, at: number, end: number): ShownBatch {
  const offset = Number(bytes.readBigInt64BE(at))
  const codec = codecNames[codecOf(bytes, at)] ?? 'unknown'
  return { offsets: `${offset}`, count: 1, bytes: end - at, codec, leaderEpoch: -1 }
}

function show(batch: Buffer): ShownRecord[] {
  return readRecords(batch, maxInflatedBytes).map(({ offset, timestamp, key, value }) => ({
    offset,
    timestamp,
    key: text(key),
    value: text(value),
  }))
}

function text(bytes: Buffer | null): string | null {
  if (bytes === null) return null
  const plain = bytes.toString('utf8')
  return Buffer.from(plain, 'utf8').equals(bytes) ? plain : `base64:${bytes.toString('base64')}`
}
