/**
 * How to make a consumer group take up partitions that were added, where its own refresh of Metadata is minutes away
 * (measured, docs/layouts.md): members are made to refresh by one Fetch that one partition of is refused to; whoever
 * leads the group computes the assignment and is made to join again where it does not by itself. Each at most once per
 * client and change.
 */

/** What a client does when it learns, as far as it matters here. */
export type Learner =
  /** Its leader refreshes Metadata whenever it joins (kafkajs, librdkafka, sarama): nothing else is needed. */
  | 'refreshes-at-join'
  /** Refreshes upon a refused Heartbeat as well; fails on partitions that it does not know (platformatic). */
  | 'fails-on-unknown'
  /** Refreshes upon a refused Fetch only; its leader then joins again by itself (franz-go). */
  | 'refreshes-at-fetch'
  /** Refreshes upon a refused Fetch or a lost connection; its leader then joins again by itself, as a rule. */
  | 'refreshes-when-refused'

/** librdkafka is known by the names of what is built upon it, too. */
const refreshing = /^sarama|rdkafka|^confluent-kafka/

/** kafkajs does not say its name; its assignor does. */
export function learnerOf(softwareName: string, assignor: string | undefined): Learner {
  if (refreshing.test(softwareName) || assignor === 'RoundRobinAssigner') return 'refreshes-at-join'
  if (softwareName.startsWith('platformatic')) return 'fails-on-unknown'
  return softwareName === 'kgo' ? 'refreshes-at-fetch' : 'refreshes-when-refused'
}

export interface BeatFacts {
  readonly learner: Learner
  /** Its last Metadata answer had fewer partitions than it would have now. */
  readonly isStale: boolean
  /** For how long it has been so, or has not any more, in milliseconds. */
  readonly forMs: number
  /** How many members it leads, itself included; 0: it does not lead. */
  readonly leads: number
  /** The assignment that it made last leaves out the new partitions. */
  readonly leavesOut: boolean
  /** It owns no partition of the topic: no Fetch of it can be refused. */
  readonly isIdle: boolean
}

/**
 * `refresh`: refused with code 6. `rejoin`: with code 27. `complete`: the same, and the assignment that it then makes is
 * given the partitions that it lacks. `close`: answered, then the connection ends.
 */
export type BeatPush = 'refresh' | 'rejoin' | 'complete' | 'close'

/** Longer than the longest Fetch of a member of any family waits (5 s), and a client waits until it tries again (1 s). */
export const FETCHES_MS = 7_000

/** What to do with a Heartbeat of a member of a group that reads a topic with new partitions. */
export function pushAtHeartbeat(facts: BeatFacts): BeatPush | undefined {
  const { learner, isStale, forMs, leads, leavesOut, isIdle } = facts
  const isOverdue = forMs >= FETCHES_MS
  if (learner === 'fails-on-unknown') {
    if (isStale) return isIdle || isOverdue ? 'refresh' : undefined
    // With others, who join later, what it commits meanwhile is of an old generation by then, and it joins over and over.
    return leads === 1 && leavesOut ? 'rejoin' : undefined
  }
  if (leads === 0 || !leavesOut) return undefined
  if (learner === 'refreshes-at-join') return 'rejoin'
  if (!isStale) return isOverdue ? 'rejoin' : undefined
  if (!isIdle && !isOverdue) return undefined
  return learner === 'refreshes-at-fetch' ? 'complete' : 'close'
}
