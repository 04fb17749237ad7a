/**
 * Control records: the markers a transaction coordinator writes into a partition when a transaction ends (KIP-98).
 * Key: version int16, type int16. Value of the two markers: version int16, coordinator epoch int32.
 */
import { HEADER_SIZE, baseOffsetOf, lastOffsetDeltaOf } from './batch.ts'
import { corrupt } from './errors.ts'
import { RecordCursor } from './record.ts'

export const controlTypes = { abort: 0, commit: 1 } as const

/**
 * The type of the control batch [at, end): 0 ABORT, 1 COMMIT, others belong to KRaft's own log.
 * @throws RecordsError when it holds no readable control record.
 */
export function controlTypeOf(bytes: Buffer, at: number, end: number): number {
  const cursor = new RecordCursor()
  const count = bytes.readInt32BE(at + 57)
  cursor.open(bytes, at + HEADER_SIZE, end, count, baseOffsetOf(bytes, at), lastOffsetDeltaOf(bytes, at), at)
  if (!cursor.next()) throw corrupt(at, 'control batch without a record')
  if (cursor.keyEnd - cursor.keyStart < 4) throw corrupt(at, 'control record without a type')
  return bytes.readInt16BE(cursor.keyStart + 2)
}

/** Key of a control record of `type`. */
export function controlKey(type: number): Buffer {
  const key = Buffer.alloc(4)
  key.writeInt16BE(type, 2)
  return key
}

/** Value of a COMMIT or ABORT marker. */
export function controlValue(coordinatorEpoch: number): Buffer {
  const value = Buffer.alloc(6)
  value.writeInt32BE(coordinatorEpoch, 2)
  return value
}
