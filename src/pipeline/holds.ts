/**
 * Requests held back on one connection, and those that wait behind them because they share a lane (for example
 * `topic:orders`). Invariant: within a lane, requests go upstream in the order in which the client sent them, so a
 * request keeps its lanes until it has gone, however many handlers hold it one after the other.
 */
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { Exchange } from './exchange.ts'
import type { Outcome } from './handler.ts'

interface Hold {
  readonly exchange: Exchange
  /** Waits behind another one, and is asked about again when it is free. */
  queued: boolean
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
    const hold = this.find(exchange) ?? this.push(exchange)
    hold.queued = false
    hold.timer?.cancel()
    hold.timer = this.runtime.timer(deadlineMs, () => exchange.finish(outcome))
  }

  queue(exchange: Exchange): boolean {
    const known = this.waiting.findIndex((hold) => hold.exchange === exchange)
    const blocked = this.blocked(exchange, known < 0 ? this.waiting.length : known)
    if (blocked) (this.waiting[known] ?? this.push(exchange)).queued = true
    return blocked
  }

  /** The handler that held an exchange goes on with it: its deadline no longer counts. */
  ended(exchange: Exchange): void {
    const hold = this.find(exchange)
    hold?.timer?.cancel()
    if (hold !== undefined) hold.timer = undefined
  }

  /** An exchange has left: whoever waited only for it goes on, oldest first. */
  release(exchange: Exchange): void {
    const index = this.waiting.findIndex((hold) => hold.exchange === exchange)
    if (index < 0) return
    this.waiting[index]?.timer?.cancel()
    this.waiting.splice(index, 1)
    for (let i = index; i < this.waiting.length; ) {
      const hold = this.waiting[i]
      if (hold === undefined || !hold.queued || this.blocked(hold.exchange, i)) {
        i++
        continue
      }
      // It keeps its place while it is asked about again: it may be held once more, and must not lose its turn then.
      hold.queued = false
      this.again(hold.exchange)
      if (this.waiting[i] !== hold) continue
      if (hold.exchange.taken) i++
      else this.waiting.splice(i, 1)
    }
  }

  clear(): void {
    for (const hold of this.waiting) hold.timer?.cancel()
    this.waiting = []
  }

  private find(exchange: Exchange): Hold | undefined {
    return this.waiting.find((hold) => hold.exchange === exchange)
  }

  private push(exchange: Exchange): Hold {
    const hold: Hold = { exchange, queued: false, timer: undefined }
    this.waiting.push(hold)
    return hold
  }

  private blocked(exchange: Exchange, before: number): boolean {
    for (let i = 0; i < before; i++) {
      const other = this.waiting[i]
      if (other !== undefined && other.exchange.lanes.some((lane) => exchange.lanes.includes(lane))) return true
    }
    return false
  }
}
