/**
 * The Fetch editor. A Fetch in which some partition has a policy is taken: Headgate asks the broker itself, without
 * sessions and with short waits, looks through what comes until there is something for the client or its wait is over,
 * and answers in the client's own grouping. Every other Fetch passes unopened.
 *
 * Sessions (KIP-227): an edited Fetch is answered with session id 0, so no client opens one. If editing begins while one
 * is running, its next incremental Fetch is refused once (70), after which every family sends a full one; franz-go keeps
 * naming its old id, so an epoch of 0 or less is a full Fetch whatever the id.
 *
 * What passed unopened is asked about once more when its answer arrives: the policies may have changed while it waited at
 * the broker, and a process that was stopped finds answers in its sockets that it may not deliver any more. Invariant: no
 * records go to a client that the policies of that moment would withhold.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { requestBytes } from '../../protocol/encode.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import type { FetchRequest, FetchResponse } from '../../protocol/generated/01-fetch.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Connection } from '../../pipeline/connection.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import { type Answer, type Handler, type Interest, taken, type Verdict } from '../../pipeline/handler.ts'
import type { Instance } from '../../pipeline/instance.ts'
import type { BrokerAddresses } from '../addresses.ts'
import { frameAnswer } from './answer-frame.ts'
import { CorruptBatches } from './corrupt-batches.ts'
import { emptyAnswerTo, fetchRequestIn, withoutRecords } from './early-answer.ts'
import { FetchRead, UPSTREAM_WAIT_MS } from './fetch-read.ts'
import { composeViews, type FetchPolicy, type FetchView } from './policy.ts'
import { SkipPointers } from './skip-pointers.ts'

const api = codec(apiKeys.Fetch)
/** Fetch sessions exist from this version on. */
const SESSIONS_FROM = 7

export interface FetchEditorOptions {
  readonly policies: readonly FetchPolicy[]
  readonly addresses: BrokerAddresses
  /** What one compressed batch may inflate to, in bytes. */
  readonly maxInflatedBytes: number
}

export class FetchEditor implements Handler {
  readonly name = 'fetch'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.Fetch, side: 'request', depth: 'full' },
    { apiKey: apiKeys.Fetch, side: 'response', depth: 'header' },
  ]
  private readonly options: FetchEditorOptions
  /** Per instance and client id: what a client may have depends on both. */
  private readonly pointers = new WeakMap<Instance, Map<string | null, SkipPointers>>()
  private readonly corrupt = new CorruptBatches()
  /** Wakes Fetches whose partitions all are behind a limit. */
  private readonly sleepers = new Set<() => void>()

  constructor(options: FetchEditorOptions) {
    this.options = options
    for (const policy of options.policies) policy.onChange?.(() => this.wake())
  }

  onRequest(exchange: Exchange): Verdict {
    const view = this.view(exchange.connection)
    const { request, apiVersion, connection } = exchange
    const at = exchange.requestBodyAt()
    const { instance, clientId } = connection
    if (request === undefined || at < 0 || instance === undefined) return undefined
    if (view === undefined && exchange.kept !== undefined) return undefined
    const body = fetchRequestIn(request, apiVersion)
    if (body === undefined || isFollower(body)) return undefined // the broker's business
    exchange.setState(this, body)
    if (view === undefined) return undefined
    if (apiVersion >= SESSIONS_FROM && body.sessionEpoch > 0) {
      connection.context.meter.error(apiKeys.Fetch, errorCodes.FETCH_SESSION_ID_NOT_FOUND)
      return { kind: 'answer', frame: sessionOver(apiVersion) }
    }
    const pointers = this.pointersOf(instance, clientId)
    const read = new FetchRead(body, view, pointers, {
      version: apiVersion,
      maxInflatedBytes: this.options.maxInflatedBytes,
    })
    if (!read.edited) {
      // Passes as it is, but without a session: a later Fetch of this client may have to be edited.
      if (apiVersion >= SESSIONS_FROM && body.sessionEpoch === 0)
        exchange.request = withoutSession(request, at, body, apiVersion)
      return undefined
    }
    void this.run(exchange, read, body, pointers)
    return taken
  }

  /** The answer to a Fetch that passed; its records are in memory as a whole. */
  onResponse(exchange: Exchange): Verdict {
    const body = this.overtaken(exchange)
    if (body === undefined) return undefined
    const { response, apiVersion } = exchange
    if (response === undefined) return empty(emptyAnswerTo(body), apiVersion)
    const bodyAt = peekResponseBodyStart(apiKeys.Fetch, apiVersion, response.bytes, response.at + 4, endOf(response))
    const answer = bodyAt < 0 ? undefined : decodeAnswer(response, bodyAt, apiVersion)
    return empty(answer === undefined ? emptyAnswerTo(body) : withoutRecords(answer), apiVersion)
  }

  /** The answer to a Fetch that passed begins to stream. */
  scanner(exchange: Exchange): Answer | undefined {
    const body = this.overtaken(exchange)
    return body === undefined ? undefined : empty(emptyAnswerTo(body), exchange.apiVersion)
  }

  /** The request, if its answer may not go to the client any more as it is. */
  private overtaken(exchange: Exchange): FetchRequest | undefined {
    const view = this.view(exchange.connection)
    if (view === undefined) return undefined
    const { kept, apiVersion } = exchange
    const body =
      exchange.state<FetchRequest>(this) ?? (kept === undefined ? undefined : fetchRequestIn(kept, apiVersion))
    if (body === undefined || isFollower(body)) return undefined
    return mayPass(body, view) ? undefined : body
  }

  private view(connection: Connection): FetchView | undefined {
    let views: FetchView[] | undefined
    for (const policy of this.options.policies) {
      const view = policy.view(connection)
      if (view !== undefined) (views ??= []).push(view)
    }
    return views === undefined ? undefined : composeViews(views)
  }

  private pointersOf(instance: Instance, clientId: string | null): SkipPointers {
    let byClient = this.pointers.get(instance)
    if (byClient === undefined) this.pointers.set(instance, (byClient = new Map<string | null, SkipPointers>()))
    let pointers = byClient.get(clientId)
    if (pointers === undefined) byClient.set(clientId, (pointers = new SkipPointers()))
    return pointers
  }

  private async run(exchange: Exchange, read: FetchRead, body: FetchRequest, pointers: SkipPointers): Promise<void> {
    const { connection, apiVersion } = exchange
    const { runtime } = connection.context
    const deadline = exchange.receivedAt + body.maxWaitMs
    try {
      do {
        const remaining = Math.max(0, deadline - runtime.now())
        const request = read.request(remaining)
        if (request === undefined) await this.sleep(connection, Math.min(UPSTREAM_WAIT_MS, remaining))
        else read.ingest(await this.ask(connection, request, apiVersion))
        read.recheck()
      } while (!read.complete && runtime.now() < deadline && !connection.draining && connection.closed === undefined)
      read.remember(pointers)
      for (const failed of read.failures()) this.corrupt.report(connection, failed)
      exchange.finish({ kind: 'answer', frame: this.encode(connection, read.answer(), apiVersion) })
    } catch (error) {
      if (connection.closed !== undefined) return
      connection.close(
        error instanceof ProtocolError ? 'malformed_response' : 'internal_error',
        (error as Error).message,
      )
    }
  }

  /** Waits, or until a limit may have risen. */
  private sleep(connection: Connection, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.sleepers.delete(done)
        timer.cancel()
        resolve()
      }
      const timer = connection.context.runtime.timer(ms, done)
      this.sleepers.add(done)
    })
  }

  private wake(): void {
    for (const done of [...this.sleepers]) done()
  }

  private async ask(connection: Connection, request: FetchRequest, version: number): Promise<FetchResponse> {
    const { frame, bodyAt } = await connection.ask(apiKeys.Fetch, version, requestBytes(api, request, version))
    const response = api.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), version)
    await this.options.addresses.learn(response.nodeEndpoints)?.catch(() => undefined)
    return response
  }

  private encode(connection: Connection, response: FetchResponse, version: number): Frame {
    const { meter } = connection.context
    if (response.errorCode !== 0) meter.error(apiKeys.Fetch, response.errorCode)
    for (const { partitions } of response.responses)
      for (const { errorCode } of partitions) if (errorCode !== 0) meter.error(apiKeys.Fetch, errorCode)
    response.nodeEndpoints = response.nodeEndpoints.flatMap((node) => {
      const shown = this.options.addresses.advertised(connection, node.nodeId)
      return shown === undefined ? [] : [{ ...node, ...shown }]
    })
    return frameAnswer(response, version)
  }
}

/** Whether a Fetch that passed as it is may still be answered so. In a session its partitions are not all named. */
function mayPass(body: FetchRequest, view: FetchView): boolean {
  if (body.sessionEpoch > 0) return false
  return body.topics.every(({ topic, topicId, partitions }) =>
    partitions.every(({ partition }) => {
      const policy = view.partition(topic, topicId, partition, -1)
      return policy === undefined || (policy.standby === true && (policy.limit?.() ?? Infinity) === Infinity)
    }),
  )
}

/** A replica of the partition: named in the body until v14, in a tagged field from v15 on. */
function isFollower({ replicaId, replicaState }: FetchRequest): boolean {
  return replicaId >= 0 || (replicaState !== null && replicaState.replicaId >= 0)
}

function decodeAnswer(frame: Frame, bodyAt: number, version: number): FetchResponse | undefined {
  try {
    return api.decodeResponse(new Reader(frame.bytes, bodyAt, endOf(frame)), version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

function empty(answer: Parameters<typeof frameAnswer>[0], version: number): Answer {
  return { kind: 'answer', frame: frameAnswer(answer, version) }
}

function endOf(frame: Frame): number {
  return frame.at + frame.total
}

/** The same request with session (0, −1); header and correlation id are kept. */
function withoutSession(request: Frame, bodyAt: number, body: FetchRequest, version: number): Frame {
  const writer = new Writer(request.total + 16)
  writer.raw(request.bytes.subarray(request.at, bodyAt))
  api.encodeRequest(writer, { ...body, sessionId: 0, sessionEpoch: -1 }, version)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return frameOf(bytes)
}

function sessionOver(version: number): Frame {
  return frameAnswer({ errorCode: errorCodes.FETCH_SESSION_ID_NOT_FOUND, sessionId: 0, responses: [] }, version)
}
