/**
 * Requests held back on one connection, and those that wait behind them because they share a lane (for example
 * `topic:orders`). Invariant: within a lane, requests go upstream in the order in which the client sent them.
 */
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { Exchange } from './exchange.ts'
import type { Outcome } from './handler.ts'

interface Hold {
  readonly exchange: Exchange
  /** undefined: not held itself, but waiting behind another one. */
  timer: Timer | undefined
}

export class Holds {
  private readonly runtime: Runtime
  private readonly again: (exchange: Exchange) => void
  private waiting: Hold[] = []

  /** @param again called for a request that waited behind a held one and is free now */
  constructor(runtime: Runtime, again: (exchange: Exchange) => void) {
    this.runtime = runtime
    this.again = again
  }

  get size(): number {
    return this.waiting.length
  }

  add(exchange: Exchange, deadlineMs: number, outcome: Outcome): void {
    const timer = this.runtime.timer(deadlineMs, () => exchange.finish(outcome))
    const known = this.waiting.find((hold) => hold.exchange === exchange)
    if (known !== undefined) known.timer = timer
    else this.waiting.push({ exchange, timer })
  }

  queue(exchange: Exchange): boolean {
    const index = this.waiting.findIndex((hold) => hold.exchange === exchange)
    const blocked = this.blocked(exchange, index < 0 ? this.waiting.length : index)
    if (blocked && index < 0) this.waiting.push({ exchange, timer: undefined })
    return blocked
  }

  /** The hold of an exchange has ended: whoever waited only for it goes on, oldest first. */
  release(exchange: Exchange): void {
    const index = this.waiting.findIndex((hold) => hold.exchange === exchange)
    if (index < 0) return
    this.waiting[index]?.timer?.cancel()
    this.waiting.splice(index, 1)
    for (let i = index; i < this.waiting.length; ) {
      const hold = this.waiting[i]
      if (hold === undefined || hold.timer !== undefined || this.blocked(hold.exchange, i)) {
        i++
        continue
      }
      // It keeps its place while it is asked about again: it may be held once more, and must not lose its turn then.
      this.again(hold.exchange)
      if (hold.timer === undefined && this.waiting[i] === hold) this.waiting.splice(i, 1)
    }
  }

  clear(): void {
    for (const hold of this.waiting) hold.timer?.cancel()
    this.waiting = []
  }

  private blocked(exchange: Exchange, before: number): boolean {
    for (let i = 0; i < before; i++) {
      const other = this.waiting[i]
      if (other !== undefined && other.exchange.lanes.some((lane) => exchange.lanes.includes(lane))) return true
    }
    return false
  }
}
