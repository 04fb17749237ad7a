/**
 * Balances marked partitions (to be removed) and the others of a topic each for themselves (KIP-253), in the assignment
 * that the group's leader sends with SyncGroup: no new data comes to marked ones, and "range" over all of them would
 * give one member nothing else, as a sticky assignor does when a member joins. Other topics are not touched. A
 * cooperative member is given a partition only when no other member still owns it; until then nobody is, as the protocol
 * demands (KIP-429).
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

/**
 * The shares of all members with both kinds of partitions of one topic spread evenly; the same array where nothing moves,
 * which is always so where nobody is given a marked one.
 */
export function balanceMarked(
  shares: readonly MemberShare[],
  topic: string,
  marked: readonly number[],
  assignor: string,
): readonly MemberShare[] {
  const isMarked = new Set(marked)
  const given = shares.flatMap((share) => share.assigned[topic] ?? []).sort((a, b) => a - b)
  const takers = shares.filter((share) => share.topics.includes(topic))
  if (takers.length === 0 || !given.some((partition) => isMarked.has(partition))) return shares
  const kinds = [
    given.filter((partition) => !isMarked.has(partition)),
    given.filter((partition) => isMarked.has(partition)),
  ]
  const wanted = assignor === 'range' ? inRanges(kinds, topic, takers) : inPlace(kinds, topic, takers)
  const isCooperative = assignors[assignor] === 'cooperative'
  const before = holders(shares, topic, 'assigned')
  const isFree = (partition: number, member: string): boolean =>
    !isCooperative || before.get(partition) === member || !isOwnedByAnother(shares, topic, partition, member)
  const planned = shares.map((share) => {
    const had = share.assigned[topic] ?? []
    const after = given.filter((partition) => wanted.get(partition) === share.member && isFree(partition, share.member))
    if (after.length === had.length && after.every((partition) => had.includes(partition))) return share
    return { ...share, assigned: { ...share.assigned, [topic]: after } }
  })
  return planned.every((share, index) => share === shares[index]) ? shares : planned
}

/**
 * Partition → member as "range" does it, for each kind: neighbours, in the order in which the leader gave them out. What
 * one kind does not divide goes on where that of the kind before ended. Topics with the same counts go the same way, which
 * is why people choose "range".
 */
function inRanges(kinds: readonly number[][], topic: string, takers: readonly MemberShare[]): Map<number, string> {
  const lowest = ({ assigned }: MemberShare): number => Math.min(Infinity, ...(assigned[topic] ?? []))
  const ordered = takers
    .map((share) => ({ member: share.member, lowest: lowest(share) }))
    .sort((a, b) => (a.lowest === b.lowest ? 0 : a.lowest - b.lowest))
  const wanted = new Map<number, string>()
  let extra = 0
  for (const partitions of kinds) {
    const extras = partitions.length % ordered.length
    let at = 0
    for (const [index, { member }] of ordered.entries()) {
      const isExtra = (index - extra + ordered.length) % ordered.length < extras
      const end = at + Math.floor(partitions.length / ordered.length) + (isExtra ? 1 : 0)
      for (const partition of partitions.slice(at, end)) wanted.set(partition, member)
      at = end
    }
    extra = (extra + extras) % ordered.length
  }
  return wanted
}

/**
 * Partition → member: whoever has it keeps it up to an even share of its kind; the rest goes to those with least. What
 * does not divide goes to members with fewer partitions altogether, so that a sticky leader finds nothing to even out
 * next time.
 */
function inPlace(kinds: readonly number[][], topic: string, takers: readonly MemberShare[]): Map<number, string> {
  const sums = new Map(takers.map((share) => [share.member, countOthers(share, topic)]))
  const keepers = (['owned', 'assigned'] as const).map((field) => holders(takers, topic, field))
  const wanted = new Map<number, string>()
  for (const partitions of kinds) {
    for (const [partition, member] of spread(partitions, sums, keepers)) {
      wanted.set(partition, member)
      sums.set(member, (sums.get(member) ?? 0) + 1)
    }
  }
  return wanted
}

/**
 * @param sums member → how many other partitions it has
 * @param keepers partition → member that has it; the first that knows one counts
 */
function spread(
  partitions: readonly number[],
  sums: ReadonlyMap<string, number>,
  keepers: readonly ReadonlyMap<number, string>[],
): Map<number, string> {
  const has = new Map<string, number>()
  for (const partition of partitions)
    for (const member of new Set(keepers.map((keeper) => keeper.get(partition))))
      if (member !== undefined) has.set(member, (has.get(member) ?? 0) + 1)
  const ordered = [...sums]
    .sort(([a, sumA], [b, sumB]) => sumA - sumB || (has.get(b) ?? 0) - (has.get(a) ?? 0))
    .map(([member]) => member)
  const least = Math.floor(partitions.length / ordered.length)
  const room = new Map(ordered.map((member, i) => [member, least + (i < partitions.length % ordered.length ? 1 : 0)]))
  const wanted = new Map<number, string>()
  const give = (partition: number, member: string | undefined): void => {
    const left = member === undefined ? 0 : (room.get(member) ?? 0)
    if (member === undefined || left === 0 || wanted.has(partition)) return
    wanted.set(partition, member)
    room.set(member, left - 1)
  }
  for (const keeper of keepers) for (const partition of partitions) give(partition, keeper.get(partition))
  for (const partition of partitions)
    if (!wanted.has(partition))
      give(
        partition,
        ordered.find((member) => (room.get(member) ?? 0) > 0),
      )
  return wanted
}

/** Partition of the topic → the first member that has it. */
function holders(shares: readonly MemberShare[], topic: string, field: 'owned' | 'assigned'): Map<number, string> {
  const found = new Map<number, string>()
  for (const share of shares)
    for (const partition of share[field][topic] ?? []) if (!found.has(partition)) found.set(partition, share.member)
  return found
}

function isOwnedByAnother(shares: readonly MemberShare[], topic: string, partition: number, member: string): boolean {
  return shares.some((share) => share.member !== member && share.owned[topic]?.includes(partition) === true)
}

/** Partitions of other topics that it is given. */
function countOthers({ assigned }: MemberShare, topic: string): number {
  return Object.entries(assigned).reduce((sum, [name, partitions]) => sum + (name === topic ? 0 : partitions.length), 0)
}
