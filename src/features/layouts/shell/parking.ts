/**
 * Batches of one topic that came while the state could not be acted upon: they wait in order, bounded, and then are
 * answered retriably, or pass and are counted (`stateLoss`).
 */
import type { Batch } from '../guard-state.ts'
import type { GuardContext } from './context.ts'
import type { TopicGuard } from './topic-guard.ts'

export class Parking {
  private readonly guard: TopicGuard
  private readonly context: GuardContext
  private readonly admit: (batch: Batch) => void
  private parked: { readonly batch: Batch; readonly sinceMs: number }[] = []

  /** @param admit gives a batch to the reducer */
  constructor(guard: TopicGuard, context: GuardContext, admit: (batch: Batch) => void) {
    this.guard = guard
    this.context = context
    this.admit = admit
  }

  get size(): number {
    return this.parked.length
  }

  add(batch: Batch): void {
    this.parked.push({ batch, sinceMs: this.context.runtime.now() })
    this.context.wake()
    this.retry()
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
      const { batch, sinceMs } = first
      const isOverdue = context.runtime.now() - sinceMs >= guard.times.holdBoundMs
      const passes = rule.stateLoss === 'pass' && (isOverdue || context.passesWithoutState(rule))
      if (!guard.mayAct && !isOverdue && !passes) return
      this.parked.shift()
      if (!guard.isWaiting(batch.id)) continue
      if (guard.mayAct) this.admit(batch)
      else if (passes) {
        context.counted.add(name, 'passed without state', batch.instance)
        guard.settle(batch.id, 'forward')
      } else {
        context.refused.add(name, 'no state', batch.instance)
        guard.settle(batch.id, 'refuse')
      }
    }
  }
}
