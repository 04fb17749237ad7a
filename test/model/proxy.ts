/**
 * One proxy: the real reducers behind a thin shell, as the feature's shell is. It can be killed, paused (it handles
 * nothing, then everything that waited) and cut off from the state.
 */
import type { Connection } from './connection.ts'
import { Control } from './control.ts'
import { Fetcher } from './fetcher.ts'
import type { Model } from './model.ts'
import { Producing } from './producing.ts'
import { Replica } from './replica.ts'
import type { View } from '../../src/state/view.ts'

export const topicId = 'T'
/** How long a proxy that stops waits for what is under way. */
const drainMs = 3000

export class Proxy {
  readonly model: Model
  readonly id: string
  readonly replica: Replica
  readonly producing: Producing
  readonly control: Control
  readonly fetcher: Fetcher
  isDead = false
  isPaused = false
  /** It takes no new connection, ends those it has, and goes. */
  isStopping = false
  readonly connections = new Set<Connection>()
  /** With those whose opening is still on its way. */
  readonly sockets = new Set<Connection>()
  #inbox: (() => void)[] = []
  #ids = 0
  #ticks = 0

  constructor(model: Model, id: string) {
    this.model = model
    this.id = id
    this.replica = new Replica(this)
    this.producing = new Producing(this)
    this.control = new Control(this)
    this.fetcher = new Fetcher(this)
    this.replica.start()
    const tick = (): void => {
      if (this.isDead) return
      if (!this.isPaused) this.#tick()
      model.world.after(100, tick)
    }
    model.world.after(model.world.random.int(1, 100), tick)
  }

  get view(): View | undefined {
    return this.replica.view
  }

  get mayAct(): boolean {
    return this.replica.mayAct
  }

  nextId(): string {
    return `${this.id}#${this.#ids++}`
  }

  /** Handles a message now, or when the pause ends; a dead proxy handles none. */
  receive(run: () => void): void {
    if (this.isDead) return
    if (this.isPaused) this.#inbox.push(run)
    else run()
  }

  /** A request of our own to the cluster: either way it may be lost, and the reducers ask again. */
  rpc<T>(serve: () => T, then: (answer: T) => void): void {
    this.model.rpc(serve, (answer) => this.receive(() => then(answer)))
  }

  readEnds(partitions: readonly number[], then: (ends: Record<number, number>) => void): void {
    this.rpc(() => Object.fromEntries(partitions.map((p) => [p, this.model.broker.highWatermark(p)])), then)
  }

  kill(): void {
    this.isDead = true
    for (const connection of [...this.sockets]) connection.close()
    this.model.world.log(() => `${this.id} dies`)
  }

  /** Ends connections as they become idle, and all of them after a while; then says what it knows and is gone. */
  stop(gone: () => void): void {
    if (this.isStopping) return
    this.isStopping = true
    const sinceMs = this.model.world.now
    this.model.world.log(() => `${this.id} stops`)
    const drain = (): void => {
      const isOverdue = this.model.world.now - sinceMs >= drainMs
      for (const connection of [...this.sockets]) if (isOverdue || connection.inFlight === 0) connection.close()
      if (this.isDead) return
      if (this.isPaused || this.sockets.size > 0) return this.model.world.after(20, drain)
      if (this.mayAct) this.producing.leave(sinceMs)
      // What it appended has to arrive.
      this.model.world.after(200, gone)
    }
    this.model.world.after(20, drain)
  }

  pause(forMs: number): void {
    this.isPaused = true
    this.model.world.log(() => `${this.id} is paused for ${forMs}`)
    this.model.world.after(forMs, () => {
      this.isPaused = false
      this.model.world.log(() => `${this.id} resumes`)
      const waiting = this.#inbox
      this.#inbox = []
      for (const run of waiting) this.receive(run)
    })
  }

  opened(connection: Connection): void {
    this.connections.add(connection)
    if (connection.isProducer) this.producing.opened(connection)
  }

  /** The client's or the broker's side is gone: what was unanswered is lost with it. */
  closed(connection: Connection): void {
    if (!this.connections.delete(connection) || this.isDead) return
    this.producing.closed(connection)
  }

  /** A confirmed read brought something. */
  feed(view: View): void {
    this.producing.feed(view)
    this.control.feed(view)
  }

  #tick(): void {
    this.producing.look()
    this.fetcher.tick()
    const { view } = this
    if (!this.mayAct || view === undefined) return
    this.replica.feed()
    this.producing.tick()
    if (++this.#ticks % 50 === 0) this.producing.tidy()
    this.control.tick(view)
    if (this.control.isLeader && this.model.world.random.chance(0.02)) this.replica.tidy()
  }
}
