/** How many offsets the records of a batch take. */
import { entryEnd, lastOffsetDeltaOf, magicOf } from '../../records/batch.ts'

/** At least: a compressed message of the old formats (magic 0 and 1) counts as one. 0 for what cannot be read. */
export function recordCount(records: Buffer): number {
  let count = 0
  try {
    for (let at = 0; at < records.length; ) {
      const end = entryEnd(records, at)
      if (end < 0) return count
      count += magicOf(records, at) < 2 ? 1 : lastOffsetDeltaOf(records, at) + 1
      at = end
    }
  } catch {
    return count // the broker refuses it
  }
  return count
}
