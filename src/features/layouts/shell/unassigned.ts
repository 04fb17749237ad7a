/**
 * Partitions that a group reads and that nobody in it is assigned, for people who wait for a change to be done: known
 * where the leader's assignment passed, and only of groups whose members assign by themselves. The group learns of
 * partitions as its leader asks for Metadata; who was shown fewer of those that read here is named.
 */
import type { Connection } from '../../../pipeline/connection.ts'
import type { Instance, Membership } from '../../../pipeline/instance.ts'
import type { TopicState } from '../../../state/topic-state.ts'
import type { UnassignedView } from '../control/api.ts'
import type { Lead, Ownership } from '../control/ownership.ts'
import { range } from '../keys-moving.ts'
import type { KnownTopic } from './known-topic.ts'
import type { Showings } from './showings.ts'
import type { Topics } from './topics.ts'
import type { Writers } from './writers.ts'

export interface UnassignedDeps {
  readonly topics: Pick<Topics, 'all'>
  readonly writers: Pick<Writers, 'all'>
  readonly ownership: Pick<Ownership, 'of'>
  readonly showings: Pick<Showings, 'memberCount'>
  /** Whether a member may read a topic, by what it subscribed to. */
  readonly mayRead: (membership: Membership, topic: string) => boolean
}

interface Member {
  /** As `headgate topics describe` names it. */
  readonly name: string
  readonly connection: Connection
  readonly membership: Membership
  /** Topic id → how many partitions it was shown last. */
  readonly shown: (topicId: string) => number
  readonly lead: Lead | undefined
}

export class Unassigned {
  private readonly deps: UnassignedDeps

  constructor(deps: UnassignedDeps) {
    this.deps = deps
  }

  /** One view for each topic of which the last assignment that passed here leaves out partitions. */
  of(group: string): UnassignedView[] {
    return this.view(this.members(group))
  }

  /** Groups of which there are such. */
  groups(): string[] {
    const found = new Set<string>()
    for (const { connections } of this.deps.writers.all())
      for (const { instance } of connections) for (const group of instance?.memberships.keys() ?? []) found.add(group)
    return [...found].filter((group) => this.of(group).length > 0)
  }

  private view(members: readonly Member[]): UnassignedView[] {
    const leader = members
      .filter(({ lead }) => lead?.counts !== undefined)
      .sort((a, b) => (b.lead?.atMs ?? 0) - (a.lead?.atMs ?? 0))[0]
    if (leader === undefined) return []
    const views: UnassignedView[] = []
    for (const topic of this.deps.topics.all()) {
      const state = topic.view()?.topic
      const assigned = leader.lead?.counts?.get(topic.name)
      if (state === undefined || assigned === undefined) continue
      const wanted = this.deps.showings.memberCount(leader.connection, topic, state)
      if (assigned >= wanted) continue
      views.push({
        topic: topic.name,
        unassigned: range(assigned, wanted),
        leader: leader.name,
        unaware: this.unaware(members, topic, wanted),
        sinceMs: addedAtMs(state, assigned),
      })
    }
    return views
  }

  private unaware(members: readonly Member[], topic: KnownTopic, wanted: number): UnassignedView['unaware'] {
    return members.flatMap(({ name, membership, shown }) => {
      const partitions = shown(topic.topicId)
      if (partitions >= wanted || !this.deps.mayRead(membership, topic.name)) return []
      return [{ instance: name, member: membership.memberId, partitions }]
    })
  }

  /** Members of the group that read here, each once. */
  private members(group: string): Member[] {
    const found = new Map<Instance, Member>()
    for (const { name, connections, topics } of this.deps.writers.all()) {
      for (const connection of connections) {
        const { instance } = connection
        const membership = instance?.memberships.get(group)
        if (instance === undefined || membership === undefined || found.has(instance)) continue
        const shown = (topicId: string): number => topics.get(topicId)?.count ?? 0
        found.set(instance, { name, connection, membership, shown, lead: this.leadOf(instance, membership) })
      }
    }
    return [...found.values()]
  }

  /** Of clients that look alike, the membership may be another one's. */
  private leadOf(instance: Instance, { groupId, memberId }: Membership): Lead | undefined {
    const owned = this.deps.ownership.of(instance, groupId)
    if (owned === undefined || owned.isServerSide) return undefined
    return instance.ambiguous || owned.lead?.memberId === memberId ? owned.lead : undefined
  }
}

/** When the topic came to have more partitions than `assigned`, in milliseconds since 1970. */
function addedAtMs({ layouts }: TopicState, assigned: number): number {
  const added = layouts.findLast(({ count }, i) => count > assigned && (layouts[i - 1]?.count ?? 0) <= assigned)
  return added?.openedAtMs ?? 0
}
