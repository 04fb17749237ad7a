/**
 * The gates of one group on one topic: limits of every partition, made anew when the state of the topic or what is known
 * of the group changes, and since when what waits.
 */
import { type TopicState, widestCount } from '../../../state/topic-state.ts'
import { type Gates, gatesOf, type Wait } from '../gate.ts'
import type { GateRule, LayoutTopic } from '../topic-rule.ts'
import { Progress } from './progress.ts'

/** A shut gate, as people are shown it. */
export interface GateView {
  readonly topic: string
  readonly partition: number
  /** Records at or above this offset wait. */
  readonly from: number
  /** For the seal of this epoch, or by its boundaries. */
  readonly seal?: number
  /** By this cut. */
  readonly cut?: string
  /** Until the group is done with this partition up to `until`; without it, for the seal itself. */
  readonly parent?: number
  readonly until?: number
  /** What the group has committed of `parent`; left out: nothing, or it is not known yet. */
  readonly committed?: number
  /** Since when, in milliseconds since 1970. */
  readonly sinceMs: number
}

export interface Clock {
  now(): number
  wallNow(): number
}

/** Told when a policy, not a commit, is why the group counts as done. */
export type ByPolicy = (policy: 'position' | 'after') => void

/** Longer than any client waits between two Fetches of what it reads. */
const ACTIVE_MS = 60_000

export interface TopicGatesOptions {
  readonly policy: GateRule['gate']
  readonly clock: Clock
  readonly byPolicy: ByPolicy
  /** The first offset of a partition's log, as far as is known. */
  readonly startOf: (q: number) => number
}

interface Since {
  readonly wait: Wait
  readonly atMs: number
  readonly wallMs: number
}

export class TopicGates {
  readonly topic: LayoutTopic
  readonly progress = new Progress()
  /** When a Fetch of the group last named the topic. */
  lastFetchMs: number
  private readonly clock: Clock
  private readonly policy: GateRule['gate']
  private readonly byPolicy: ByPolicy
  private readonly startOf: (q: number) => number
  private readonly since = new Map<string, Since>()
  /** Where the group's Fetches stand, at this proxy. */
  private readonly positions = new Map<number, number>()
  /** `q/end` of what counts as done by a policy. */
  private readonly given = new Set<string>()
  private state: TopicState | undefined
  private version = -1
  private gates: Gates = { limits: [], waits: [] }
  private heldMs = 0
  private heldAtMs: number

  constructor(topic: LayoutTopic, { policy, clock, byPolicy, startOf }: TopicGatesOptions) {
    this.topic = topic
    this.policy = policy
    this.clock = clock
    this.byPolicy = byPolicy
    this.startOf = startOf
    this.lastFetchMs = clock.now()
    this.heldAtMs = this.lastFetchMs
  }

  /** Another one whenever limits may be other ones. */
  get stamp(): string {
    return `${this.progress.version}/${this.given.size}`
  }

  /** @param partition below the widest count of `state` */
  limit(state: TopicState, partition: number): number {
    return this.of(state).limits[partition] ?? -1
  }

  isOpen(state: TopicState): boolean {
    return this.of(state).waits.length === 0
  }

  waits(state: TopicState): readonly Wait[] {
    return this.of(state).waits
  }

  /** Ends that the group is waited for, the highest of each partition. */
  awaited(state: TopicState): Map<number, number> {
    const ends = new Map<number, number>()
    for (const { parent, until } of this.of(state).waits)
      if (parent !== undefined && until !== undefined) ends.set(parent, Math.max(until, ends.get(parent) ?? 0))
    return ends
  }

  /** A Fetch of the group asks for q from here on. */
  fetched(q: number, offset: number): void {
    this.lastFetchMs = this.clock.now()
    if (this.positions.get(q) === offset) return
    this.positions.set(q, offset)
    if (this.policy === 'position') this.version = -1
  }

  /** The group may have gone back. What was given for its patience stays given: it never commits. */
  forget(): void {
    this.progress.forget()
    this.positions.clear()
    if (this.policy === 'position') this.given.clear()
  }

  /** Lets open what has waited for the group longer than the policy wants. */
  age(state: TopicState): void {
    if (typeof this.policy !== 'number') return
    const now = this.clock.now()
    for (const { wait, atMs } of this.waiting(state)) {
      if (wait.parent === undefined || wait.until === undefined || now - atMs < this.policy) continue
      this.give(wait.parent, wait.until, 'after')
    }
  }

  views(state: TopicState): GateView[] {
    return this.waiting(state).map(({ wait, wallMs }) => {
      const committed = wait.parent === undefined ? undefined : this.progress.offsetOf(wait.parent)
      return { topic: this.topic.name, ...wait, ...(committed === undefined ? {} : { committed }), sinceMs: wallMs }
    })
  }

  /** How long the oldest wait has lasted, in milliseconds; 0: nothing waits. */
  oldestMs(state: TopicState): number {
    const now = this.clock.now()
    return this.waiting(state).reduce((age, { atMs }) => Math.max(age, now - atMs), 0)
  }

  /** Partitions with records that wait. */
  get shutCount(): number {
    return this.gates.limits.filter((limit) => limit !== Infinity).length
  }

  /** Time for which partitions were shut to the group, added up over them, in milliseconds. */
  get heldForMs(): number {
    this.hold()
    return this.heldMs
  }

  private of(state: TopicState): Gates {
    if (this.state === state && this.version === this.progress.version) return this.gates
    this.hold()
    this.gates = gatesOf(state, (q, end) => this.isDone(q, end))
    this.state = state
    this.version = this.progress.version
    this.date()
    return this.gates
  }

  private isDone(q: number, end: number): boolean {
    if (end <= this.startOf(q) || this.progress.done(q, end) || this.given.has(`${q}/${end}`)) return true
    if (this.policy !== 'position' || (this.positions.get(q) ?? -1) < end) return false
    this.give(q, end, 'position')
    return true
  }

  private give(q: number, end: number, policy: 'position' | 'after'): void {
    const key = `${q}/${end}`
    if (this.given.has(key)) return
    this.given.add(key)
    this.version = -1
    this.byPolicy(policy)
  }

  /** Whether the group reads the topic at the moment. */
  get isActive(): boolean {
    return this.clock.now() - this.lastFetchMs <= ACTIVE_MS
  }

  private hold(): void {
    const now = this.clock.now()
    if (this.isActive) this.heldMs += this.shutCount * (now - this.heldAtMs)
    this.heldAtMs = now
  }

  /** Remembers since when each thing is waited for. */
  private date(): void {
    const names = new Set(this.gates.waits.map(nameOf))
    for (const name of [...this.since.keys()]) if (!names.has(name)) this.since.delete(name)
    const now = { atMs: this.clock.now(), wallMs: this.clock.wallNow() }
    for (const wait of this.gates.waits) {
      const name = nameOf(wait)
      if (!this.since.has(name)) this.since.set(name, { wait, ...now })
    }
  }

  private waiting(state: TopicState): Since[] {
    this.of(state)
    return [...this.since.values()]
  }
}

/** Whether a partition belongs to no layout that was ever opened: a change is being prepared, or was given up. */
export function isHidden(state: TopicState, partition: number): boolean {
  return partition >= widestCount(state)
}

function nameOf({ partition, from, seal, cut, parent, until }: Wait): string {
  return [partition, from, seal, cut, parent, until].join()
}
