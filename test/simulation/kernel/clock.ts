/**
 * Virtual time: a queue of events in the order of time, and of insertion where times are equal. Between two events all
 * promises that can settle do, so code with `await` runs as it does on a real event loop. Invariant: time never goes back.
 */
import type { Timer } from '../../../src/runtime/runtime.ts'

interface Event extends Timer {
  at: number
  order: number
  fire: (() => void) | undefined
}

/** Something is going round in circles without time passing. */
const MAX_EVENTS = 5_000_000

export class Clock {
  nowMs = 0
  /** Events run so far. */
  events = 0
  readonly #heap: Event[] = []
  #order = 0

  /** Runs `fire` at `at`, or at once if that is past. */
  schedule(at: number, fire: () => void): Timer {
    const event: Event = {
      at: Math.max(at, this.nowMs),
      order: this.#order++,
      fire,
      cancel: () => {
        event.fire = undefined
      },
    }
    this.#push(event)
    return event
  }

  /** Runs events until `until` returns true (asked after each), none is left, or the next lies at or after `endMs`. */
  async run(endMs: number, until: () => boolean = () => false): Promise<'until' | 'idle' | 'end'> {
    for (;;) {
      const next = this.#heap[0]
      if (next === undefined) return 'idle'
      if (next.fire === undefined) {
        this.#pop()
        continue
      }
      if (next.at >= endMs) {
        this.nowMs = endMs
        return 'end'
      }
      this.#pop()
      this.nowMs = next.at
      if (++this.events > MAX_EVENTS) throw new Error(`more than ${MAX_EVENTS} events by ${this.nowMs} ms`)
      next.fire()
      await settled()
      if (until()) return 'until'
    }
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!before(event, heap[parent])) break
      heap[at] = heap[parent] as Event
      at = parent
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++
      if (!before(heap[child], last)) break
      heap[at] = heap[child] as Event
      at = child
    }
    heap[at] = last
  }
}

function before(a: Event | undefined, b: Event | undefined): boolean {
  if (a === undefined || b === undefined) return false
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** After every promise that can settle now has settled: microtasks run out before an immediate does. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
