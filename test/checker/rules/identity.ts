/**
 * Offsets keep their identity: a place (topic, partition, offset) names one record for ever, whether it is told by the
 * producer's acknowledgement or by a delivery to any group. Only a truncated log may use its offsets again.
 */
import type { AcknowledgedEvent, DeliveredEvent } from '../history.ts'
import type { Entry } from '../run-index.ts'
import type { Rule } from '../rule.ts'

export const identity: Rule = {
  name: 'identity',
  about: 'a place names the same record for ever',
  judge(index, report) {
    const records = new Map<number, Map<number, Entry>>()
    return {
      see(entry) {
        const { event, partition } = entry
        if (event.event === 'truncated') {
          const places = records.get(partition)
          for (const offset of places?.keys() ?? []) if (offset >= event.offset) places?.delete(offset)
        }
        if (event.event !== 'delivered' && event.event !== 'acknowledged') return
        let places = records.get(partition)
        if (places === undefined) records.set(partition, (places = new Map<number, Entry>()))
        const first = places.get(event.offset)
        if (first === undefined) {
          places.set(event.offset, entry)
          return
        }
        const before = first.event as AcknowledgedEvent | DeliveredEvent
        const truncated = event.offset >= (index.partitions[partition]?.truncatedFrom ?? Number.POSITIVE_INFINITY)
        if (first.origin !== entry.origin && !truncated) report('one place, two records', before, event)
        else if (before.key !== event.key) report('one record, two keys', before, event)
      },
    }
  },
}
