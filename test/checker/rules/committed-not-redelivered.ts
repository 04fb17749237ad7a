/**
 * Nothing below an acknowledged commit is delivered again, to whoever was assigned the partition after the commit was
 * acknowledged, or to the member that committed, unless it sought. A plain commit speaks for everything below its
 * offset; a range commit, and any commit where partitions are shared, for those records that its member was given.
 */
import type { CommittedEvent, DeliveredEvent } from '../history.ts'
import { assignedPartitions, type Entry, type Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'

interface Floor {
  offset: number
  commit: Entry | undefined
  /** After a seek: behind the last record delivered since. A commit above it was under way before, and does not count. */
  soughtUpTo?: number
}

interface Covered {
  commit: Entry
  first: DeliveredEvent
}

export const committedNotRedelivered: Rule = {
  name: 'committed-not-redelivered',
  about: 'nothing below an acknowledged commit is delivered again',
  judge(index, report) {
    const judge = new Commits(index, report)
    return { see: (entry) => judge.see(entry) }
  },
}

class Commits {
  readonly #index: Index
  readonly #report: Report
  readonly #committed = new Grid<Floor>(() => ({ offset: -1, commit: undefined }))
  readonly #floors = new Grid<Floor>(() => ({ offset: -1, commit: undefined }))
  readonly #assigned = new Grid(() => ({ at: -1 }))
  /** (group, partition) → offset → its first delivery. */
  readonly #given = new Grid<Map<number, DeliveredEvent>>(() => new Map())
  /** (member, partition) → offset → a delivery that no commit of this member speaks for yet. */
  readonly #uncovered = new Grid<Map<number, DeliveredEvent>>(() => new Map())
  readonly #covered = new Grid<Map<number, Covered>>(() => new Map())

  constructor(index: Index, report: Report) {
    this.#index = index
    this.#report = report
  }

  see(entry: Entry): void {
    const { event, group, client, partition } = entry
    switch (event.event) {
      case 'assigned':
        for (const p of assignedPartitions(this.#index, event)) {
          this.#assigned.at(client, p).at = entry.index
          this.#floors.set(client, p, { ...this.#committed.at(group, p) })
        }
        break
      case 'sought': {
        const floor = this.#floors.at(client, partition)
        floor.offset = Math.min(floor.offset, event.offset)
        floor.soughtUpTo = event.offset
        const covered = this.#covered.at(group, partition)
        for (const offset of covered.keys()) if (offset >= event.offset) covered.delete(offset)
        break
      }
      case 'committed':
        this.#commit(entry, event)
        break
      case 'delivered':
        this.#deliver(entry, event)
        break
      default:
        break
    }
  }

  #commit(entry: Entry, event: CommittedEvent): void {
    const { group, client, partition } = entry
    const shared = this.#index.settings.shared === true
    if (!shared) {
      this.#committed.set(group, partition, { offset: event.offset, commit: entry })
      const own = this.#floors.at(client, partition)
      if (event.offset <= (own.soughtUpTo ?? event.offset)) Object.assign(own, { offset: event.offset, commit: entry })
      if (event.ranges === undefined) return
    }
    const uncovered = this.#uncovered.at(client, partition)
    const covered = this.#covered.at(group, partition)
    for (const [offset, first] of uncovered) {
      const inRange = event.ranges?.some(([from, to]) => offset >= from && offset < to) === true
      if (!inRange && (!shared || offset >= event.offset)) continue
      covered.set(offset, { commit: entry, first })
      uncovered.delete(offset)
    }
  }

  #deliver(entry: Entry, event: DeliveredEvent): void {
    const { group, client, partition } = entry
    const own = this.#floors.peek(client, partition)
    if (own?.soughtUpTo !== undefined) own.soughtUpTo = Math.max(own.soughtUpTo, event.offset + 1)
    const given = this.#given.at(group, partition)
    const first = given.get(event.offset)
    if (first === undefined) given.set(event.offset, event)
    else {
      const floor = this.#floors.peek(client, partition)
      const below = floor !== undefined && event.offset < floor.offset ? floor.commit : undefined
      const covered = this.#covered.peek(group, partition)?.get(event.offset)
      const counts =
        covered !== undefined &&
        (covered.commit.client === client || covered.commit.index < (this.#assigned.peek(client, partition)?.at ?? 0))
      const commit = below ?? (counts ? covered.commit : undefined)
      if (commit !== undefined) this.#report('delivered again below an acknowledged commit', first, commit.event, event)
    }
    this.#uncovered.at(client, partition).set(event.offset, event)
  }
}
