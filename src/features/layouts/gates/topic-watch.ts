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
import { strictLimits } from './topic-gates.ts'

/** How long a topic that was found at rest is believed to be, unless the state changes: topics come and go. */
const LOOK_MS = 250

interface Seen {
  readonly state: TopicState
  readonly strict: readonly number[]
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
      this.restless = [...this.topics.all()].filter((topic) => this.isRestless(topic))
    }
    return { isBlind, restless: this.restless }
  }

  /** The state has changed. */
  changed(): void {
    this.lookedAtMs = -Infinity
  }

  private isRestless(topic: LayoutTopic): boolean {
    const state = this.stateOf(topic)
    if (state === undefined || hasHidden(topic, state)) return true
    const parents = this.waitedFor(topic, state, false)
    if (parents === undefined) return true
    if (parents.length === 0) return false
    void this.parents.readStarts(topic, parents).catch(() => undefined)
    return this.waitedFor(topic, state, true)?.length !== 0
  }

  /** Partitions that some group may be waited for with; undefined: some wait for a seal. */
  private waitedFor(topic: LayoutTopic, state: TopicState, expired: boolean): number[] | undefined {
    const { waits } = gatesOf(state, (q, end) => end <= (expired ? this.parents.startOf(topic, q) : 0))
    if (waits.some(({ parent }) => parent === undefined)) return undefined
    return [...new Set(waits.flatMap(({ parent }) => parent ?? []))]
  }

  private note(topic: LayoutTopic, state: TopicState): Seen {
    let seen = this.seen.get(topic.topicId)
    if (seen?.state !== state) this.seen.set(topic.topicId, (seen = { state, strict: strictLimits(state) }))
    return seen
  }
}
