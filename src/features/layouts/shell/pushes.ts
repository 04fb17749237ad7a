/** Makes stale instances ask for Metadata soon, once per change and only where it is harmless (push.ts). */
import type { ProduceLane } from '../../../editors/produce/lane.ts'
import type { ProduceBatch } from '../../../editors/produce/policy.ts'
import { magicOf, producerIdOf } from '../../../records/batch.ts'
import { currentLayout, type Layout } from '../../../state/topic-state.ts'
import { pushAtProduce, pushWhenIdle } from '../push.ts'
import { countShown } from '../shrink.ts'
import type { GuardContext } from './context.ts'
import type { TopicGuard } from './topic-guard.ts'
import type { Writer } from './writers.ts'

export class Pushes {
  private readonly guard: TopicGuard
  private readonly context: GuardContext
  /** Instance → the epoch that it was last pushed towards. */
  private readonly done = new Map<string, number>()

  constructor(guard: TopicGuard, context: GuardContext) {
    this.guard = guard
    this.context = context
  }

  /** Whether these batches, all that a request has of this topic, are to be refused once. Notes it if so. */
  atProduce(writer: Writer, batches: readonly ProduceBatch[]): boolean {
    const target = this.target(writer)
    const [first] = batches
    if (target === undefined || first === undefined) return false
    const push = pushAtProduce({
      isIdempotent: batches.every(({ records }) => isIdempotent(records)),
      pipelines: first.lane.mostInFlight > 1,
      wasPushed: this.wasPushed(writer, target),
      isShown: false,
      staysVisible: batches.every(({ partition }) => partition < target.count),
      hasAcks: first.acks !== 0,
    })
    if (push !== 'refuse') return false
    this.note(writer, target, 'refused')
    return true
  }

  /** Closes one connection, without Produce for a second, of each instance that could not be pushed otherwise. */
  closeIdle(): void {
    const { runtime, writers } = this.context
    for (const writer of writers.all()) {
      const known = writer.topics.get(this.guard.topic.topicId)
      const target = known === undefined || known.lanes.size === 0 ? undefined : this.target(writer)
      if (known === undefined || target === undefined) continue
      const idle = [...known.lanes].find((lane) => lane.inFlight === 0 && lane.connection.closed === undefined)
      if (idle === undefined) continue
      const facts = { isIdempotent: false, pipelines: true, isShown: false, hasAcks: true }
      const wasPushed = this.wasPushed(writer, target)
      if (pushWhenIdle({ ...facts, wasPushed }, runtime.now() - idle.lastAtMs) !== 'close') continue
      this.note(writer, target, 'closed')
      this.close(idle)
    }
  }

  /** The layout that a stale instance should learn of; undefined: it is not stale, or cannot be shown it now. */
  private target(writer: Writer): Layout | undefined {
    const { view, state } = this.guard
    if (view === undefined || view.topic.proposal !== undefined || !this.guard.isAlert) return undefined
    const ledger = state.ledgers.get(writer.name)
    const target = countShown(view.topic, ledger)
    const shown = ledger?.shown.map(({ epoch }) => epoch) ?? []
    const isStale = target.epoch === currentLayout(view.topic).epoch && !shown.some((epoch) => epoch >= target.epoch)
    return isStale && target.change !== 'met' ? target : undefined
  }

  private wasPushed(writer: Writer, target: Layout): boolean {
    return (this.done.get(writer.name) ?? -1) >= target.epoch
  }

  private note(writer: Writer, target: Layout, how: string): void {
    this.done.set(writer.name, target.epoch)
    this.context.pushed.add(this.guard.topic.name, how, writer.name)
  }

  /** With FIN, after what is owed was answered: a reset would eat answers. */
  private close(lane: ProduceLane): void {
    lane.connection.drain()
  }
}

function isIdempotent(records: Buffer): boolean {
  return records.length >= 61 && magicOf(records, 0) === 2 && producerIdOf(records, 0) >= 0
}
