/**
 * Which keys move when a partition count changes. Every known partitioner places a key at `hash mod count`, so by the
 * Chinese remainder theorem some key lies in p under a and in q under b exactly when p ≡ q (mod gcd(a, b)).
 */
import type { GateKind, Order } from '../../state/record.ts'
import type { TopicState } from '../../state/topic-state.ts'

export function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}

/** Whether some key lies in partition p of a layout with count a and in q of one with count b. */
export function shareKeys(p: number, a: number, q: number, b: number): boolean {
  return p < a && q < b && (p - q) % gcd(a, b) === 0
}

/** The other partitions of the layout with count `from` that hold keys which partition p of count `to` has now. */
export function parentsOf(p: number, to: number, from: number): number[] {
  const step = gcd(to, from)
  const parents: number[] = []
  for (let q = p % step; q < from; q += step) if (q !== p) parents.push(q)
  return parents
}

/** Partitions of the new layout that an older one had too and that gain keys by the change. */
export function existingThatGain(from: number, to: number): number[] {
  return range(0, Math.min(from, to)).filter((p) => parentsOf(p, to, from).length > 0)
}

/** Partitions from `from` up to, not including, `to`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)
}

/**
 * How a change to `to` partitions is gated. The seal is enough only where no existing partition gains keys and every
 * new one is fresh: in a partition that an earlier layout had, old and new batches look alike. Where an instance writes
 * through two proxies no proxy can tell when its batches of the old layout have all come, so the seal is used whatever
 * the order, where it is enough.
 */
export function gateKindOf(topic: TopicState, to: number, order: Order): GateKind {
  const counts = topic.layouts.map((layout) => layout.count)
  const from = counts.at(-1) ?? 0
  const isFresh = from === Math.max(...counts)
  const wantsSeal = order === 'key' || topic.split !== undefined
  return wantsSeal && to > from && isFresh && existingThatGain(from, to).length === 0 ? 'seal' : 'cuts'
}
