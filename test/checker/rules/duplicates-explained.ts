/**
 * Every duplicate has a cause. A record given to a group twice: a member ended or died, or the partition changed hands,
 * since the first time (where partitions are not shared, a new owner is cause enough: the old one may not know yet), or
 * the application sought. A record written twice: the application sent it twice, or its producer is not idempotent and
 * gave it up, or was disturbed while it was under way.
 */
import type { DeliveredEvent, HistoryEvent } from '../history.ts'
import { assignedPartitions, type Entry, type Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'

interface Last {
  entry: Entry
  /** Index of the event by which the member came to own the partition. */
  stint: number
}

export const duplicatesExplained: Rule = {
  name: 'duplicates-explained',
  about: 'every duplicate follows a crash, a rebalance, a seek or a re-send',
  judge(index, report) {
    const deliveries = new Redeliveries(index, report)
    const places = new Map<number, Entry>()
    return {
      see(entry) {
        deliveries.see(entry)
        const { event } = entry
        if (event.event === 'delivered' || event.event === 'acknowledged') judgeDouble(index, places, entry, report)
      },
    }
  },
}

class Redeliveries {
  readonly #index: Index
  readonly #report: Report
  readonly #last = new Map<number, Grid<Last | undefined>>()
  /** Group → index of the last start, end or death of a member; (group, partition) → of its last change of hands. */
  readonly #membership = new Map<number, number>()
  readonly #hands = new Grid(() => ({ at: -1 }))
  readonly #stints = new Grid(() => ({ at: -1 }))
  readonly #groupOf = new Map<number, number>()

  constructor(index: Index, report: Report) {
    this.#index = index
    this.#report = report
  }

  see(entry: Entry): void {
    const { event, group, client, partition, index } = entry
    switch (event.event) {
      case 'started':
      case 'closed':
      case 'crashed':
        this.#membership.set(group >= 0 ? group : (this.#groupOf.get(client) ?? -1), index)
        break
      case 'assigned':
      case 'revoked':
      case 'lost':
        for (const p of assignedPartitions(this.#index, event)) {
          this.#hands.at(group, p).at = index
          this.#stints.at(client, p).at = index
        }
        break
      case 'sought':
        this.#hands.at(group, partition).at = index
        break
      case 'delivered':
        this.#groupOf.set(client, group)
        this.#judge(entry, event)
        break
      default:
        break
    }
  }

  #judge(entry: Entry, event: DeliveredEvent): void {
    const { group, client, partition } = entry
    let ofGroup = this.#last.get(group)
    if (ofGroup === undefined) this.#last.set(group, (ofGroup = new Grid<Last | undefined>(() => undefined)))
    const before = ofGroup.peek(partition, event.offset)
    const stint = this.#stints.peek(client, partition)?.at ?? -1
    if (before !== undefined) {
      const disturbed = Math.max(this.#membership.get(group) ?? -1, this.#hands.peek(group, partition)?.at ?? -1)
      const changedHands = before.entry.client !== client || before.stint !== stint
      const explained = disturbed > before.entry.index || (this.#index.settings.shared !== true && changedHands)
      if (!explained) this.#report('delivered twice without cause', before.entry.event, event)
    }
    ofGroup.set(partition, event.offset, { entry, stint })
  }
}

function judgeDouble(index: Index, places: Map<number, Entry>, entry: Entry, report: Report): void {
  const first = places.get(entry.origin)
  if (first === undefined) {
    places.set(entry.origin, entry)
    return
  }
  const event = entry.event as DeliveredEvent
  const same = first.partition === entry.partition && (first.event as DeliveredEvent).offset === event.offset
  if (same || wasResent(index, entry, first.event)) return
  report('written twice without cause', index.origins[entry.origin]?.sent, first.event, event)
  places.delete(entry.origin)
}

function wasResent(index: Index, entry: Entry, first: HistoryEvent): boolean {
  const record = index.origins[entry.origin]
  if (record === undefined || record.timesSent > 1) return true
  if (index.lives.get(record.producer)?.idempotent === true) return false
  if (record.failed) return true
  const from = record.sent?.at ?? Number.NEGATIVE_INFINITY
  const until = Math.max(first.at, entry.event.at)
  return index.faults.some((fault) => fault.at <= until && (fault.until ?? fault.at) >= from)
}
