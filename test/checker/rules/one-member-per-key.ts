/**
 * No key is at two live members at once: while one member has a record of a key that it was given and has not done,
 * no other member of the group is given one. A member that ended, died or gave the partition up holds nothing.
 * A run under `order: producer` is judged per (producer, key).
 */
import type { DeliveredEvent, HistoryEvent } from '../history.ts'
import { GivenUp } from '../given-up.ts'
import { assignedPartitions, type Entry, type Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'

interface Open {
  member: number
  key: number
  event: DeliveredEvent
}

interface Suspicion {
  open: Open
  event: HistoryEvent
}

export const oneMemberPerKey: Rule = {
  name: 'one-member-per-key',
  about: 'no key is at two live members at once',
  judge(index, report) {
    const judge = new KeyHolders(index, report)
    return { see: (entry) => judge.see(entry), end: () => judge.end() }
  },
}

class KeyHolders {
  readonly #index: Index
  readonly #report: Report
  /** (group, key) → what is open. */
  readonly #byKey = new Grid<Set<Open>>(() => new Set())
  /** (member, partition) → offset → what is open. */
  readonly #byPlace = new Grid<Map<number, Open>>(() => new Map())
  readonly #keyIds = new Grid(() => ({ id: -1 }))
  #nextKey = 0
  readonly #givenUp: GivenUp
  readonly #suspicions: Suspicion[] = []
  readonly #groups = new Map<number, number>()

  constructor(index: Index, report: Report) {
    this.#index = index
    this.#report = report
    this.#givenUp = new GivenUp(index)
  }

  see(entry: Entry): void {
    const { event, client, partition } = entry
    this.#givenUp.see(entry)
    switch (event.event) {
      case 'delivered':
        if (entry.key >= 0 && !this.#givenUp.has(entry)) this.#deliver(entry, event)
        break
      case 'done':
        this.#release(client, partition, event.offset, event.at)
        break
      case 'revoked':
      case 'lost':
        for (const p of assignedPartitions(this.#index, event)) this.#releaseAll(client, p, event.at)
        break
      case 'closed':
      case 'crashed':
        for (const p of this.#byPlace.row(client).keys()) this.#releaseAll(client, p, event.at)
        break
      default:
        break
    }
  }

  end(): void {
    for (const { open, event } of this.#suspicions) this.#report('a key at two members at once', open.event, event)
  }

  #deliver(entry: Entry, event: DeliveredEvent): void {
    const key = this.#keyOf(entry)
    this.#groups.set(entry.client, entry.group)
    const holders = this.#byKey.at(entry.group, key)
    for (const open of holders) {
      if (open.member !== entry.client) this.#suspicions.push({ open, event })
    }
    if (event.done === true) return
    const open = { member: entry.client, key, event }
    this.#release(entry.client, entry.partition, event.offset, event.at)
    holders.add(open)
    this.#byPlace.at(entry.client, entry.partition).set(event.offset, open)
  }

  #keyOf(entry: Entry): number {
    if (this.#index.settings.perProducer !== true) return entry.key
    const cell = this.#keyIds.at(entry.key, this.#index.origins[entry.origin]?.producer ?? -1)
    if (cell.id < 0) cell.id = this.#nextKey++
    return cell.id
  }

  #release(member: number, partition: number, offset: number, at: number): void {
    const places = this.#byPlace.peek(member, partition)
    const open = places?.get(offset)
    if (places === undefined || open === undefined) return
    places.delete(offset)
    this.#byKey.at(this.#groups.get(member) ?? -1, open.key).delete(open)
    const slack = this.#index.settings.slack ?? 0
    for (let i = this.#suspicions.length - 1; i >= 0; i--) {
      const suspicion = this.#suspicions[i]
      if (suspicion === undefined || at - suspicion.event.at > slack) break
      if (slack > 0 && suspicion.open === open) this.#suspicions.splice(i, 1)
    }
  }

  #releaseAll(member: number, partition: number, at: number): void {
    for (const offset of this.#byPlace.peek(member, partition)?.keys() ?? []) {
      this.#release(member, partition, offset, at)
    }
  }
}
