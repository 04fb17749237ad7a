/** Makes stale instances ask for Metadata soon, once per change and only where it is harmless (push.ts). */
import type { ProduceBatch } from '../../../editors/produce/policy.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import { magicOf, producerIdOf } from '../../../records/batch.ts'
import { currentLayout, type Layout } from '../../../state/topic-state.ts'
import { pushAtProduce, pushWhenIdle } from '../push.ts'
import { countShown } from '../shrink.ts'
import type { GuardContext } from './context.ts'
import type { TopicGuard } from './topic-guard.ts'
import type { Writer } from './writers.ts'

type Push = 'refused' | 'closed'

export class Pushes {
  private readonly guard: TopicGuard
  private readonly context: GuardContext
  /** Instance → the epoch that it was last pushed towards, when on the runtime's clock, and how. */
  private readonly done = new Map<string, { readonly epoch: number; readonly atMs: number; readonly how: Push }>()

  constructor(guard: TopicGuard, context: GuardContext) {
    this.guard = guard
    this.context = context
  }

  forget(instance: string): void {
    this.done.delete(instance)
  }

  /** Whether these batches, all that a request has of this topic, are to be refused once. Notes it if so. */
  atProduce(writer: Writer, batches: readonly ProduceBatch[]): boolean {
    const target = this.target(writer)
    const [first] = batches
    if (target === undefined || first === undefined) return false
    const push = pushAtProduce({
      isIdempotent: batches.every(({ records }) => isIdempotent(records)),
      pipelines: first.lane.mostInFlight > 1,
      wasPushed: this.pushed(writer, target) !== undefined,
      isShown: false,
      staysVisible: batches.every(({ partition }) => partition < target.count),
      hasAcks: first.acks !== 0,
    })
    if (push !== 'refuse') return false
    this.note(writer, target, 'refused')
    return true
  }

  /**
   * Closes the connections, idle for a second, of instances that could not be pushed otherwise, one at a time and none
   * that was opened since: a client that has nothing to send may ask for nothing, and is waited for as one that left
   * when none of its connections remains.
   */
  closeIdle(): void {
    const { runtime, writers } = this.context
    for (const writer of writers.all()) {
      const target = this.guard.state.ledgers.get(writer.name)?.wrote === true ? this.target(writer) : undefined
      if (target === undefined) continue
      const pushed = this.pushed(writer, target)
      // It has what was refused to send again, and asks for Metadata first.
      const hasTime = pushed?.how === 'refused' && runtime.now() - pushed.atMs < this.guard.times.comeBackMs
      const idle = hasTime ? undefined : this.idle(writer, pushed?.atMs ?? Infinity)
      if (idle === undefined) continue
      const facts = { isIdempotent: false, pipelines: true, isShown: false, hasAcks: true, wasPushed: false }
      if (pushWhenIdle(facts, runtime.now() - idle.sinceMs) !== 'close') continue
      if (pushed === undefined) this.note(writer, target, 'closed')
      // With FIN, after what is owed was answered: a reset would eat answers.
      idle.connection.drain()
    }
  }

  /** A connection with nothing unanswered that it writes on; any, if it has none of those and is no consumer. */
  private idle(writer: Writer, openedBeforeMs: number): { connection: Connection; sinceMs: number } | undefined {
    const mayClose = ({ closed, draining, openedAt }: Connection): boolean =>
      closed === undefined && !draining && openedAt <= openedBeforeMs
    const lanes = [...(writer.topics.get(this.guard.topic.topicId)?.lanes ?? [])]
    const lane = lanes.find(({ inFlight, connection }) => inFlight === 0 && mayClose(connection))
    if (lane !== undefined) return { connection: lane.connection, sinceMs: lane.lastAtMs }
    if (lanes.length > 0) return undefined
    const connection = [...writer.connections].find(
      (other) => other.order.length === 0 && other.instance?.memberships.size === 0 && mayClose(other),
    )
    if (connection === undefined) return undefined
    const { requests, responses, openedAt } = connection
    return { connection, sinceMs: Math.max(openedAt, requests.reader.lastByteAt, responses.reader.lastByteAt) }
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

  private pushed(writer: Writer, target: Layout) {
    const done = this.done.get(writer.name)
    return done !== undefined && done.epoch >= target.epoch ? done : undefined
  }

  private note(writer: Writer, target: Layout, how: Push): void {
    this.done.set(writer.name, { epoch: target.epoch, atMs: this.context.runtime.now(), how })
    this.context.pushed.add(this.guard.topic.name, how, writer.name)
  }
}

function isIdempotent(records: Buffer): boolean {
  return records.length >= 61 && magicOf(records, 0) === 2 && producerIdOf(records, 0) >= 0
}
