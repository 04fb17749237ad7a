/** Records as objects, of any magic and codec: for tools, tests and our own state log; hot paths use the cursor. */
import {
  HEADER_SIZE,
  attributeBits,
  attributesOf,
  baseOffsetOf,
  checkCrc,
  codecOf,
  codecs,
  isControl,
  isTransactional,
  lastOffsetDeltaOf,
  magicOf,
  producerIdOf,
  readLong,
  walkEntries,
} from './batch.ts'
import { inflate } from './inflate.ts'
import { visitMessages } from './legacy.ts'
import { RecordCursor } from './record.ts'

export interface ReadRecord {
  readonly offset: number
  /** Milliseconds since 1970; -1 where the format has none. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly { readonly name: string; readonly value: Buffer | null }[]
  readonly control: boolean
  readonly transactional: boolean
  readonly producerId: number
}

/**
 * All records of the complete entries of a `records` slice, control records too; a partial batch at the end is ignored.
 * @throws RecordsError when CRC, lengths, counts or compressed bytes are not right.
 */
export function readRecords(bytes: Buffer, maxInflatedBytes: number): ReadRecord[] {
  const records: ReadRecord[] = []
  walkEntries(bytes, (at, end) => {
    checkCrc(bytes, at, end)
    if (magicOf(bytes, at) < 2) readMessages(bytes, at, end, maxInflatedBytes, records)
    else readBatch(bytes, at, end, maxInflatedBytes, records)
  })
  return records
}

/** Puts a cursor in front of the records of the complete v2 batch [at, end), inflating them where they are compressed. */
export function openBatch(
  cursor: RecordCursor,
  bytes: Buffer,
  at: number,
  end: number,
  maxInflatedBytes: number,
): void {
  if (codecOf(bytes, at) !== codecs.none) {
    return openInflated(cursor, inflate(bytes, at + HEADER_SIZE, end, at, maxInflatedBytes), bytes, at)
  }
  const count = bytes.readInt32BE(at + 57)
  cursor.open(bytes, at + HEADER_SIZE, end, count, baseOffsetOf(bytes, at), lastOffsetDeltaOf(bytes, at), at)
}

/** Puts a cursor in front of the inflated records of the v2 batch whose header is at `at` of `bytes`. */
export function openInflated(cursor: RecordCursor, records: Buffer, bytes: Buffer, at: number): void {
  const count = bytes.readInt32BE(at + 57)
  cursor.open(records, 0, records.length, count, baseOffsetOf(bytes, at), lastOffsetDeltaOf(bytes, at), at)
}

function readBatch(bytes: Buffer, at: number, end: number, maxInflatedBytes: number, into: ReadRecord[]): void {
  const cursor = new RecordCursor()
  openBatch(cursor, bytes, at, end, maxInflatedBytes)
  const appendTime = (attributesOf(bytes, at) & attributeBits.LOG_APPEND_TIME) !== 0
  const baseTimestamp = readLong(bytes, at + 27, at)
  const maxTimestamp = readLong(bytes, at + 35, at)
  const control = isControl(bytes, at)
  const transactional = isTransactional(bytes, at)
  const producerId = producerIdOf(bytes, at)
  while (cursor.next()) {
    const headers: { name: string; value: Buffer | null }[] = []
    cursor.forEachHeader((nameStart, nameEnd, valueStart, valueEnd) => {
      const name = cursor.bytes.toString('utf8', nameStart, nameEnd)
      headers.push({ name, value: part(cursor.bytes, valueStart, valueEnd) })
    })
    into.push({
      offset: cursor.offset,
      timestamp: appendTime ? maxTimestamp : baseTimestamp + cursor.timestampDelta(),
      key: part(cursor.bytes, cursor.keyStart, cursor.keyEnd),
      value: part(cursor.bytes, cursor.valueStart, cursor.valueEnd),
      headers,
      control,
      transactional,
      producerId,
    })
  }
}

function readMessages(bytes: Buffer, at: number, end: number, maxInflatedBytes: number, into: ReadRecord[]): void {
  visitMessages(bytes, at, end, maxInflatedBytes, (message) => {
    into.push({
      offset: message.offset,
      timestamp: message.timestamp,
      key: part(message.bytes, message.keyStart, message.keyEnd),
      value: part(message.bytes, message.valueStart, message.valueEnd),
      headers: [],
      control: false,
      transactional: false,
      producerId: -1,
    })
  })
}

function part(bytes: Buffer, start: number, end: number): Buffer | null {
  return start < 0 ? null : bytes.subarray(start, end)
}
