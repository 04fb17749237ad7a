/**
 * What makes the clocks of a guard's instances stand still: a partition without leader, a throttle, Produce that was
 * under way when the guard began to look. Each reason is told when it begins and when it ends, once.
 */
import type { Runtime, Timer } from '../../../runtime/runtime.ts'

export interface StopEvent {
  readonly type: 'stopped' | 'resumed'
  readonly reason: string
}

export class Stops {
  private readonly runtime: Runtime
  private readonly tell: (event: StopEvent) => void
  private readonly reasons = new Map<string, Timer | undefined>()

  constructor(runtime: Runtime, tell: (event: StopEvent) => void) {
    this.runtime = runtime
    this.tell = tell
  }

  begin(reason: string): void {
    if (this.reasons.has(reason)) return
    this.reasons.set(reason, undefined)
    this.tell({ type: 'stopped', reason })
  }

  /** Begins it, or makes it last longer. */
  beginFor(reason: string, ms: number): void {
    this.begin(reason)
    this.reasons.get(reason)?.cancel()
    this.reasons.set(
      reason,
      this.runtime.timer(ms, () => this.end(reason)),
    )
  }

  end(reason: string): void {
    if (!this.reasons.has(reason)) return
    this.reasons.get(reason)?.cancel()
    this.reasons.delete(reason)
    this.tell({ type: 'resumed', reason })
  }

  /** Something passed unopened and is unanswered, or was refused. */
  get hasOwed(): boolean {
    return [...this.reasons.keys()].some((reason) => /^(unopened|owed) /.test(reason))
  }

  clear(): void {
    for (const timer of this.reasons.values()) timer?.cancel()
    this.reasons.clear()
  }
}
