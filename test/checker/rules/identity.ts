/**
 * Offsets keep their identity: a place (topic, partition, offset) names one record for ever, whether it is told by the
 * producer's acknowledgement or by a delivery to any group. Only a truncated log may use its offsets again; then a record
 * that had been sent before may still be told of afterwards (its acknowledgement was under way, a member had it buffered).
 */
import type { AcknowledgedEvent, DeliveredEvent, LogEvent } from '../history.ts'
import type { Entry, Index } from '../run-index.ts'
import type { Rule } from '../rule.ts'

interface Places {
  byOffset: Map<number, Entry>
  truncations: LogEvent[]
}

export const identity: Rule = {
  name: 'identity',
  about: 'a place names the same record for ever',
  judge(index, report) {
    const partitions = new Map<number, Places>()
    return {
      see(entry) {
        const { event } = entry
        const places = placesOf(partitions, entry.partition)
        if (event.event === 'truncated') {
          for (const offset of places.byOffset.keys()) if (offset >= event.offset) places.byOffset.delete(offset)
          places.truncations.push(event)
        }
        if (event.event !== 'delivered' && event.event !== 'acknowledged') return
        const first = places.byOffset.get(event.offset)
        if (first === undefined) {
          places.byOffset.set(event.offset, entry)
          return
        }
        const before = first.event as AcknowledgedEvent | DeliveredEvent
        if (first.origin === entry.origin) {
          if (before.key !== event.key) report('one record, two keys', before, event)
        } else if (!overwritten(index, places, event.offset, first, entry)) {
          report('one place, two records', before, event)
        } else if (event.event === 'delivered' || before.event === 'acknowledged') {
          places.byOffset.set(event.offset, entry)
        }
      },
    }
  },
}

function placesOf(partitions: Map<number, Places>, partition: number): Places {
  let places = partitions.get(partition)
  if (places === undefined) partitions.set(partition, (places = { byOffset: new Map(), truncations: [] }))
  return places
}

/** Whether one of two records at the place had been sent before the log was cut there. */
function overwritten(index: Index, { truncations }: Places, offset: number, ...records: Entry[]): boolean {
  const cut = truncations.findLast((truncation) => truncation.offset <= offset)
  if (cut === undefined) return false
  const until = cut.at + (index.settings.slack ?? 0)
  return records.some(({ origin }) => (index.origins[origin]?.sent?.at ?? Number.NEGATIVE_INFINITY) <= until)
}
