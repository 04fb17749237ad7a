/** A client's connection to one broker through one proxy, and the pair of connections behind it. */
import type { ProduceResult, SentBatch } from './broker.ts'
import type { Proxy } from './proxy.ts'
import { Link, type World } from './world.ts'

export interface ProduceRequest {
  batches: SentBatch[]
  results: (ProduceResult | 'refused')[]
  open: number
  onAnswer: (request: ProduceRequest) => void
}

/** What the proxy can tell of its client: an idempotent producer asks for its id before anything else. */
export type Role = 'consumer' | 'producer' | 'idempotent producer'

export class Connection {
  readonly proxy: Proxy
  readonly client: string
  readonly broker: number
  readonly role: Role
  readonly upstream: Link
  readonly downstream: Link
  /** Drawn once: whether what is on its way to the broker when the connection dies still arrives. */
  readonly lastGetThrough: boolean
  isOpen = true
  /** Produce requests that the proxy has not answered, and the most there ever were. */
  inFlight = 0
  mostInFlight = 0
  lastProduceMs = -Infinity
  readonly #toProxy: Link
  readonly #toClient: Link
  readonly #onClose: () => void
  readonly #world: World

  constructor(world: World, proxy: Proxy, client: string, broker: number, role: Role, onClose: () => void) {
    this.proxy = proxy
    this.client = client
    this.broker = broker
    this.role = role
    this.#onClose = onClose
    this.#world = world
    this.upstream = new Link(world)
    this.downstream = new Link(world)
    this.#toProxy = new Link(world)
    this.#toClient = new Link(world)
    this.lastGetThrough = world.random.chance(0.5)
    proxy.sockets.add(this)
    this.#toProxy.send(() => proxy.receive(() => proxy.opened(this)))
  }

  get isProducer(): boolean {
    return this.role !== 'consumer'
  }

  /** Client to proxy. */
  send(deliver: () => void): void {
    this.#toProxy.send(() => this.proxy.receive(deliver))
  }

  produce(request: ProduceRequest): void {
    this.send(() => {
      if (!this.isOpen) return
      this.lastProduceMs = this.#world.now
      // Without acknowledgements nothing is ever in flight.
      if (request.batches.every((batch) => batch.hasNoAcks !== true)) this.inFlight += 1
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight)
      this.proxy.producing.produce(this, request)
    })
  }

  /** Proxy to client. */
  reply(deliver: () => void): void {
    this.#toClient.send(() => {
      if (this.isOpen) deliver()
    })
  }

  answer(request: ProduceRequest): void {
    if (request.batches.some((batch) => batch.hasNoAcks === true)) return
    this.inFlight -= 1
    this.reply(() => request.onAnswer(request))
  }

  /** Both sides learn of it; what was on its way is lost, except perhaps what was going to the broker. */
  close(): void {
    if (!this.isOpen) return
    this.isOpen = false
    for (const link of [this.upstream, this.downstream, this.#toProxy, this.#toClient]) link.cut()
    const { proxy } = this
    proxy.sockets.delete(this)
    proxy.receive(() => proxy.closed(this))
    this.#onClose()
  }
}
