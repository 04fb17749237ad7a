/**
 * The network between the processes of a simulation: who listens where, how long bytes take, which links are dead.
 * A link that is cut loses what is on its way and resets both ends; one that is half-open swallows everything, silently,
 * until it heals: then what TCP would have sent again arrives.
 */
import type {
  AcceptHandler,
  DialOptions,
  Listener,
  ListenOptions,
  Socket,
  SocketHandler,
} from '../../../src/runtime/socket.ts'
import type { Clock } from './clock.ts'
import { Process } from './process.ts'
import type { Random } from './random.ts'
import { VirtualSocket } from './virtual-socket.ts'

export interface NetworkOptions {
  /** One-way delay of a piece, drawn evenly. */
  minDelayMs: number
  maxDelayMs: number
  /** Probability that a write arrives in two pieces. */
  splitChance: number
}

interface Held {
  from: VirtualSocket
  arrive: () => void
}

export class Network {
  readonly options: NetworkOptions
  /** `from>to` for every pair of processes of which one has dialled the other. */
  readonly dialled = new Set<string>()
  readonly #clock: Clock
  readonly #random: Random
  readonly #processes = new Map<string, Process>()
  readonly #listeners = new Map<string, { owner: Process; accept: AcceptHandler }>()
  readonly #sockets = new Set<VirtualSocket>()
  readonly #dead = new Map<string, Held[]>()
  #nextPort = 40_000

  constructor(clock: Clock, random: Random, options: NetworkOptions) {
    this.#clock = clock
    this.#random = random
    this.options = options
  }

  /** A new process; its address is made from its place in the list. A name that died may come again. */
  spawn(name: string, seed: number | string): Process {
    const address = this.#processes.get(name)?.address ?? `10.0.0.${this.#processes.size + 1}`
    const process = new Process(this.#clock, this, name, address, `${seed}/${this.#clock.events}`)
    this.#processes.set(name, process)
    return process
  }

  listen(owner: Process, options: ListenOptions, accept: AcceptHandler): Listener {
    const port = options.port === 0 ? this.#nextPort++ : options.port
    const key = `${owner.address}:${port}`
    if (this.#listeners.has(key)) throw Object.assign(new Error(`EADDRINUSE ${key}`), { code: 'EADDRINUSE' })
    const entry = { owner, accept }
    this.#listeners.set(key, entry)
    const close = async (): Promise<void> => {
      if (this.#listeners.get(key) === entry) this.#listeners.delete(key)
    }
    return { host: options.host, port, close }
  }

  dial(from: Process, { host, port, timeoutMs }: DialOptions, handler: SocketHandler): Socket {
    const to = this.#find(host)
    this.dialled.add(`${from.name}>${to?.name ?? host}`)
    const local = new VirtualSocket(this, from, this.#nextPort++, to?.address ?? host, port)
    local.handler = handler
    this.#sockets.add(local)
    from.timer(timeoutMs, () => (local.connected ? undefined : local.reset('ETIMEDOUT')))
    const arrive = (): void => this.#accept(local, to, port)
    if (to !== undefined && this.#isDead(from, to)) this.#hold(from, to, { from: local, arrive })
    else this.#clock.schedule(this.#clock.nowMs + this.#delay(), arrive)
    return local
  }

  /** Brings something from a socket to its peer; behind everything sent before, unless it `overtakes`. */
  carry(from: VirtualSocket, arrive: () => void, overtakes = false): void {
    const { peer } = from
    if (peer === undefined) return
    const enter = (): void => peer.process.enter(arrive)
    if (this.#isDead(from.process, peer.process)) return this.#hold(from.process, peer.process, { from, arrive: enter })
    const at = this.#clock.nowMs + this.#delay()
    if (overtakes) this.#clock.schedule(at, enter)
    else {
      from.arrivesMs = Math.max(at, from.arrivesMs)
      this.#clock.schedule(from.arrivesMs, enter)
    }
  }

  split(bytes: Uint8Array): Uint8Array[] {
    if (bytes.length < 2 || !this.#random.chance(this.options.splitChance)) return [bytes]
    const at = this.#random.between(1, bytes.length - 1)
    return [bytes.subarray(0, at), bytes.subarray(at)]
  }

  /** Resets every connection between two processes; returns how many. */
  cut(a: string, b: string): number {
    const between = this.#between(a, b)
    for (const socket of between) socket.process.enter(() => socket.reset())
    return between.length
  }

  /** From now on nothing passes between the two, and nobody is told. */
  kill(a: string, b: string): void {
    const key = linkOf(a, b)
    if (!this.#dead.has(key)) this.#dead.set(key, [])
  }

  /** The link works again; `resets`: the connections did not survive it. */
  heal(a: string, b: string, resets: boolean): void {
    const held = this.#dead.get(linkOf(a, b)) ?? []
    this.#dead.delete(linkOf(a, b))
    if (resets) this.cut(a, b)
    for (const { from, arrive } of held) {
      if (resets && from.connected) continue
      from.arrivesMs = Math.max(this.#clock.nowMs + this.#delay(), from.arrivesMs)
      this.#clock.schedule(from.arrivesMs, arrive)
    }
  }

  /** Names of the pairs of processes that have a connection between them. */
  links(): [string, string][] {
    const links = new Map<string, [string, string]>()
    for (const { process, peer } of this.#sockets) {
      if (peer === undefined || process.name > peer.process.name) continue
      links.set(linkOf(process.name, peer.process.name), [process.name, peer.process.name])
    }
    return Array.from(links.values())
  }

  closed(socket: VirtualSocket): void {
    this.#sockets.delete(socket)
  }

  forget(process: Process): void {
    for (const [key, { owner }] of this.#listeners) if (owner === process) this.#listeners.delete(key)
    for (const socket of Array.from(this.#sockets)) {
      if (socket.process !== process) continue
      this.#sockets.delete(socket)
      const { peer } = socket
      if (peer !== undefined) this.carry(socket, () => peer.reset(), true)
    }
  }

  #accept(local: VirtualSocket, to: Process | undefined, port: number): void {
    if (local.destroyed) return
    const listener = to === undefined ? undefined : this.#listeners.get(`${to.address}:${port}`)
    if (to === undefined || listener === undefined) return local.process.enter(() => local.reset('ECONNREFUSED'))
    to.enter(() => {
      const remote = new VirtualSocket(this, to, port, local.localAddress, local.localPort)
      this.#sockets.add(remote)
      local.peer = remote
      remote.peer = local
      remote.connected = true
      const handler = listener.accept(remote)
      if (handler === undefined) return remote.destroy(true)
      remote.handler = handler
      handler.onConnect?.()
      this.carry(remote, () => (local.destroyed ? remote.reset() : local.connect()))
    })
  }

  #find(host: string): Process | undefined {
    const named = this.#processes.get(host)
    return named ?? Array.from(this.#processes.values()).find((p) => p.address === host)
  }

  #between(a: string, b: string): VirtualSocket[] {
    return Array.from(this.#sockets).filter(
      ({ process, peer }) =>
        (process.name === a && peer?.process.name === b) || (process.name === b && peer?.process.name === a),
    )
  }

  #isDead(a: Process, b: Process): boolean {
    return this.#dead.size > 0 && this.#dead.has(linkOf(a.name, b.name))
  }

  #hold(a: Process, b: Process, held: Held): void {
    this.#dead.get(linkOf(a.name, b.name))?.push(held)
  }

  #delay(): number {
    const { minDelayMs, maxDelayMs } = this.options
    return minDelayMs + (this.#random.below(1000) / 1000) * (maxDelayMs - minDelayMs)
  }
}

function linkOf(a: string, b: string): string {
  return a < b ? `${a}|${b}` : `${b}|${a}`
}
