/**
 * Our own connections to all brokers, opened on demand and kept. A broker serves one request of a connection at a time,
 * so what may be parked there (a long poll, a JoinGroup) has a *lane* of its own: another connection to the same broker.
 */
import { BrokerLink, type LinkSettings, type Question } from './broker-link.ts'
import type { Broker, BrokerAddress } from './brokers.ts'
import { ClusterError } from './cluster-error.ts'

/** What is known of the brokers: `Brokers`. */
export interface KnownBrokers {
  address(nodeId: number): BrokerAddress | undefined
  /** Where to ask about the cluster, given what was tried in vain; undefined when each was. */
  bootstrap(tried: readonly BrokerAddress[]): BrokerAddress | undefined
  learn(brokers: readonly Broker[]): void
}

export class BrokerLinks {
  readonly #settings: LinkSettings
  readonly #brokers: KnownBrokers
  readonly #links = new Map<string, BrokerLink>()
  /** Answered last: asked first. */
  #last: BrokerAddress | undefined
  #closed = false

  constructor(settings: LinkSettings, brokers: KnownBrokers) {
    this.#settings = settings
    this.#brokers = brokers
  }

  /** Asks a broker, whichever can be reached. @throws ClusterError of the last one that was tried */
  async any<Request, Response>(question: Question<Request, Response>): Promise<Response> {
    const tried: BrokerAddress[] = []
    let failure = new ClusterError('HG_CLUSTER_UNREACHABLE', 'no bootstrap server is configured')
    for (let to = this.#last ?? this.#brokers.bootstrap(tried); to !== undefined; to = this.#brokers.bootstrap(tried)) {
      try {
        const response = await this.#link(to, '').ask(question)
        this.#last = to
        return response
      } catch (error) {
        if (!(error instanceof ClusterError) || this.#closed) throw error
        failure = error
        tried.push(to)
      }
    }
    throw failure
  }

  /** Asks one broker. @param lane requests of one lane are answered in order, lanes do not wait for each other */
  async node<Request, Response>(
    nodeId: number,
    lane: string,
    question: Question<Request, Response>,
  ): Promise<Response> {
    const address = this.#brokers.address(nodeId)
    if (address !== undefined) return this.#link(address, lane).ask(question)
    throw new ClusterError('HG_CLUSTER_UNKNOWN', `the cluster has not named an address of broker ${nodeId} yet`)
  }

  close(): void {
    this.#closed = true
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  #link(address: BrokerAddress, lane: string): BrokerLink {
    if (this.#closed) throw new ClusterError('HG_CLUSTER_UNREACHABLE', 'Headgate stops')
    const key = `${address.host}:${address.port}/${lane}`
    const link = this.#links.get(key) ?? new BrokerLink(this.#settings, address)
    this.#links.set(key, link)
    return link
  }
}
