/**
 * One connection of our own to a broker: opened when first asked and again after it closed, with the API versions that
 * this broker knows. Each request uses the highest version that both sides know.
 */
import type { ChunkPool } from '../net/chunk-pool.ts'
import { RequestLink } from '../net/request-link.ts'
import { apiKeys } from '../protocol/api-table.ts'
import type { Codec, Draft } from '../protocol/codec.ts'
import { codec } from '../protocol/codecs.ts'
import { requestBytes } from '../protocol/encode.ts'
import { errorCodes } from '../protocol/error-codes.ts'
import { Reader } from '../protocol/reader.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { BrokerAddress } from './brokers.ts'
import { ClusterError, refusal } from './cluster-error.ts'

export interface LinkSettings {
  readonly runtime: Runtime
  readonly pool: ChunkPool
  readonly dialTimeoutMs: number
}

export interface Question<Request, Response> {
  readonly codec: Codec<Request, Response>
  /** The request, in the version that was agreed upon. */
  build(version: number): Draft<Request>
  /** How long an answer is waited for; the connection is given up then. */
  readonly timeoutMs: number
  /** Highest version to use; what the codec knows when left out. */
  readonly maxVersion?: number
}

interface Versions {
  readonly min: number
  readonly max: number
}

type Ranged = Pick<Codec<unknown, unknown>, 'name' | 'minVersion' | 'maxVersion'>

interface OpenLink {
  readonly link: RequestLink
  readonly versions: ReadonlyMap<number, Versions>
}

/** ApiVersions v0: every broker since 0.10 answers it. */
const VERSIONS_VERSION = 0
const apiVersions = codec(apiKeys.ApiVersions)

export class BrokerLink {
  readonly #settings: LinkSettings
  readonly #address: BrokerAddress
  readonly #where: string
  #opening: Promise<OpenLink> | undefined
  #open: OpenLink | undefined
  #closed = false

  constructor(settings: LinkSettings, address: BrokerAddress) {
    this.#settings = settings
    this.#address = address
    this.#where = `${address.host}:${address.port}`
  }

  /** @throws ClusterError when the broker cannot be reached, does not answer, or knows no common version */
  async ask<Request, Response>(question: Question<Request, Response>): Promise<Response> {
    const { codec, timeoutMs } = question
    const { link, versions } = await this.#connected(codec.name)
    const version = this.#pick(codec, question.maxVersion ?? codec.maxVersion, versions.get(codec.key))
    const body = requestBytes(codec, question.build(version), version)
    try {
      const reply = await link.request(codec.key, version, body, timeoutMs)
      return codec.decodeResponse(new Reader(reply.bytes, reply.bodyAt), version)
    } catch (error) {
      throw this.#unreachable(codec.name, error as Error)
    }
  }

  close(): void {
    this.#closed = true
    this.#open?.link.close()
  }

  async #connected(name: string): Promise<OpenLink> {
    if (this.#open?.link.closed === false) return this.#open
    this.#opening ??= this.#connect()
    try {
      this.#open = await this.#opening
    } catch (error) {
      throw error instanceof ClusterError ? error : this.#unreachable(name, error as Error)
    } finally {
      this.#opening = undefined
    }
    if (this.#closed) this.#open.link.close()
    return this.#open
  }

  async #connect(): Promise<OpenLink> {
    const { runtime, pool, dialTimeoutMs: timeoutMs } = this.#settings
    if (this.#closed) throw new Error('Headgate stops')
    const link = await RequestLink.open(runtime, pool, { ...this.#address, timeoutMs, clientId: 'headgate' })
    try {
      const reply = await link.request(
        apiKeys.ApiVersions,
        VERSIONS_VERSION,
        requestBytes(apiVersions, {}, VERSIONS_VERSION),
        timeoutMs,
      )
      const answer = apiVersions.decodeResponse(new Reader(reply.bytes, reply.bodyAt), VERSIONS_VERSION)
      if (answer.errorCode !== errorCodes.NONE) throw refusal(`ApiVersions of broker ${this.#where}`, answer.errorCode)
      const versions = answer.apiKeys.map(
        ({ apiKey, minVersion, maxVersion }) => [apiKey, { min: minVersion, max: maxVersion }] as const,
      )
      return { link, versions: new Map(versions) }
    } catch (error) {
      link.close()
      throw error
    }
  }

  #pick(codec: Ranged, maxVersion: number, offered: Versions | undefined): number {
    const version = Math.min(codec.maxVersion, maxVersion, offered?.max ?? -1)
    if (offered !== undefined && version >= codec.minVersion && version >= offered.min) return version
    const theirs = offered === undefined ? 'not at all' : `in versions ${offered.min} to ${offered.max}`
    throw new ClusterError(
      'HG_CLUSTER_VERSION',
      `broker ${this.#where} offers ${codec.name} ${theirs}, Headgate needs ${codec.minVersion} to ${maxVersion}: use Kafka 2.8 or later`,
    )
  }

  #unreachable(name: string, cause: Error): ClusterError {
    return new ClusterError(
      'HG_CLUSTER_UNREACHABLE',
      `cannot ask broker ${this.#where} for ${name}: ${cause.message}`,
      0,
      {
        cause,
      },
    )
  }
}
