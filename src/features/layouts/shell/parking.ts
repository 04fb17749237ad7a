/**
 * Batches of one topic that came while the state could not be acted upon: they wait in order, bounded, and then are
 * answered retriably, or pass and are counted (`stateLoss`).
 */
import type { GuardEvent } from '../guard.ts'
import type { Batch } from '../guard-state.ts'
import type { GuardContext } from './context.ts'
import type { TopicGuard } from './topic-guard.ts'

interface Parked {
  readonly batch: Batch
  readonly sinceMs: number
  isBound: boolean
}

export class Parking {
  private readonly guard: TopicGuard
  private readonly context: GuardContext
  private readonly dispatch: (event: GuardEvent) => void
  private parked: Parked[] = []

  /** @param dispatch gives batches to the reducer */
  constructor(guard: TopicGuard, context: GuardContext, dispatch: (event: GuardEvent) => void) {
    this.guard = guard
    this.context = context
    this.dispatch = dispatch
  }

  get size(): number {
    return this.parked.length
  }

  add(batch: Batch): void {
    this.parked.push({ batch, sinceMs: this.context.runtime.now(), isBound: false })
    this.context.wake()
    this.retry()
  }

  /** Takes back what the reducer held: it came before whatever is parked. */
  takeBack(held: readonly Parked[]): void {
    this.parked.unshift(...held)
    if (held.length > 0) this.context.wake()
  }

  /** Another part of its request has gone. */
  bound(id: string): void {
    for (const parked of this.parked) if (parked.batch.id === id) parked.isBound = true
  }

  /** @returns what waits; it waits here no longer */
  end(): readonly Batch[] {
    return this.parked.splice(0).map(({ batch }) => batch)
  }

  /** Lets go what may go now. */
  retry(): void {
    const { context, guard } = this
    const { rule, name } = guard.topic
    while (this.parked.length > 0) {
      const [first] = this.parked
      if (first === undefined) return
      const { batch, sinceMs, isBound } = first
      const isOverdue = context.runtime.now() - sinceMs >= guard.times.holdBoundMs
      const passes = rule.stateLoss === 'pass' && (isOverdue || context.passesWithoutState(rule))
      if (!guard.mayAct && !isOverdue && !passes) return
      this.parked.shift()
      if (!guard.isWaiting(batch.id)) continue
      if (guard.mayAct) this.admit(batch, isBound)
      else if (passes) {
        context.counted.add(name, 'passed without state', batch.instance)
        guard.settle(batch.id, 'forward')
      } else {
        context.refused.add(name, 'no state', batch.instance)
        guard.settle(batch.id, 'refuse')
      }
    }
  }

  private admit(batch: Batch, isBound: boolean): void {
    if (!isBound) return this.dispatch({ type: 'batch', batch })
    this.dispatch({ type: 'batch', batch: { ...batch, mayRefuse: false } })
    this.dispatch({ type: 'bound', id: batch.id })
  }
}
