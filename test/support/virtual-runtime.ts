/**
 * The runtime interface in virtual time: one queue of events, ordered by time and then by the order in which they were
 * made, and a seeded generator for everything that is left to chance (how many bytes arrive at once, and when). A run
 * depends on nothing but its seed.
 */
import type { Runtime, Timer } from '../../src/runtime/runtime.ts'
import type {
  AcceptHandler,
  DialOptions,
  Listener,
  ListenOptions,
  Socket,
  SocketHandler,
} from '../../src/runtime/socket.ts'
import { Prng } from './prng.ts'
import { connectPair, VirtualSocket } from './virtual-socket.ts'

interface Event {
  readonly atMs: number
  readonly order: number
  run: (() => void) | undefined
}

export class VirtualRuntime implements Runtime {
  readonly prng: Prng
  /** Sockets that are not closed. */
  readonly sockets = new Set<VirtualSocket>()
  /** Most bytes that one direction of a socket carries between the two ends, as kernel buffers do. */
  kernelBytes = 64 * 1024
  /** Somebody sets the wall clock. */
  clockSetByMs = 0
  private timeMs = 0
  private order = 0
  private readonly queue: Event[] = []
  private readonly listeners = new Map<number, AcceptHandler>()
  private nextPort = 40_000

  constructor(seed = 1) {
    this.prng = new Prng(seed)
  }

  now(): number {
    return this.timeMs
  }

  wallNow(): number {
    return 1_700_000_000_000 + Math.floor(this.timeMs) + this.clockSetByMs
  }

  random(below: number): number {
    return this.prng.below(below)
  }

  timer(delayMs: number, fire: () => void): Timer {
    const event = this.schedule(delayMs, fire)
    return { cancel: () => (event.run = undefined) }
  }

  soon(fire: () => void): void {
    this.schedule(0, fire)
  }

  dial(options: DialOptions, handler: SocketHandler): Socket {
    const socket = new VirtualSocket(this, handler)
    this.timer(this.prng.below(3), () => {
      const accept = this.listeners.get(options.port)
      if (socket.closed) return
      if (accept === undefined) socket.fail(systemError('ECONNREFUSED', `connect ${options.host}:${options.port}`))
      else connectPair(socket, options, this.nextPort++, accept)
    })
    return socket
  }

  listen(options: ListenOptions, accept: AcceptHandler): Promise<Listener> {
    const port = options.port === 0 ? this.nextPort++ : options.port
    if (this.listeners.has(port)) return Promise.reject(systemError('EADDRINUSE', `listen ${options.host}:${port}`))
    this.listeners.set(port, accept)
    const close = (): Promise<void> => {
      this.listeners.delete(port)
      return Promise.resolve()
    }
    return Promise.resolve({ host: options.host, port, close })
  }

  schedule(delayMs: number, run: () => void): Event {
    const event: Event = { atMs: this.timeMs + delayMs, order: this.order++, run }
    let at = this.queue.length
    this.queue.push(event)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = this.queue[parent]
      if (above === undefined || !before(event, above)) break
      this.queue[at] = above
      this.queue[parent] = event
      at = parent
    }
    return event
  }

  /**
   * Runs events until `done`, until none is left, or until `forMs` of virtual time have passed.
   * @returns whether `done` came true
   */
  async run(done: () => boolean = () => false, forMs = 60_000): Promise<boolean> {
    const until = this.timeMs + forMs
    for (;;) {
      await microtasks()
      if (done()) return true
      const next = this.queue[0]
      if (next === undefined || next.atMs > until) {
        this.timeMs = Math.max(this.timeMs, Math.min(until, next?.atMs ?? until))
        return done()
      }
      this.pop()
      if (next.run === undefined) continue
      this.timeMs = next.atMs
      next.run()
    }
  }

  private pop(): void {
    const last = this.queue.pop()
    if (last === undefined || this.queue.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      const left = this.queue[child]
      const right = this.queue[child + 1]
      if (left === undefined) break
      let small = left
      if (right !== undefined && before(right, left)) {
        child++
        small = right
      }
      if (!before(small, last)) break
      this.queue[at] = small
      at = child
    }
    this.queue[at] = last
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

/** Lets promises that are settled run on; chains in the code under test are a few steps long. */
async function microtasks(): Promise<void> {
  for (let i = 0; i < 8; i++) await Promise.resolve()
}

export function systemError(code: string, message: string): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${code}: ${message}`)
  error.code = code
  return error
}
