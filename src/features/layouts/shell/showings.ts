/**
 * Which count of each topic Metadata shows to whom: `countShown` for producers, the widest layout for members of groups
 * (they must never see a partition vanish that they own). No answer with the topic goes out while a change is being
 * prepared, or while the state does not know the topic or may not be acted upon.
 */
import type { ListedTopic, Showing, TopicPolicy, TopicShowing } from '../../../editors/metadata/topic-policy.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Instance } from '../../../pipeline/instance.ts'
import { currentLayout, type Layout, type TopicState, widestCount } from '../../../state/topic-state.ts'
import { type Ledger, newLedger } from '../clean.ts'
import { StuckBatches } from '../control/stuck-batches.ts'
import { countShown } from '../shrink.ts'
import type { TopicRule } from '../topic-rule.ts'
import type { GuardContext } from './context.ts'
import type { Guards } from './guards.ts'
import type { KnownTopic } from './known-topic.ts'
import type { Topics } from './topics.ts'
import type { Writer } from './writers.ts'

/** How many partitions a member of a group may see; undefined: as many as any layout had. */
export type ConsumerCount = (topic: KnownTopic, connection: Connection) => number | undefined

export class Showings implements TopicPolicy {
  private readonly context: GuardContext
  private readonly topics: Topics
  private readonly guards: Guards
  /** Set by whoever hides drained partitions from consumers. */
  consumerCount: ConsumerCount = () => undefined
  /** Set by whoever sees groups: whether an instance that is no member yet is about to join one. */
  seeksGroup: (instance: Instance) => boolean = () => false
  private readonly stuck = new StuckBatches()
  private readonly listeners: (() => void)[] = []

  constructor(context: GuardContext, topics: Topics, guards: Guards) {
    this.context = context
    this.topics = topics
    this.guards = guards
    context.state.onChange(() => this.changed())
    topics.onTopic(() => this.changed())
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  private changed(): void {
    for (const listener of this.listeners) listener()
  }

  topic(connection: Connection, listed: ListedTopic): TopicShowing | undefined {
    const rule = this.topics.rule(listed.name)
    if (rule === undefined) {
      this.topics.meet(listed.name, listed.topicId, listed.count)
      return undefined
    }
    return {
      decide: (isOverdue) => this.decide(connection, listed, rule, isOverdue),
      shown: (count) => this.shown(connection, listed, count),
    }
  }

  closed(connection: Connection): void {
    this.guards.gone(connection)
  }

  private decide(connection: Connection, listed: ListedTopic, rule: TopicRule, isOverdue: boolean): Showing {
    const topic = this.topics.meet(listed.name, listed.topicId, listed.count)
    const view = topic?.view()
    if (topic !== undefined && view !== undefined && view.topic.proposal?.preparingAt === undefined)
      return this.countFor(connection, topic, view.topic)
    if (rule.stateLoss === 'pass' && view === undefined && (isOverdue || this.context.passesWithoutState(rule))) {
      this.context.counted.add(listed.name, 'Metadata without state', this.context.writers.of(connection).name)
      const last = topic === undefined ? undefined : this.context.state.view(topic.topicId)
      return topic === undefined || last === undefined ? listed.count : this.countFor(connection, topic, last.topic)
    }
    return isOverdue ? 'unavailable' : 'wait'
  }

  /** How many partitions a member of a group is shown. */
  memberCount(connection: Connection, topic: KnownTopic, state: TopicState): number {
    return this.consumerCount(topic, connection) ?? widestCount(state)
  }

  private countFor(connection: Connection, topic: KnownTopic, state: TopicState): number {
    if (this.isConsumer(connection, topic)) return this.memberCount(connection, topic, state)
    const ledger = this.ledger(this.context.writers.of(connection), topic)
    const layout = countShown(state, ledger)
    if (layout.isLive === true && this.isStuck(topic, state, layout, ledger)) return widestCount(state)
    return layout.count
  }

  /** A member, or one that will be: it must see all that it may be assigned before it joins. */
  private isConsumer(connection: Connection, topic: KnownTopic): boolean {
    const { instance } = connection
    if (instance === undefined) return false
    if (instance.memberships.size > 0) return true
    const writer = this.context.writers.of(connection)
    const isWriter = writer.isProducer || writer.topics.get(topic.topicId)?.wrote === true
    return !isWriter && this.seeksGroup(instance)
  }

  /** A live shrink has left it with batches for partitions that it is shown no more. */
  private isStuck(topic: KnownTopic, state: TopicState, { epoch, count }: Layout, ledger: Ledger): boolean {
    const hadMore = state.layouts.some((other) => ledger.shownNow.includes(other.epoch) && other.count > count)
    const who = `${topic.topicId}/${ledger.instance}`
    return this.stuck.showsAll(who, epoch, hadMore, this.context.runtime.now())
  }

  /** What decides a count is what the instance was shown, whether or not the guard knows it yet. */
  private ledger(writer: Writer, topic: KnownTopic): Ledger {
    const known = this.guards.of(topic.topicId)?.state.ledgers.get(writer.name)
    if (known !== undefined) return known
    return { ...newLedger(writer.name, 0), shownNow: writer.topics.get(topic.topicId)?.shown ?? [] }
  }

  private shown(connection: Connection, listed: ListedTopic, count: number): void {
    const topic = this.topics.find(listed.name, listed.topicId)
    if (topic !== undefined) this.context.writers.of(connection).topic(topic.topicId).count = count
    const guard = topic === undefined ? undefined : this.guards.of(topic.topicId)
    const state = guard?.view?.topic
    if (topic === undefined || guard === undefined || state === undefined) return
    const layout = state.layouts.findLast((other) => other.count === count) ?? currentLayout(state)
    const writer = this.context.writers.of(connection)
    const known = writer.topic(topic.topicId)
    const isNewlyNamed = listed.isNamed && !known.isNamed
    if (isNewlyNamed) known.isNamed = true
    if (!known.shown.includes(layout.epoch)) {
      known.shown = known.shown.length === 0 ? single(layout.epoch) : [...known.shown, layout.epoch]
      if (known.isJoined) guard.shown(writer.name, layout.epoch)
    }
    // A writer that left has come back, or a producer met the topic.
    const isBack = !known.isJoined && guard.state.ledgers.has(writer.name)
    if (isBack || (isNewlyNamed && writer.isProducer)) guard.join(writer)
  }
}

/** One list for all who were shown one layout only, which are nearly all. */
function single(epoch: number): readonly number[] {
  return (singles[epoch] ??= [epoch])
}

const singles: (readonly number[])[] = []
