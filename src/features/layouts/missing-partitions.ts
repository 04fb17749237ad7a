/**
 * Gives partitions that a group's leader does not know yet to members with least to do, in the assignment that it sends:
 * for leaders that nothing but their own refresh makes aware of them. Whoever is given one asks for Metadata, and a leader
 * that then sees more partitions assigns anew.
 *
 * Invariant: a partition that some member says it owns is given to nobody here. A cooperative leader leaves it out while
 * it moves (KIP-429), so not every partition above those that are given is one that the leader does not know.
 */
import type { MemberShare } from '../../editors/groups/policy.ts'
import { range } from './keys-moving.ts'

/** @param count as many partitions as the topic has; the same array where none is missing or nobody subscribes to it */
export function withMissing(shares: readonly MemberShare[], topic: string, count: number): readonly MemberShare[] {
  const given = shares.flatMap(({ assigned }) => assigned[topic] ?? [])
  const owned = new Set(shares.flatMap((share) => share.owned[topic] ?? []))
  const above = range(Math.max(0, ...given.map((partition) => partition + 1)), count)
  const missing = above.filter((partition) => !owned.has(partition))
  const load = new Map(
    shares
      .filter(({ topics }) => topics.includes(topic))
      .map((share) => [share.member, Object.values(share.assigned).flat().length]),
  )
  if (given.length === 0 || missing.length === 0 || load.size === 0) return shares
  const takes = new Map<string, number[]>()
  for (const partition of missing) {
    const [member = ''] = [...load].reduce((least, other) => (other[1] < least[1] ? other : least))
    load.set(member, (load.get(member) ?? 0) + 1)
    takes.set(member, [...(takes.get(member) ?? []), partition])
  }
  return shares.map((share) => {
    const more = takes.get(share.member)
    if (more === undefined) return share
    return { ...share, assigned: { ...share.assigned, [topic]: [...(share.assigned[topic] ?? []), ...more] } }
  })
}
