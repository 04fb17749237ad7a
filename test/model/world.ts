/** Virtual time, messages and the history of one run. Everything that happens is an event of its queue. */
import type { HistoryEvent } from '../checker/history.ts'
import type { Mutation } from './mutations.ts'
import { Random } from './random.ts'

interface Item {
  at: number
  order: number
  run: () => void
}

export class World {
  readonly random: Random
  readonly history: HistoryEvent[] = []
  /** What occurred how often: faults, states, counted disorder. */
  readonly counts = new Map<string, number>()
  /** Producer → keys ('*': all) whose order was counted as possibly lost. */
  readonly excused = new Map<string, Set<string>>()
  readonly mutation: Mutation | undefined
  /** Counted although nobody had been given up. */
  readonly needless: string[] = []
  /** Producer → when some proxy could first tell that it is one. */
  readonly writers = new Map<string, number>()
  /** A log was cut below what had been acknowledged: order is not judged. */
  hasLostLogs = false
  readonly trace: string[] = []
  readonly isTracing: boolean
  now = 0
  /** Faults are drawn only while this holds; without them the run must come to rest. */
  faultsUntil = 0
  #heap: Item[] = []
  #order = 0

  constructor(seed: number, mutation: Mutation | undefined, isTracing: boolean) {
    this.random = new Random(seed)
    this.mutation = mutation
    this.isTracing = isTracing
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  log(text: () => string): void {
    if (this.isTracing) this.trace.push(`${this.now.toFixed(0).padStart(7)} ${text()}`)
  }

  emit(event: HistoryEvent): void {
    this.history.push(event)
  }

  excuse(producer: string, keys: readonly string[]): void {
    const set = this.excused.get(producer) ?? new Set()
    for (const key of keys) set.add(key)
    this.excused.set(producer, set)
  }

  noteWriter(instance: string): void {
    if (!this.writers.has(instance)) this.writers.set(instance, this.now)
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.now + delayMs, run)
  }

  at(at: number, run: () => void): void {
    const item = { at, order: this.#order++, run }
    const heap = this.#heap
    let index = heap.push(item) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(item, heap[parent] as Item)) break
      heap[index] = heap[parent] as Item
      index = parent
    }
    heap[index] = item
  }

  /** Runs until the time or until `isDone`, asked now and then. */
  run(until: number, isDone: () => boolean): void {
    let steps = 0
    for (;;) {
      const item = this.#pop()
      if (item === undefined || item.at > until) return
      this.now = item.at
      item.run()
      if (++steps % 256 === 0 && isDone()) return
    }
  }

  #pop(): Item | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = index * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Item, heap[child] as Item)) child += 1
      if (!isBefore(heap[child] as Item, last)) break
      heap[index] = heap[child] as Item
      index = child
    }
    heap[index] = last
    return first
  }

  get areFaultsOn(): boolean {
    return this.now < this.faultsUntil
  }

  /** Time on the way of one message: mostly short, sometimes long. */
  latency(): number {
    const roll = this.random.next()
    if (roll < 0.9) return this.random.int(1, 8)
    if (roll < 0.99 || !this.areFaultsOn) return this.random.int(8, 60)
    this.count('slow message')
    return this.random.int(60, 700)
  }
}

function isBefore(a: Item, b: Item): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** One direction of a connection: messages arrive in the order they were sent, or not at all once it is cut. */
export class Link {
  readonly #world: World
  #lastAt = 0
  #isCut = false
  #stalledUntil = 0
  #onWay = 0

  constructor(world: World) {
    this.#world = world
  }

  get isIdle(): boolean {
    return this.#onWay === 0
  }

  send(deliver: () => void, survivesCut = false): void {
    if (this.#isCut) return
    const start = Math.max(this.#world.now, this.#stalledUntil)
    this.#lastAt = Math.max(this.#lastAt, start + this.#world.latency())
    this.#onWay += 1
    this.#world.at(this.#lastAt, () => {
      this.#onWay -= 1
      if (!this.#isCut || survivesCut) deliver()
    })
  }

  /** Nothing gets through for a while; what was sent later waits behind it. */
  stall(untilMs: number): void {
    this.#stalledUntil = Math.max(this.#stalledUntil, untilMs)
  }

  cut(): void {
    this.#isCut = true
  }
}
