/**
 * No record of a new partition before its parents' last: where a topic grew and the boundaries are known, a group is
 * given nothing that the new layout placed in a new partition until it has done every record that the old layout placed
 * in the partitions from which keys moved there. With a multiple of the old count that is one parent; else all.
 */
import type { LayoutEvent } from '../history.ts'
import type { Entry, Index } from '../run-index.ts'
import { Grid, type Report, type Rule } from '../rule.ts'
import { lowerBound } from './commit-not-above-processed.ts'

interface Parent {
  partition: number
  boundary: number
  /** Group → how many of the known offsets are known to be done. */
  judged: Map<number, number>
}

interface Child {
  layout: LayoutEvent
  start: number
  parents: Parent[]
}

export const childAfterParents: Rule = {
  name: 'child-after-parents',
  about: 'no record of a new partition before its parents’ last',
  judge(index, report) {
    const done = new Grid<Set<number>>(() => new Set())
    const children = findChildren(index)
    const first = new Grid<Set<number>>(() => new Set())
    return {
      see(entry) {
        const { event, group, partition } = entry
        if (event.event === 'done') done.at(group, partition).add(event.offset)
        if (event.event !== 'delivered') return
        const given = first.at(group, partition)
        const again = given.has(event.offset)
        given.add(event.offset)
        if (event.done === true || index.settings.processed === 'delivered') done.at(group, partition).add(event.offset)
        if (again) return
        for (const child of children.get(partition) ?? []) {
          if (event.offset >= child.start) judgeChild(index, entry, child, done, report)
        }
      },
    }
  },
}

function findChildren(index: Index): Map<number, Child[]> {
  const children = new Map<number, Child[]>()
  for (const { event: layout } of index.entries) {
    if (layout.event !== 'layout' || layout.to <= layout.from) continue
    const multiple = layout.to % layout.from === 0
    for (let number = layout.from; number < layout.to; number++) {
      const parents = Object.entries(layout.boundaries)
        .filter(([parent]) => !multiple || Number(parent) === number % layout.from)
        .map(([parent, boundary]) => ({
          partition: index.partition(layout.topic, Number(parent)),
          boundary,
          judged: new Map<number, number>(),
        }))
      const partition = index.partition(layout.topic, number)
      const child = { layout, start: layout.starts?.[number] ?? 0, parents }
      children.set(partition, [...(children.get(partition) ?? []), child])
    }
  }
  return children
}

function judgeChild(index: Index, entry: Entry, child: Child, done: Grid<Set<number>>, report: Report): void {
  for (const parent of child.parents) {
    const { known = [] } = index.partitions[parent.partition] ?? {}
    const finished = done.at(entry.group, parent.partition)
    let at = parent.judged.get(entry.group) ?? lowerBound(known, index.begin(entry.group, parent.partition))
    while ((known[at] ?? parent.boundary) < parent.boundary && finished.has(known[at] ?? 0)) at++
    parent.judged.set(entry.group, at)
    const offset = known[at] ?? parent.boundary
    if (offset < parent.boundary) {
      report(`given before offset ${offset} of its parent was done`, child.layout, entry.event)
      return
    }
  }
}
