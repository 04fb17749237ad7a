/**
 * The committed offset is never above what was processed, and never goes back. Plain: every known record between where
 * the group began and the commit is done, by whichever member. Shared: every record that this member was given below
 * its commit is done. A member whose name begins with `@` (the harness, reading the broker) is always judged as plain.
 * "Back" is judged against the member's own last commit and against what was committed when it was assigned the
 * partition, so that a late line of a former owner proves nothing.
 */
import type { CommittedEvent } from '../history.ts'
import { assignedPartitions, type Entry, type Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'

interface Last {
  offset: number
  commit: CommittedEvent | undefined
  /** After a seek: behind the last record delivered since. A commit above it was under way before, and does not count. */
  soughtUpTo?: number
}

export const commitNotAboveProcessed: Rule = {
  name: 'commit-not-above-processed',
  about: 'the committed offset is never above what was processed and never goes back',
  judge(index, report) {
    const judge = new Progress(index, report)
    return { see: (entry) => judge.see(entry) }
  },
}

class Progress {
  readonly #index: Index
  readonly #report: Report
  readonly #done = new Grid<Set<number>>(() => new Set())
  /** (member, partition) → offsets given and not done. */
  readonly #open = new Grid<Set<number>>(() => new Set())
  /** (group, partition) → how many of the known offsets have been judged. */
  readonly #judged = new Grid(() => ({ count: -1 }))
  readonly #last = new Grid<Last>(() => ({ offset: -1, commit: undefined }))
  readonly #floor = new Grid<Last>(() => ({ offset: -1, commit: undefined }))

  constructor(index: Index, report: Report) {
    this.#index = index
    this.#report = report
  }

  see(entry: Entry): void {
    const { event, group, client, partition } = entry
    switch (event.event) {
      case 'delivered':
        this.#reach(client, partition, event.offset)
        if (event.done === true || this.#index.settings.processed === 'delivered') this.#finish(entry, event.offset)
        else this.#open.at(client, partition).add(event.offset)
        break
      case 'done':
        this.#finish(entry, event.offset)
        break
      case 'sought':
        this.#floor.set(client, partition, { offset: -1, commit: undefined, soughtUpTo: event.offset })
        break
      case 'assigned':
        for (const p of assignedPartitions(this.#index, event)) {
          this.#floor.set(client, p, { ...this.#last.at(group, p) })
          this.#open.at(client, p).clear()
        }
        break
      case 'committed':
        this.#commit(entry, event)
        break
      default:
        break
    }
  }

  #finish({ group, client, partition }: Entry, offset: number): void {
    this.#done.at(group, partition).add(offset)
    this.#open.peek(client, partition)?.delete(offset)
  }

  #commit(entry: Entry, event: CommittedEvent): void {
    const { group, client, partition } = entry
    const facts = this.#index.partitions[partition]
    const floor = this.#floor.at(client, partition)
    const moved = facts !== undefined && facts.truncatedFrom < floor.offset
    if (event.offset < floor.offset && !moved) this.#report('the committed offset went back', floor.commit, event)
    if (event.offset <= (floor.soughtUpTo ?? event.offset))
      Object.assign(floor, { offset: event.offset, commit: event })
    this.#last.set(group, partition, { offset: event.offset, commit: event })
    if (this.#index.settings.shared === true && !event.member.startsWith('@')) this.#judgeShared(entry, event)
    else this.#judgePlain(entry, event)
  }

  #reach(client: number, partition: number, offset: number): void {
    const floor = this.#floor.peek(client, partition)
    if (floor?.soughtUpTo !== undefined) floor.soughtUpTo = Math.max(floor.soughtUpTo, offset + 1)
  }

  #judgeShared({ client, partition }: Entry, event: CommittedEvent): void {
    for (const offset of this.#open.at(client, partition)) {
      const inRange = event.ranges?.some(([from, to]) => offset >= from && offset < to) === true
      if (offset >= event.offset && !inRange) continue
      this.#report(`committed, but this member has not done offset ${offset}`, event)
      return
    }
  }

  #judgePlain({ group, partition }: Entry, event: CommittedEvent): void {
    const facts = this.#index.partitions[partition]
    if (facts === undefined) return
    const begin = this.#index.begin(group, partition)
    const judged = this.#judged.at(group, partition)
    if (judged.count < 0) judged.count = lowerBound(facts.known, begin)
    const done = this.#done.at(group, partition)
    const judge = (at: number): boolean => {
      const offset = facts.known[at] ?? 0
      if (done.has(offset) || this.#excused(facts.origins.get(offset) ?? -1, facts.topic)) return true
      this.#report(`committed ${event.offset}, but offset ${offset} is not done`, event)
      return false
    }
    while (judged.count < facts.known.length && (facts.known[judged.count] ?? 0) < event.offset) {
      if (!judge(judged.count++)) break
    }
    for (const [from, to] of event.ranges ?? []) {
      for (let at = lowerBound(facts.known, from); (facts.known[at] ?? to) < to; at++) if (!judge(at)) break
    }
  }

  /** Records that no consumer has to be given: of a transaction that may have aborted, or compacted away. */
  #excused(origin: number, topic: string): boolean {
    return this.#index.outcome(origin) === 'unknown' || this.#index.compactedTopics.has(topic)
  }
}

/** The first place in an ascending list whose value is not below `value`. */
export function lowerBound(list: readonly number[], value: number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
