/** What one client may have: the gates of all the groups that it was seen in, asked for each partition that it fetches. */
import type { FetchView, PartitionPolicy } from '../../../editors/fetch/policy.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Instance } from '../../../pipeline/instance.ts'
import type { TopicState } from '../../../state/topic-state.ts'
import type { LayoutTopic } from '../topic-rule.ts'
import type { GatedGroup } from './gated-group.ts'
import type { GroupGates } from './group-gates.ts'
import { isHidden } from './topic-gates.ts'
import { hasHidden } from './topic-watch.ts'

/** How long a client whose group is not known waits: longer than any takes from its start to a heartbeat. */
const UNKNOWN_GROUP_MS = 10_000
const SHUT = -1
const OPEN = Infinity

export class InstanceGates implements FetchView {
  private readonly instance: Instance
  private readonly gates: GroupGates
  /** Topic id → since when no group of it was known that may read the topic. */
  private readonly aloneSince = new Map<string, number>()
  /** `GroupGates.version` at which everything was open to it. */
  private openVersion = -1
  private openFor: readonly LayoutTopic[] = []
  private wasCounted = false
  /** On which it sent its last Fetch. */
  connection: Connection | undefined

  constructor(instance: Instance, gates: GroupGates) {
    this.instance = instance
    this.gates = gates
  }

  /** Whether a member of it joined lately, so that its first Fetches have to be seen. */
  get isStarting(): boolean {
    const now = this.gates.now()
    for (const membership of this.instance.memberships.values())
      if (this.gates.starts.isStarting(membership, now)) return true
    return false
  }

  /** Whether nothing of these topics waits for this client, so that its Fetches need not be opened. */
  isOpen(topics: readonly LayoutTopic[]): boolean {
    for (const membership of this.instance.memberships.values()) this.gates.group(membership.groupId).meet(membership)
    if (this.openVersion === this.gates.version && this.openFor === topics) return true
    if (!topics.every((topic) => this.isTopicOpen(topic))) return false
    this.openVersion = this.gates.version
    this.openFor = topics
    return true
  }

  partition(name: string, topicId: string, partition: number, fetchOffset: number): PartitionPolicy | undefined {
    const topic = this.gates.find(name, topicId)
    if (topic === undefined) return this.unmet(name, topicId, partition)
    const groups = this.groupsOf(topic)
    if (fetchOffset >= 0) this.fetched(groups, topic, partition, fetchOffset)
    if (topic.rule.stateLoss === 'pass' && this.gates.watch.stateOf(topic) === undefined)
      this.gates.counts.passedBlind(topic.name)
    const limit = (): number => this.limit(topic, partition)
    return { limit, ...(limit() === OPEN ? { standby: true } : {}) }
  }

  private fetched(groups: readonly GatedGroup[], topic: LayoutTopic, partition: number, offset: number): void {
    for (const membership of this.instance.memberships.values())
      this.gates.starts.fetched(membership, topic.name, partition, offset)
    for (const group of groups) group.gates(topic).fetched(partition, offset)
  }

  /** A topic that is not known (yet): where it may have a rule, it waits until it is. */
  private unmet(name: string, topicId: string, partition: number): PartitionPolicy | undefined {
    const { gates } = this
    const { connection } = this
    if (!gates.mayHaveRule(name, topicId, connection)) return undefined
    return {
      limit: () => {
        const topic = gates.find(name, topicId)
        if (topic !== undefined) return this.limit(topic, partition)
        return gates.mayHaveRule(name, topicId, connection) ? SHUT : OPEN
      },
    }
  }

  private isTopicOpen(topic: LayoutTopic): boolean {
    const state = this.gates.watch.stateOf(topic)
    if (state === undefined || hasHidden(topic, state)) return false
    const groups = this.groupsOf(topic)
    if (groups.length === 0) return this.isAlone(topic)
    return groups.every((group) => {
      group.touch()
      return group.topics.get(topic.topicId)?.isOpen(state) === true
    })
  }

  private limit(topic: LayoutTopic, partition: number): number {
    const { watch } = this.gates
    let state = watch.stateOf(topic)
    if (state === undefined) {
      if (topic.rule.stateLoss === 'hold') return SHUT
      state = watch.lastOf(topic)
      if (state === undefined) return OPEN
    }
    if (isHidden(state, partition)) return SHUT
    const groups = this.groupsOf(topic)
    if (groups.length === 0) return this.ofNobody(watch.strict(topic, state)[partition] ?? SHUT, topic)
    let limit = OPEN
    for (const group of groups) limit = Math.min(limit, ofGroup(group, topic, state, partition))
    return limit
  }

  /** Its groups that may read the topic. */
  private groupsOf(topic: LayoutTopic): GatedGroup[] {
    const groups: GatedGroup[] = []
    for (const membership of this.instance.memberships.values()) {
      if (!this.gates.subscriptions.mayRead(membership, topic.name)) continue
      const group = this.gates.group(membership.groupId)
      group.meet(membership)
      groups.push(group)
    }
    if (groups.length > 0) this.aloneSince.delete(topic.topicId)
    return groups
  }

  /** Without a group that may read the topic for so long that it has none. */
  private isAlone(topic: LayoutTopic): boolean {
    const now = this.gates.now()
    const since = this.aloneSince.get(topic.topicId)
    if (since === undefined) this.aloneSince.set(topic.topicId, now)
    return since !== undefined && now - since >= UNKNOWN_GROUP_MS
  }

  private ofNobody(strict: number, topic: LayoutTopic): number {
    if (strict === OPEN || !this.isAlone(topic)) return strict
    if (!this.wasCounted) this.gates.counts.unknownGroups++
    this.wasCounted = true
    return OPEN
  }
}

function ofGroup(group: GatedGroup, topic: LayoutTopic, state: TopicState, partition: number): number {
  const gates = group.gates(topic)
  if (!gates.isOpen(state)) group.poke()
  return gates.limit(state, partition)
}
