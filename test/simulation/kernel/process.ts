/**
 * A process of the simulation: an address, and a runtime whose timers and sockets are virtual. It can be killed (nothing
 * of it runs any more, its sockets are reset) and paused (everything waits until it is resumed, as under SIGSTOP).
 */
import type { Runtime, Timer } from '../../../src/runtime/runtime.ts'
import type {
  AcceptHandler,
  DialOptions,
  Listener,
  ListenOptions,
  Socket,
  SocketHandler,
} from '../../../src/runtime/socket.ts'
import type { Clock } from './clock.ts'
import type { Network } from './network.ts'
import { Random } from './random.ts'

/** Wall-clock time at the start of every simulation: 2026-01-01. */
const EPOCH_MS = 1_767_225_600_000

export class Process implements Runtime {
  readonly name: string
  readonly address: string
  readonly random: (below: number) => number
  alive = true
  readonly #clock: Clock
  readonly #network: Network
  #paused = false
  #held: (() => void)[] = []

  constructor(clock: Clock, network: Network, name: string, address: string, seed: number | string) {
    this.#clock = clock
    this.#network = network
    this.name = name
    this.address = address
    const random = Random.forked(seed, name)
    this.random = (below) => random.below(below)
  }

  now(): number {
    return this.#clock.nowMs
  }

  wallNow(): number {
    return EPOCH_MS + Math.floor(this.#clock.nowMs)
  }

  timer(delayMs: number, fire: () => void): Timer {
    let cancelled = false
    const timer = this.#clock.schedule(this.#clock.nowMs + delayMs, () =>
      this.enter(() => (cancelled ? undefined : fire())),
    )
    return {
      cancel: () => {
        cancelled = true
        timer.cancel()
      },
    }
  }

  soon(fire: () => void): void {
    this.timer(0, fire)
  }

  dial(options: DialOptions, handler: SocketHandler): Socket {
    return this.#network.dial(this, options, handler)
  }

  async listen(options: ListenOptions, accept: AcceptHandler): Promise<Listener> {
    return this.#network.listen(this, options, accept)
  }

  /** Runs what happens to this process: now, after it is resumed, or never when it is dead. */
  enter(happen: () => void): void {
    if (!this.alive) return
    if (this.#paused) this.#held.push(happen)
    else happen()
  }

  get paused(): boolean {
    return this.#paused
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    const held = this.#held
    this.#held = []
    for (const happen of held) this.#clock.schedule(this.#clock.nowMs, () => this.enter(happen))
  }

  /** Dies at once; peers see their connections reset. */
  kill(): void {
    this.alive = false
    this.#held = []
    this.#network.forget(this)
  }
}
