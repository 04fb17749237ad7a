/**
 * What is known of the upstream brokers: node id → address. Learned from Metadata that Headgate asks for itself, on its
 * own connection, and from the answers that pass. An address once known stays until another is seen, so that clients of
 * a broker that is down are refused by that broker's silence and not by ours.
 */
import type { ChunkPool } from '../net/chunk-pool.ts'
import { RequestLink } from '../net/request-link.ts'
import { apiKeys } from '../protocol/api-table.ts'
import { codec } from '../protocol/codecs.ts'
import { requestBytes } from '../protocol/encode.ts'
import { Reader } from '../protocol/reader.ts'
import type { Runtime, Timer } from '../runtime/runtime.ts'
import type { Log } from '../telemetry/log.ts'

export interface BrokerAddress {
  readonly host: string
  readonly port: number
}

export interface Broker extends BrokerAddress {
  readonly nodeId: number
}

export interface BrokersOptions {
  readonly runtime: Runtime
  readonly pool: ChunkPool
  readonly log: Log
  readonly bootstrap: readonly BrokerAddress[]
  readonly dialTimeoutMs: number
  readonly refreshMs: number
  /** Told of every node id that was not known before. */
  readonly onNew: (nodeIds: readonly number[]) => void
}

/** Metadata v4: known to every broker since 0.11, and the first that can ask without creating topics. */
const METADATA_VERSION = 4
const metadata = codec(apiKeys.Metadata)
const firstRetryMs = 100
const lastRetryMs = 5000
const waitedForMs = 500
const portMax = 65_535

interface Waiter {
  readonly nodeId: number
  readonly timer: Timer
  readonly resolve: (address: BrokerAddress | undefined) => void
}

export class Brokers {
  private readonly options: BrokersOptions
  private readonly known = new Map<number, BrokerAddress>()
  private waiters: Waiter[] = []
  private link: RequestLink | undefined
  private timer: Timer | undefined
  private asking = false
  private retryMs = firstRetryMs
  private stopped = false
  private next = 0
  /** Why the last attempt to reach the cluster failed; undefined while it is well. */
  problem: string | undefined = 'no broker has answered yet'

  constructor(options: BrokersOptions) {
    this.options = options
  }

  start(): void {
    void this.refresh()
  }

  stop(): void {
    this.stopped = true
    this.timer?.cancel()
    this.link?.close()
    for (const waiter of this.waiters) this.answer(waiter, undefined)
    this.waiters = []
  }

  address(nodeId: number): BrokerAddress | undefined {
    return this.known.get(nodeId)
  }

  all(): Broker[] {
    return [...this.known].map(([nodeId, address]) => ({ nodeId, ...address })).sort((a, b) => a.nodeId - b.nodeId)
  }

  /**
   * Where a connection to the bootstrap address goes, given what it tried in vain: the bootstrap servers, beginning with
   * the one that answered last, then every other broker that is known. undefined when each was tried.
   */
  bootstrap(tried: readonly BrokerAddress[]): BrokerAddress | undefined {
    return this.candidates().find(({ host, port }) => !tried.some((one) => one.host === host && one.port === port))
  }

  private candidates(): BrokerAddress[] {
    const { bootstrap } = this.options
    return [...bootstrap.slice(this.next), ...bootstrap.slice(0, this.next), ...this.all()]
  }

  /** A broker's address, waited for while Metadata is asked; undefined if it stays unknown for `timeoutMs`. */
  lookup(nodeId: number, timeoutMs: number): BrokerAddress | Promise<BrokerAddress | undefined> {
    const address = this.known.get(nodeId)
    if (address !== undefined) return address
    return new Promise((resolve) => {
      const timer = this.options.runtime.timer(timeoutMs, () => {
        this.waiters = this.waiters.filter((waiter) => waiter.timer !== timer)
        resolve(undefined)
      })
      this.waiters.push({ nodeId, timer, resolve })
      void this.refresh()
    })
  }

  /** Takes over what an answer says. */
  learn(brokers: readonly Broker[]): void {
    const fresh: number[] = []
    for (const { nodeId, host, port } of brokers) {
      if (nodeId < 0 || host === '' || port < 1 || port > portMax) continue // nobody could dial it
      const before = this.known.get(nodeId)
      if (before?.host === host && before.port === port) continue
      this.known.set(nodeId, { host, port })
      if (before === undefined) fresh.push(nodeId)
      this.options.log.info(
        { node: nodeId, address: `${host}:${port}` },
        before === undefined ? 'broker found' : 'broker moved',
      )
    }
    if (fresh.length > 0) this.options.onNew(fresh)
    const served = this.waiters.filter((waiter) => this.known.has(waiter.nodeId))
    if (served.length === 0) return
    this.waiters = this.waiters.filter((waiter) => !served.includes(waiter))
    for (const waiter of served) this.answer(waiter, this.known.get(waiter.nodeId))
  }

  private answer(waiter: Waiter, address: BrokerAddress | undefined): void {
    waiter.timer.cancel()
    waiter.resolve(address)
  }

  /** Asks now, unless an answer is on its way; then again after the interval, or sooner if it failed. */
  private async refresh(): Promise<void> {
    if (this.asking || this.stopped) return
    this.asking = true
    this.timer?.cancel()
    try {
      this.learn(await this.ask())
      if (this.problem !== undefined) this.options.log.info({ brokers: this.known.size }, 'upstream cluster reached')
      this.problem = undefined
      this.retryMs = firstRetryMs
    } catch (error) {
      this.fail(error as Error)
    }
    this.asking = false
    if (this.stopped) return
    this.timer = this.options.runtime.timer(this.nextMs(), () => void this.refresh())
  }

  /** When to ask again: soon where clients wait for a broker that the cluster has not named yet. */
  private nextMs(): number {
    if (this.problem !== undefined) return this.retryMs
    return this.waiters.length > 0 ? Math.min(waitedForMs, this.options.refreshMs) : this.options.refreshMs
  }

  private fail(error: Error): void {
    const tried = this.options.bootstrap.map(({ host, port }) => `${host}:${port}`).join(', ')
    const problem = `cannot ask the upstream cluster for its brokers (${tried}): ${error.message}`
    if (problem !== this.problem && !this.stopped)
      this.options.log.warn({ retryMs: this.retryMs }, `${problem}; retrying`)
    this.problem = problem
    this.retryMs = Math.min(lastRetryMs, this.retryMs * 2)
  }

  private async ask(): Promise<Broker[]> {
    const link = (this.link = this.link?.closed === false ? this.link : await this.connect())
    const asked = requestBytes(metadata, { topics: [], allowAutoTopicCreation: false }, METADATA_VERSION)
    const reply = await link.request(apiKeys.Metadata, METADATA_VERSION, asked, this.options.dialTimeoutMs)
    return metadata.decodeResponse(new Reader(reply.bytes, reply.bodyAt), METADATA_VERSION).brokers
  }

  /** The first bootstrap server, or known broker, that accepts a connection. */
  private async connect(): Promise<RequestLink> {
    const { runtime, pool, bootstrap, dialTimeoutMs: timeoutMs } = this.options
    let failure = new Error('no bootstrap server is configured')
    for (const address of this.candidates()) {
      if (this.stopped) break
      try {
        const { host, port } = address
        const link = await RequestLink.open(runtime, pool, { host, port, timeoutMs, clientId: 'headgate' })
        this.next = Math.max(0, bootstrap.indexOf(address))
        return link
      } catch (error) {
        failure = error as Error
      }
    }
    throw failure
  }
}
