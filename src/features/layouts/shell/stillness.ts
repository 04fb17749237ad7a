/**
 * When the clocks of a topic's instances stand still, because they could not send even if they wanted, or because
 * something of theirs is under way that the guard did not see: no leader, a throttle, Produce that passed unopened.
 */
import type { ProduceLane } from '../../../editors/produce/lane.ts'
import { widestCount } from '../../../state/topic-state.ts'
import type { GuardContext } from './context.ts'
import { Stops, type StopEvent } from './stops.ts'
import type { TopicGuard } from './topic-guard.ts'
import type { Writer } from './writers.ts'

export class Stillness {
  readonly stops: Stops
  private readonly guard: TopicGuard
  private readonly context: GuardContext
  private hasLeaderStops = false
  /** When a connection was lost with Produce unanswered on it. */
  private lostAtMs = -Infinity

  constructor(guard: TopicGuard, context: GuardContext, tell: (event: StopEvent) => void) {
    this.guard = guard
    this.context = context
    this.stops = new Stops(context.runtime, tell)
  }

  /** Old partitions without a leader cannot be written to, however long it lasts. */
  noteLeaders(): void {
    const { view, isUnsealed, topic } = this.guard
    if (view === undefined || (!isUnsealed && !this.hasLeaderStops)) return
    this.hasLeaderStops = isUnsealed
    for (let partition = 0; partition < widestCount(view.topic); partition++) {
      const reason = `leader ${partition}`
      if (isUnsealed && topic.leaders[partition] === -1) this.stops.begin(reason)
      else this.stops.end(reason)
    }
  }

  /** Produce that passed unopened is under way when the guard begins to look: until it is answered nobody is clean. */
  awaitUnopened(): void {
    for (const { lane } of this.lanes()) {
      const reason = `unopened ${lane.connection.id}`
      if (lane.await(() => this.stops.end(reason))) this.stops.begin(reason)
    }
  }

  /** The lease has ended: what is under way will be acknowledged without it. */
  lapsed(): void {
    const { state, counted } = this.context
    for (const { writer, lane } of this.lanes())
      lane.await(() => {
        if (!state.mayAct()) counted.add(this.guard.topic.name, 'acknowledged after the lease', writer.name)
      })
  }

  /** A batch that passed unopened was refused: it may come back. */
  failedUnopened(lane: ProduceLane): void {
    if (this.guard.isAlert) this.stops.beginFor(`owed ${lane.connection.id}`, this.guard.times.comeBackMs)
  }

  throttled(lane: ProduceLane, ms: number): void {
    if (this.guard.isUnsealed) this.stops.beginFor(`throttle ${lane.connection.id}`, ms)
  }

  /** A connection that is written on is gone: nothing that was under way on it is answered any more. */
  forgetLane(lane: ProduceLane): void {
    this.stops.end(`unopened ${lane.connection.id}`)
    if (lane.inFlight > 0) this.lostAtMs = this.context.runtime.now()
  }

  /** Whether something that was refused or lost unopened is still to come back. */
  get mayBringBack(): boolean {
    const { comeBackMs } = this.guard.times
    return this.stops.hasOwed || this.context.runtime.now() - this.lostAtMs < comeBackMs
  }

  private lanes(): { writer: Writer; lane: ProduceLane }[] {
    const { topicId } = this.guard.topic
    return [...this.context.writers.all()].flatMap((writer) =>
      [...(writer.topics.get(topicId)?.lanes ?? [])].map((lane) => ({ writer, lane })),
    )
  }
}
