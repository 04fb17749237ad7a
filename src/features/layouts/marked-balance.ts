/**
 * Balances marked partitions (to be removed) apart from the others, in the assignment that the group's leader sends
 * with SyncGroup: no new data comes to them, so a member that happens to own many would otherwise have less to do.
 * Only marked partitions move, unmarked ones stay exactly where the leader's assignor put them. A cooperative member is
 * given a partition only when no other member still owns it; until then nobody is, as the protocol demands (KIP-429).
 */

export const balancedAssignors = ['range', 'roundrobin', 'sticky', 'cooperative-sticky'] as const
export type BalancedAssignor = (typeof balancedAssignors)[number]

export interface MemberShare {
  readonly member: string
  /** Topics it subscribed to. */
  readonly topics: readonly string[]
  /** Topic → partitions given by the leader. */
  readonly assigned: Readonly<Record<string, readonly number[]>>
  /** Topic → partitions it says it owns (subscription v1 and later; empty for eager members). */
  readonly owned: Readonly<Record<string, readonly number[]>>
}

export function isBalanced(assignor: string): assignor is BalancedAssignor {
  return (balancedAssignors as readonly string[]).includes(assignor)
}

/** The shares of all members with the marked partitions of one topic spread evenly; the same object where nothing moves. */
export function balanceMarked(
  shares: readonly MemberShare[],
  topic: string,
  marked: readonly number[],
  assignor: BalancedAssignor,
): readonly MemberShare[] {
  const given = marked.filter((partition) => shares.some((share) => isIn(share.assigned, topic, partition)))
  const takers = shares.filter((share) => share.topics.includes(topic))
  if (given.length === 0 || takers.length === 0) return shares
  const wanted = spread(given, topic, takers)
  const isCooperative = assignor === 'cooperative-sticky'
  return shares.map((share) => {
    const before = share.assigned[topic] ?? []
    const kept = before.filter((partition) => !given.includes(partition))
    const mine = given.filter((partition) => wanted.get(partition) === share.member)
    const free = mine.filter((partition) => !isCooperative || !isOwnedByAnother(shares, topic, partition, share.member))
    const after = [...kept, ...free].sort((a, b) => a - b)
    if (after.length === before.length && after.every((partition) => before.includes(partition))) return share
    return { ...share, assigned: { ...share.assigned, [topic]: after } }
  })
}

/** Marked partition → member: whoever has it keeps it up to an even share; the rest goes to those with least. */
function spread(given: readonly number[], topic: string, takers: readonly MemberShare[]): Map<number, string> {
  const most = Math.ceil(given.length / takers.length)
  let extra = given.length - (most - 1) * takers.length
  const wanted = new Map<number, string>()
  const counts = new Map(takers.map((share) => [share.member, 0]))
  for (const share of takers) {
    const has = given.filter(
      (partition) => isIn(share.owned, topic, partition) || isIn(share.assigned, topic, partition),
    )
    const mine = has.filter((partition) => !wanted.has(partition))
    const may = mine.length >= most && extra > 0 ? most : most - 1
    if (mine.length >= most && extra > 0) extra -= 1
    for (const partition of mine.slice(0, may)) wanted.set(partition, share.member)
    counts.set(share.member, Math.min(mine.length, may))
  }
  for (const partition of given.filter((p) => !wanted.has(p))) {
    const [member] = [...counts].reduce((least, next) => (next[1] < least[1] ? next : least))
    wanted.set(partition, member)
    counts.set(member, (counts.get(member) ?? 0) + 1)
  }
  return wanted
}

function isIn(partitions: Readonly<Record<string, readonly number[]>>, topic: string, partition: number): boolean {
  return partitions[topic]?.includes(partition) === true
}

function isOwnedByAnother(shares: readonly MemberShare[], topic: string, partition: number, member: string): boolean {
  return shares.some((share) => share.member !== member && isIn(share.owned, topic, partition))
}
