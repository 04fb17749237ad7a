/**
 * Which topics need their Fetches looked at: those with gates that somebody may have to wait behind, with a change being
 * prepared, or of which nothing is known. All others pass unopened, whoever reads.
 */
import type { Runtime } from '../../../runtime/runtime.ts'
import type { State } from '../../../state/state.ts'
import { type TopicState, widestCount } from '../../../state/topic-state.ts'
import { gatesOf } from '../gate.ts'
import type { LayoutTopic, LayoutTopics } from '../topic-rule.ts'
import type { Parents } from './parents.ts'

/** How long a topic that was found at rest is believed to be, unless the state changes: topics come and go. */
const LOOK_MS = 250

/** Deleted topics that are remembered before they are looked for. */
const SEEN_SLACK = 100

interface Seen {
  readonly state: TopicState
  /** The limits where nothing is known of who reads: every gate is shut. */
  readonly strict: readonly number[]
  /** Something waits for a seal. */
  readonly isSealing: boolean
  /** How far somebody may be waited for, by partition. */
  readonly ends: ReadonlyMap<number, number>
}

/** Whether there are, or are about to be, partitions that nobody may read yet. */
export function hasHidden(topic: LayoutTopic, state: TopicState): boolean {
  return state.proposal !== undefined || topic.count > widestCount(state)
}

export class TopicWatch {
  private readonly state: State
  private readonly topics: LayoutTopics
  private readonly parents: Parents
  private readonly runtime: Runtime
  /** By topic id: what was last known of it. */
  private readonly seen = new Map<string, Seen>()
  private restless: readonly LayoutTopic[] = []
  private lookedAtMs = -Infinity

  constructor(state: State, topics: LayoutTopics, parents: Parents, runtime: Runtime) {
    this.state = state
    this.topics = topics
    this.parents = parents
    this.runtime = runtime
  }

  /** The topic as of the last confirmed read; undefined: nothing may be done upon it now. */
  readonly stateOf = (topic: LayoutTopic): TopicState | undefined => {
    if (!this.state.mayAct()) return undefined
    const state = topic.view()?.topic
    if (state !== undefined) this.note(topic, state)
    return state
  }

  /** What was known of the topic before the state was lost; undefined: never anything. */
  lastOf(topic: LayoutTopic): TopicState | undefined {
    return this.seen.get(topic.topicId)?.state
  }

  /** Limits for a reader of whom nothing is known. */
  strict(topic: LayoutTopic, state: TopicState): readonly number[] {
    return this.note(topic, state).strict
  }

  /** Topics whose Fetches are looked at; `isBlind`: of all, because too little is known or may be acted upon. */
  look(): { isBlind: boolean; restless: readonly LayoutTopic[] } {
    const isBlind = !this.state.mayAct() || !this.topics.isLoaded
    const now = this.runtime.now()
    if (!isBlind && now - this.lookedAtMs >= LOOK_MS) {
      this.lookedAtMs = now
      const all = [...this.topics.all()]
      this.restless = all.filter((topic) => this.isRestless(topic))
      if (this.seen.size > 2 * all.length + SEEN_SLACK) this.forget(all)
    }
    return { isBlind, restless: this.restless }
  }

  /** Topics that are no more. */
  private forget(all: readonly LayoutTopic[]): void {
    const ids = new Set(all.map(({ topicId }) => topicId))
    for (const topicId of [...this.seen.keys()]) if (!ids.has(topicId)) this.seen.delete(topicId)
  }

  /** The state has changed. */
  changed(): void {
    this.lookedAtMs = -Infinity
  }

  private isRestless(topic: LayoutTopic): boolean {
    const state = this.stateOf(topic)
    if (state === undefined || hasHidden(topic, state)) return true
    const { isSealing, ends } = this.note(topic, state)
    if (isSealing || ends.size === 0) return isSealing
    void this.parents.readStarts(topic, [...ends.keys()]).catch(() => undefined)
    for (const [q, end] of ends) if (this.parents.startOf(topic, q) < end) return true
    return false
  }

  /** Works out once what each state of a topic means. */
  private note(topic: LayoutTopic, state: TopicState): Seen {
    const known = this.seen.get(topic.topicId)
    if (known?.state === state) return known
    const { limits, waits } = gatesOf(state, (_q, end) => end <= 0)
    const ends = new Map<number, number>()
    for (const { parent, until = 0 } of waits)
      if (parent !== undefined) ends.set(parent, Math.max(until, ends.get(parent) ?? 0))
    const seen = { state, strict: limits, ends, isSealing: waits.some(({ parent }) => parent === undefined) }
    this.seen.set(topic.topicId, seen)
    return seen
  }
}
