/**
 * The log cleaner: of each key only the last record below a bound stays. Offsets never change. A batch that loses all
 * records goes, unless it is its producer's last: that one stays with no records, as a broker keeps it, and is sent to
 * consumers so. Markers and tombstones stay; records of aborted transactions go.
 */
import { isControl, readHeader } from '../records/batch.ts'
import { buildBatch, type RecordToWrite } from '../records/build.ts'
import { readRecords } from '../records/read.ts'
import type { Aborted, StoredBatch } from './stored-batch.ts'

const MAX_INFLATED_BYTES = 64 * 1024 * 1024

/** The batches that are left. `lastOfProducers`: base offsets of batches that are kept even when empty. */
export function compactBatches(
  batches: readonly StoredBatch[],
  below: number,
  lastOfProducers: ReadonlySet<number>,
  aborted: readonly Aborted[],
): StoredBatch[] {
  const lastOfKey = new Map<string, number>()
  const clean = batches.filter((b) => b.last < below && !isControl(b.bytes, 0))
  for (const batch of clean) {
    if (isAborted(batch, aborted)) continue
    for (const { key, offset } of readRecords(batch.bytes, MAX_INFLATED_BYTES)) {
      if (key !== null) lastOfKey.set(key.toString('latin1'), offset)
    }
  }
  return batches.flatMap((batch) => {
    if (!clean.includes(batch)) return [batch]
    const kept = isAborted(batch, aborted) ? [] : survivors(batch, lastOfKey)
    if (kept.length === 0 && !lastOfProducers.has(batch.base)) return []
    return [rebuild(batch, kept)]
  })
}

function isAborted(batch: StoredBatch, aborted: readonly Aborted[]): boolean {
  return aborted.some(
    (a) => a.producerId === batch.producerId && batch.base >= a.firstOffset && batch.base < a.markerOffset,
  )
}

function survivors(batch: StoredBatch, lastOfKey: ReadonlyMap<string, number>): RecordToWrite[] {
  return readRecords(batch.bytes, MAX_INFLATED_BYTES)
    .filter(({ key, offset }) => key === null || lastOfKey.get(key.toString('latin1')) === offset)
    .map(({ key, value, headers, timestamp, offset }) => ({
      key,
      value,
      headers,
      timestamp,
      offsetDelta: offset - batch.base,
    }))
}

function rebuild(batch: StoredBatch, records: RecordToWrite[]): StoredBatch {
  const header = readHeader(batch.bytes, 0)
  if (records.length === header.recordCount) return batch
  const bytes = buildBatch({ ...header, records })
  return { ...batch, bytes }
}
