/**
 * Balances marked partitions (to be removed) apart from the others, in the assignment that the group's leader sends
 * with SyncGroup: no new data comes to them, so a member that happens to own many would otherwise have less to do.
 * Only marked partitions move, unmarked ones stay exactly where the leader's assignor put them. A cooperative member is
 * given a partition only when no other member still owns it; until then nobody is, as the protocol demands (KIP-429).
 */

import type { MemberShare } from '../../editors/groups/policy.ts'

/**
 * Protocol names of the assignors whose assignment may be changed without harm, in all families: none of them derives
 * its next plan from anything but what members were in fact given or say they own. (sarama's sticky tells members its
 * own plan as user data; its next plan then starts from that one, and is changed in the same way again.)
 */
const assignors: Readonly<Record<string, 'eager' | 'cooperative'>> = {
  range: 'eager',
  roundrobin: 'eager',
  // kafkajs
  RoundRobinAssigner: 'eager',
  sticky: 'eager',
  'cooperative-sticky': 'cooperative',
}

export function isBalanced(assignor: string): boolean {
  return Object.hasOwn(assignors, assignor)
}

/** The shares of all members with the marked partitions of one topic spread evenly; the same array where nothing moves. */
export function balanceMarked(
  shares: readonly MemberShare[],
  topic: string,
  marked: readonly number[],
  assignor: string,
): readonly MemberShare[] {
  const given = marked.filter((partition) => shares.some((share) => isIn(share.assigned, topic, partition)))
  const takers = shares.filter((share) => share.topics.includes(topic))
  if (given.length === 0 || takers.length === 0) return shares
  const wanted = spread(given, topic, takers)
  const isCooperative = assignors[assignor] === 'cooperative'
  const planned = shares.map((share) => {
    const before = share.assigned[topic] ?? []
    const kept = before.filter((partition) => !given.includes(partition))
    const mine = given.filter((partition) => wanted.get(partition) === share.member)
    const free = mine.filter((partition) => !isCooperative || !isOwnedByAnother(shares, topic, partition, share.member))
    const after = [...kept, ...free].sort((a, b) => a - b)
    if (after.length === before.length && after.every((partition) => before.includes(partition))) return share
    return { ...share, assigned: { ...share.assigned, [topic]: after } }
  })
  return planned.every((share, index) => share === shares[index]) ? shares : planned
}

/**
 * Marked partition → member: whoever has it keeps it up to an even share; the rest goes to those with least. What does
 * not divide goes to members with fewer partitions altogether, so that a sticky leader finds nothing to even out next
 * time.
 */
function spread(given: readonly number[], topic: string, takers: readonly MemberShare[]): Map<number, string> {
  const least = Math.floor(given.length / takers.length)
  const others = new Map(takers.map((share) => [share.member, countOthers(share, topic, given)]))
  const has = (share: MemberShare): number =>
    given.filter((partition) => isIn(share.owned, topic, partition) || isIn(share.assigned, topic, partition)).length
  const ordered = [...takers].sort(
    (a, b) => (others.get(a.member) ?? 0) - (others.get(b.member) ?? 0) || has(b) - has(a),
  )
  const extras = new Set(ordered.slice(0, given.length % takers.length).map((share) => share.member))
  const room = new Map(takers.map(({ member }) => [member, least + (extras.has(member) ? 1 : 0)]))
  const wanted = new Map<number, string>()
  const give = (partition: number, member: string): void => {
    wanted.set(partition, member)
    room.set(member, (room.get(member) ?? 0) - 1)
  }
  for (const field of ['owned', 'assigned'] as const) {
    for (const share of takers) {
      for (const partition of given) {
        const mayKeep = !wanted.has(partition) && (room.get(share.member) ?? 0) > 0
        if (mayKeep && isIn(share[field], topic, partition)) give(partition, share.member)
      }
    }
  }
  for (const partition of given) {
    if (wanted.has(partition)) continue
    const taker = ordered.find(({ member }) => (room.get(member) ?? 0) > 0)
    if (taker !== undefined) give(partition, taker.member)
  }
  return wanted
}

/** Partitions that it is given and that are not marked ones of this topic. */
function countOthers({ assigned }: MemberShare, topic: string, marked: readonly number[]): number {
  return Object.entries(assigned).reduce(
    (sum, [name, partitions]) =>
      sum + partitions.filter((partition) => name !== topic || !marked.includes(partition)).length,
    0,
  )
}

function isIn(partitions: Readonly<Record<string, readonly number[]>>, topic: string, partition: number): boolean {
  return partitions[topic]?.includes(partition) === true
}

function isOwnedByAnother(shares: readonly MemberShare[], topic: string, partition: number, member: string): boolean {
  return shares.some((share) => share.member !== member && isIn(share.owned, topic, partition))
}
