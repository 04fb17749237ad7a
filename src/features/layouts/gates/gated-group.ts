/**
 * One group whose Fetches wait, or have waited: reads its committed offsets while they do, at its coordinator, and looks
 * what lies above those that do not move. One read is in flight at a time.
 */
import { type Cluster, partitionKey } from '../../../cluster/cluster.ts'
import type { Membership } from '../../../pipeline/instance.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import { type TopicState, widestCount } from '../../../state/topic-state.ts'
import type { Log } from '../../../telemetry/log.ts'
import { range } from '../keys-moving.ts'
import type { GateRule, LayoutTopic } from '../topic-rule.ts'
import type { Parents } from './parents.ts'
import { type ByPolicy, TopicGates } from './topic-gates.ts'

/** Between two reads of a group's commits, from sending to sending. */
export const REFRESH_MS = 500
/** How old commits may be before they are read again although nothing waits. */
const STALE_MS = 60_000

export interface GatedGroupDeps {
  readonly runtime: Runtime
  readonly cluster: Cluster
  readonly parents: Parents
  readonly log: Log
  readonly byPolicy: ByPolicy
  /** The topic as the log tells it; undefined: it may not be acted upon now. */
  readonly stateOf: (topic: LayoutTopic) => TopicState | undefined
  /** Whether somebody may have to wait in this topic. */
  readonly hasGates: (topic: LayoutTopic, state: TopicState) => boolean
  /** Limits may have changed. */
  readonly changed: () => void
}

export class GatedGroup {
  readonly id: string
  /** By topic id. */
  readonly topics = new Map<string, TopicGates>()
  private readonly deps: GatedGroupDeps
  private readonly policy: GateRule['gate']
  /** Member and generation of each membership when it was last seen. */
  private readonly members = new WeakMap<Membership, string>()
  private sentAtMs = -Infinity
  private isReading = false
  /** What is read now does not count any more. */
  private isVoid = false
  private timer: Timer | undefined
  /** Why its commits, or what lies above them, cannot be read; undefined: they can. */
  problem: string | undefined

  constructor(id: string, policy: GateRule['gate'], deps: GatedGroupDeps) {
    this.id = id
    this.policy = policy
    this.deps = deps
  }

  /**
   * A member with another generation or id, or a new one: the group may have been empty in between, when tools reset
   * offsets, so that what it committed before says nothing.
   */
  meet(membership: Membership): void {
    if (membership.generation < 0 && this.members.has(membership)) return
    const name = `${membership.memberId}/${membership.generation}`
    if (this.members.get(membership) === name) return
    this.members.set(membership, name)
    if (this.topics.size === 0) return
    for (const gates of this.topics.values()) gates.forget()
    this.isVoid = this.isReading
    this.sentAtMs = -Infinity
    this.deps.changed()
    this.poke()
  }

  gates(topic: LayoutTopic): TopicGates {
    let gates = this.topics.get(topic.topicId)
    if (gates === undefined) {
      const { runtime: clock, byPolicy, parents } = this.deps
      const startOf = (q: number): number => parents.startOf(topic, q)
      gates = new TopicGates(topic, { policy: this.policy, clock, byPolicy, startOf })
      this.topics.set(topic.topicId, gates)
      this.sentAtMs = -Infinity
    }
    return gates
  }

  /** Whether anything waits for the group. */
  get isShut(): boolean {
    return this.asked().some(({ gates, state }) => !gates.isOpen(state))
  }

  /** Partitions that are waited for and of which the group has no commit. */
  uncommitted(): { gates: TopicGates; partition: number }[] {
    return this.asked().flatMap(({ gates, state }) =>
      [...gates.awaited(state).keys()].flatMap((partition) =>
        gates.progress.isKnown && gates.progress.offsetOf(partition) === undefined ? [{ gates, partition }] : [],
      ),
    )
  }

  /** Somebody waits, or wants to know: reads the commits as soon as it is time. */
  poke(): void {
    if (this.isReading || this.timer !== undefined) return
    const { runtime } = this.deps
    const dueMs = this.sentAtMs + REFRESH_MS - runtime.now()
    if (dueMs <= 0) {
      void this.read()
      return
    }
    this.timer = runtime.timer(dueMs, () => {
      this.timer = undefined
      void this.read()
    })
  }

  /** Reads the commits again if they are old: they may have been reset by somebody who is not seen here. */
  touch(): void {
    if (this.deps.runtime.now() - this.sentAtMs >= STALE_MS) this.poke()
  }

  close(): void {
    this.timer?.cancel()
    this.topics.clear()
  }

  private async read(): Promise<void> {
    this.isReading = true
    this.isVoid = false
    const sentAtMs = this.deps.runtime.now()
    this.sentAtMs = sentAtMs
    const asked = this.asked()
    const before = this.stamp()
    try {
      const rows = asked.flatMap(({ gates: { topic }, state }) =>
        range(0, widestCount(state)).map((partition) => ({ topic: topic.name, partition })),
      )
      if (rows.length > 0) await this.learn(asked, await this.deps.cluster.committed(this.id, rows), sentAtMs)
      this.problem = undefined
    } catch (error) {
      this.failed(error as ClusterFailure)
    }
    this.isReading = false
    if (this.stamp() !== before) this.deps.changed()
    if (this.isVoid) this.poke()
  }

  /** What passes by itself is told only when somebody has waited for long (group-gates.ts). */
  private failed({ message, passes }: ClusterFailure): void {
    const isNews = this.problem !== message
    this.problem = message
    const { log } = this.deps
    if (passes === false && isNews)
      log.warn({ group: this.id }, `${message}; until then this group waits behind gates that its commits would open`)
    else log.debug({ group: this.id, error: message }, 'the commits of a group cannot be read')
  }

  private stamp(): string {
    return [...this.topics.values()].map(({ stamp }) => stamp).join()
  }

  private asked(): Asked[] {
    return [...this.topics.values()].flatMap((gates) => {
      const state = this.deps.stateOf(gates.topic)
      return state !== undefined && this.deps.hasGates(gates.topic, state) ? [{ gates, state }] : []
    })
  }

  private async learn(asked: readonly Asked[], rows: ReadonlyMap<string, number>, sentAtMs: number): Promise<void> {
    if (this.isVoid) return
    for (const { gates, state } of asked) {
      const committed = new Map<number, number>()
      for (const q of range(0, widestCount(state))) {
        const offset = rows.get(partitionKey(gates.topic.name, q))
        if (offset !== undefined) committed.set(q, offset)
      }
      gates.progress.read(committed, sentAtMs)
      gates.age(state)
    }
    this.deps.changed() // what the commits open need not wait for what the looks find
    await Promise.all(asked.map((each) => this.look(each)))
  }

  private async look({ gates, state }: Asked): Promise<void> {
    const { progress, topic } = gates
    const { runtime, parents } = this.deps
    const due = [...gates.awaited(state)].filter(([q, until]) => progress.mustLook(q, until, runtime.now()))
    await Promise.all(
      due.map(async ([q, until]) => {
        const committed = progress.offsetOf(q)
        const first = await parents.firstDeliverable(topic, q, committed ?? 0, until)
        if (first !== undefined && !this.isVoid) progress.looked(q, { committed, until, first, atMs: runtime.now() })
      }),
    )
  }
}

/** `passes` false: asking again is of no use until people have done something. */
interface ClusterFailure {
  readonly passes?: boolean
  readonly message: string
}

interface Asked {
  readonly gates: TopicGates
  readonly state: TopicState
}
