/** Where batches end, and in which leader epoch: what is remembered of records that were looked through. Pure. */
import { entryEnd, lastOffsetOf, leaderEpochOf } from '../../records/batch.ts'
import { RecordsError } from '../../records/errors.ts'

/**
 * The leader epoch of the last batch that lies below `offset` as a whole; undefined if there is none.
 * @param records well-formed as far as they go: they have been read
 */
export function epochBefore(records: Buffer, offset: number): number | undefined {
  let epoch: number | undefined
  for (let at = 0; at < records.length; ) {
    const end = entryEnd(records, at)
    if (end < 0 || lastOffsetOf(records, at) >= offset) break
    epoch = leaderEpochOf(records, at)
    at = end
  }
  return epoch
}

/**
 * How many bytes of `records` are whole batches that lie below `offset` as a whole, from the first on; counting ends where
 * a batch is damaged.
 */
export function bytesBelow(records: Buffer, offset: number): number {
  let at = 0
  try {
    while (at < records.length) {
      const end = entryEnd(records, at)
      if (end < 0 || lastOffsetOf(records, at) >= offset) return at
      at = end
    }
  } catch (error) {
    if (!(error instanceof RecordsError)) throw error
  }
  return at
}

/** The end offsets (exclusive) of the batches that end behind `offset`: where a client may go on after these bytes. */
export function batchEndsAfter(slices: readonly Buffer[], offset: number): number[] {
  const ends: number[] = []
  for (const slice of slices) {
    for (let at = 0; at < slice.length; ) {
      const next = entryEnd(slice, at)
      if (next < 0) break
      const end = lastOffsetOf(slice, at) + 1
      if (end > offset) ends.push(end)
      at = next
    }
  }
  return ends
}
