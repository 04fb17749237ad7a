/** Which broker coordinates a group, and questions to it; looked up anew when the answer says that it moved. */
import { apiKeys } from '../protocol/api-table.ts'
import { codec } from '../protocol/codecs.ts'
import { errorCodes } from '../protocol/error-codes.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Question } from './broker-link.ts'
import type { BrokerLinks, KnownBrokers } from './broker-links.ts'
import { ClusterError, refusal } from './cluster-error.ts'
import { retried } from './retried.ts'

const findCoordinator = codec(apiKeys.FindCoordinator)
const GROUP = 0
/** From here on several keys are asked for at once (KIP-699). */
const BATCHED_FROM = 4
/** Groups whose coordinator is remembered. */
const knownMax = 10_000

const moved: ReadonlySet<number> = new Set([
  errorCodes.COORDINATOR_LOAD_IN_PROGRESS,
  errorCodes.COORDINATOR_NOT_AVAILABLE,
  errorCodes.NOT_COORDINATOR,
])

export interface GroupQuestion<Request, Response> extends Question<Request, Response> {
  readonly lane: string
  readonly attempts?: number
  /** The error code of the whole answer; only 14, 15 and 16 are handled here, others are the caller's. */
  errorOf(response: Response): number
}

export class GroupCoordinators {
  readonly #runtime: Runtime
  readonly #links: BrokerLinks
  readonly #brokers: KnownBrokers
  readonly #timeoutMs: number
  readonly #nodes = new Map<string, number>()

  constructor(runtime: Runtime, links: BrokerLinks, brokers: KnownBrokers, timeoutMs: number) {
    this.#runtime = runtime
    this.#links = links
    this.#brokers = brokers
    this.#timeoutMs = timeoutMs
  }

  /** Asks a group's coordinator. @throws ClusterError when none can be found or reached */
  async ask<Request, Response>(group: string, question: GroupQuestion<Request, Response>): Promise<Response> {
    return retried(this.#runtime, question.attempts, async () => {
      try {
        const nodeId = this.#nodes.get(group) ?? (await this.#find(group))
        const response = await this.#links.node(nodeId, question.lane, question)
        const errorCode = question.errorOf(response)
        if (moved.has(errorCode)) throw refusal(`${question.codec.name} of group ${group}`, errorCode)
        return response
      } catch (error) {
        if (error instanceof ClusterError) this.#nodes.delete(group)
        throw error
      }
    })
  }

  async #find(group: string): Promise<number> {
    const response = await this.#links.any({
      codec: findCoordinator,
      timeoutMs: this.#timeoutMs,
      build: (version) =>
        version < BATCHED_FROM ? { key: group, keyType: GROUP } : { coordinatorKeys: [group], keyType: GROUP },
    })
    const found = response.coordinators.find(({ key }) => key === group) ?? response
    const { errorCode, errorMessage, nodeId, host, port } = found
    if (errorCode !== errorCodes.NONE) throw refusal(`FindCoordinator of group ${group}`, errorCode, errorMessage)
    this.#brokers.learn([{ nodeId, host, port }])
    if (this.#nodes.size >= knownMax) this.#nodes.clear()
    this.#nodes.set(group, nodeId)
    return nodeId
  }
}
