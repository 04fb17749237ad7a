/**
 * Per key, first deliveries ascend: in one partition by offset, of one producer by sequence, and across producers
 * wherever one record was acknowledged before the other was sent. Re-deliveries are another rule's business, so only
 * the first delivery of each record to a group counts, and what a member hands out that the group has given up is no
 * delivery to the group. A run under `order: producer` is judged per (producer, key).
 */
import { GivenUp } from '../given-up.ts'
import type { DeliveredEvent } from '../history.ts'
import type { Entry, Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'

interface Latest {
  value: number
  event: DeliveredEvent | undefined
}

const none = (): Latest => ({ value: Number.NEGATIVE_INFINITY, event: undefined })

export const keyOrder: Rule = {
  name: 'key-order',
  about: 'first deliveries of a key ascend',
  judge(index, report) {
    const seen = new Grid<Set<number>>(() => new Set())
    const byPartition = new Map<number, Grid<Latest>>()
    const byProducer = new Map<number, Grid<Latest>>()
    const bySent = new Grid(none)
    const givenUp = new GivenUp(index)
    return {
      see(entry) {
        const { event, group, key, partition, origin } = entry
        givenUp.see(entry)
        if (event.event !== 'delivered' || key < 0 || givenUp.has(entry)) return
        const before = seen.at(group, key)
        if (before.has(origin)) return
        before.add(origin)
        const record = index.origins[origin]
        const producer = record?.producer ?? -1
        ascend(grid(byPartition, group).at(partition, key), event.offset, event, 'offset', report)
        if (index.lives.get(producer)?.ordered !== false) {
          ascend(grid(byProducer, group).at(producer, key), event.sequence, event, 'sequence', report)
        }
        if (index.settings.perProducer !== true) afterAcknowledged(index, entry, event, bySent.at(group, key), report)
      },
    }
  },
}

function grid(grids: Map<number, Grid<Latest>>, group: number): Grid<Latest> {
  let found = grids.get(group)
  if (found === undefined) grids.set(group, (found = new Grid(none)))
  return found
}

function ascend(latest: Latest, value: number, event: DeliveredEvent, what: string, report: Report): void {
  if (value < latest.value) {
    report(`key ${event.key}: ${what} ${value} first delivered after ${what} ${latest.value}`, latest.event, event)
  } else {
    latest.value = value
    latest.event = event
  }
}

/** `latest.value`: the latest time at which any record of the key that was delivered so far had been sent. */
function afterAcknowledged(index: Index, entry: Entry, event: DeliveredEvent, latest: Latest, report: Report): void {
  const record = index.origins[entry.origin]
  const slack = index.settings.slack ?? 0
  if (record?.acknowledged !== undefined && record.acknowledged.at + slack < latest.value) {
    report(
      `key ${event.key}: first delivered after a record that was sent when this one had been acknowledged`,
      record.acknowledged,
      latest.event,
      event,
    )
  }
  if (record?.sent !== undefined && record.sent.at > latest.value) {
    latest.value = record.sent.at
    latest.event = event
  }
}
