/**
 * Up to which offset a group may be given the records of each partition.
 *
 * The log's changes and cuts are gone through in log order, keeping the limit of every partition from what was recorded
 * before. *Seal*: records of a fresh partition from `start` on wait for the seal, and until for every partition q that
 * keys came from under any layout that was unsettled then, the group is done up to q's boundary and q's own earlier
 * gates are open there. *Cut*: records of p from C[p] on wait, sealed or not, until the same holds for every q that
 * shares keys with p under two of the cut's layouts, at C[q]. Only earlier items are asked, and ends only grow in log
 * order, so no two gates wait for each other.
 *
 * Invariant: progress is what a group committed, never a fetch offset or position: prefetch runs ahead of processing,
 * and after a crash the tail would be replayed behind its successors.
 */
import type { Cut, Layout, TopicState } from '../../state/topic-state.ts'
import { widestCount } from '../../state/topic-state.ts'
import { parentsOf, range, shareKeys } from './keys-moving.ts'

/** Whether the group is done with partition q up to `end`: committed that far, or nothing deliverable is left below. */
export type Done = (q: number, end: number) => boolean

/** Why records of a partition wait. */
export interface Wait {
  readonly partition: number
  /** Records at or above this offset wait. */
  readonly from: number
  /** For the seal of this epoch, or for `parent` to be done up to `until`. */
  readonly seal?: number
  readonly cut?: string
  readonly parent?: number
  readonly until?: number
}

export interface Gates {
  /** Partition → exclusive limit of what may be delivered; Infinity where nothing waits. */
  readonly limits: readonly number[]
  readonly waits: readonly Wait[]
}

/** The gates of one group on one topic, from the state of the log and the group's progress. */
export function gatesOf(topic: TopicState, done: Done): Gates {
  const limits = range(0, widestCount(topic)).map(() => Infinity)
  const waits: Wait[] = []
  const items = [
    ...topic.layouts.map((layout) => ({ at: layout.openedAt, layout })),
    ...topic.cuts.map((cut) => ({ at: cut.at, cut })),
  ].sort((a, b) => a.at - b.at)
  for (const item of items) {
    const found = 'cut' in item ? cutWaits(topic, item.cut, limits, done) : sealWaits(topic, item.layout, limits, done)
    for (const wait of found) limits[wait.partition] = Math.min(limits[wait.partition] ?? Infinity, wait.from)
    waits.push(...found)
  }
  return { limits, waits }
}

function sealWaits(topic: TopicState, layout: Layout, earlier: readonly number[], done: Done): Wait[] {
  if (layout.gates !== 'seal') return []
  const older = topic.layouts.filter((other) => layout.unsettled.includes(other.epoch))
  const waits: Wait[] = []
  for (const [name, from] of Object.entries(layout.starts)) {
    const partition = Number(name)
    const seal = layout.seal
    if (seal === undefined) {
      waits.push({ partition, from, seal: layout.epoch })
      continue
    }
    const parents = new Set(older.flatMap((other) => parentsOf(partition, layout.count, other.count)))
    for (const parent of parents) {
      const until = seal.boundaries[parent] ?? 0
      if (!isPassed(parent, until, earlier, done)) waits.push({ partition, from, seal: layout.epoch, parent, until })
    }
  }
  return waits
}

function cutWaits(topic: TopicState, cut: Cut, earlier: readonly number[], done: Done): Wait[] {
  const counts = topic.layouts.filter((layout) => cut.layouts.includes(layout.epoch)).map((layout) => layout.count)
  const ends = Object.entries(cut.ends).map(([name, end]) => ({ q: Number(name), end }))
  const behind = ends.filter(({ q, end }) => !isPassed(q, end, earlier, done))
  // There may be hundreds of cuts, and a group is past nearly all of them.
  if (behind.length === 0) return []
  return ends.flatMap(({ q: partition, end: from }) =>
    behind
      .filter(({ q }) => q !== partition && meet(partition, q, counts))
      .map(({ q: parent, end: until }) => ({ partition, from, cut: cut.id, parent, until })),
  )
}

/** Above its limit, not at it: a gate that q has no record behind yet must be open too, or a key moves past it twice. */
function isPassed(q: number, end: number, earlier: readonly number[], done: Done): boolean {
  return (earlier[q] ?? Infinity) > end && done(q, end)
}

/** Whether some key may lie in p under one of the counts and in q under another. */
function meet(p: number, q: number, counts: readonly number[]): boolean {
  return counts.some((a) => counts.some((b) => shareKeys(p, a, q, b)))
}
