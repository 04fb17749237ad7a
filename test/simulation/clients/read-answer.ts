/**
 * What a consumer makes of the records of one partition in a Fetch answer: control records and aborted transactions are
 * left out, what lies below the position too. Written apart from the proxy's own code, whose judge it is.
 */
import { lastOffsetOf, walkEntries } from '../../../src/records/batch.ts'
import { readRecords, type ReadRecord } from '../../../src/records/read.ts'
import type { ConsumerFamily } from './families.ts'

const MAX_INFLATED_BYTES = 16 * 1024 * 1024
const ABORT = 0

export interface Visible {
  records: ReadRecord[]
  /** Where the family goes on reading. */
  next: number
}

/** An answer that some family does not survive, though the wire format allows it. */
export class UselessAnswer extends Error {}

/**
 * Throws where the records hold nothing for the consumer at `position`: kafkajs and sarama ask for the same again, and
 * again, and librdkafka doubles its fetch size each time until it reports an error (measured).
 */
export function expectUseful(bytes: Buffer, position: number): void {
  if (bytes.length === 0) return
  const records = readRecords(bytes, MAX_INFLATED_BYTES)
  if (records.some((record) => !record.control && record.offset >= position)) return
  throw new UselessAnswer(`${bytes.length} bytes and ${records.length} records, none for a consumer at ${position}`)
}

export function visibleRecords(
  bytes: Buffer,
  position: number,
  aborted: readonly { producerId: number; firstOffset: number }[],
  family: Pick<ConsumerFamily, 'position' | 'isolation'>,
): Visible {
  let batchEnd = position
  walkEntries(bytes, (at) => {
    batchEnd = Math.max(batchEnd, lastOffsetOf(bytes, at) + 1)
  })
  const all = readRecords(bytes, MAX_INFLATED_BYTES)
  const open = family.isolation === 1 ? Array.from(aborted).sort((a, b) => a.firstOffset - b.firstOffset) : []
  const inAborted = new Set<number>()
  const records: ReadRecord[] = []
  let lastRecord = -1
  for (const record of all) {
    while (open[0] !== undefined && open[0].firstOffset <= record.offset) inAborted.add(open.shift()?.producerId ?? -1)
    if (record.control) {
      if (record.key?.readInt16BE(2) === ABORT) inAborted.delete(record.producerId)
      lastRecord = record.offset
      continue
    }
    lastRecord = record.offset
    if (record.transactional && inAborted.has(record.producerId)) continue
    if (record.offset >= position) records.push(record)
  }
  const next = family.position === 'batch' ? batchEnd : Math.max(position, lastRecord + 1)
  return { records, next }
}
