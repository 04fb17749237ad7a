/**
 * CreatePartitions: the count of a topic that a feature guards is changed by the feature. The request first goes to the
 * broker on the client's own connection to be validated only, so the broker decides who may, and its errors go back
 * unchanged. What only wants to be validated, and requests without such topics, pass; other topics of the same request
 * are created as they are asked for.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { requestBytes, responseFrame } from '../../protocol/encode.ts'
import { errorCodes, errorName } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type {
  CreatePartitionsRequest,
  CreatePartitionsRequestTopic,
  CreatePartitionsResponseResult,
} from '../../protocol/generated/37-create-partitions.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { frameOf } from '../../pipeline/frame.ts'
import { type Handler, type Interest, taken, type Verdict } from '../../pipeline/handler.ts'
import type { PartitionAnswer, PartitionPolicy } from './policy.ts'

const api = codec(apiKeys.CreatePartitions)
type Topic = CreatePartitionsRequestTopic
type Result = Pick<CreatePartitionsResponseResult, 'name' | 'errorCode' | 'errorMessage'>

export class CreatePartitionsEditor implements Handler {
  readonly name = 'create-partitions'
  readonly interests: readonly Interest[] = [{ apiKey: apiKeys.CreatePartitions, side: 'request', depth: 'full' }]
  private readonly policy: PartitionPolicy

  constructor(policy: PartitionPolicy) {
    this.policy = policy
  }

  onRequest(exchange: Exchange): Verdict {
    const body = read(exchange)
    if (body === undefined || body.validateOnly || !body.topics.some(({ name }) => this.policy.guards(name)))
      return undefined
    void this.answer(exchange, body)
    return taken
  }

  /** Never rejects. */
  private async answer(exchange: Exchange, body: CreatePartitionsRequest): Promise<void> {
    const guarded = body.topics.filter(({ name }) => this.policy.guards(name))
    const others = body.topics.filter((topic) => !guarded.includes(topic))
    try {
      const parts = [...guarded.map((topic) => this.raise(exchange, body, topic)), send(exchange, body, others, false)]
      const results = (await Promise.all(parts)).flat()
      const ordered = body.topics.flatMap(({ name }) => results.find((result) => result.name === name) ?? [])
      finish(exchange, ordered)
    } catch (error) {
      // The connection is gone, and with it whoever asked; or the answer cannot be read, and no other one is known.
      const { context } = exchange.connection
      context.log.warn({}, `CreatePartitions was not answered by the broker: ${(error as Error).message}`)
      const failed = { errorCode: errorCodes.REQUEST_TIMED_OUT, errorMessage: (error as Error).message }
      finish(
        exchange,
        body.topics.map(({ name }) => ({ name, ...failed })),
      )
    }
  }

  private async raise(exchange: Exchange, body: CreatePartitionsRequest, topic: Topic): Promise<Result[]> {
    const { name, count } = topic
    const exists = await this.policy.exists(name)
    const missing = toCreate(topic, exists)
    // What exists already is no error here: a count above it asks the broker for the same right.
    const asked = missing ?? { name, count: exists + 1, assignments: null }
    const [validated] = await send(exchange, body, [asked], true)
    if (validated === undefined || validated.errorCode !== 0) return validated === undefined ? [] : [validated]
    const create = async (): Promise<void> => {
      const [created] = missing === undefined ? [] : await send(exchange, body, [missing], false)
      if (created === undefined || created.errorCode === 0) return
      throw new Error(
        `${errorName(created.errorCode)}${created.errorMessage === null ? '' : `: ${created.errorMessage}`}`,
      )
    }
    const { remoteAddress, clientId } = exchange.connection
    const client = `${remoteAddress}/${clientId ?? ''}`
    const assigned = (missing?.assignments ?? null) !== null
    const raised = this.policy.raise({ topic: name, count, client, assigned, create })
    const answer = await Promise.race([raised, this.timeOut(exchange, body.timeoutMs, name)])
    return [{ name, ...answer }]
  }

  /** As the broker answers when a client's time is over: what was begun goes on. */
  private timeOut(exchange: Exchange, timeoutMs: number, topic: string): Promise<PartitionAnswer> {
    const errorMessage = `the change of ${topic} goes on, but not within ${timeoutMs} ms: headgate topics describe ${topic}`
    return new Promise((resolve) => {
      const answer = { errorCode: errorCodes.REQUEST_TIMED_OUT, errorMessage }
      exchange.connection.context.runtime.timer(Math.max(0, timeoutMs), () => resolve(answer))
    })
  }
}

function read(exchange: Exchange): CreatePartitionsRequest | undefined {
  const { request, apiVersion } = exchange
  const at = exchange.requestBodyAt()
  if (request === undefined || at < 0) return undefined
  try {
    return api.decodeRequest(new Reader(request.bytes, at, request.at + request.total), apiVersion)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined // the broker refuses what cannot be read
    throw error
  }
}

/** What has to be created so that there are `count`; undefined: nothing. Assignments are the client's, for the last ones. */
function toCreate({ name, count, assignments }: Topic, exists: number): Topic | undefined {
  if (count <= exists) return undefined
  return { name, count, assignments: assignments === null ? null : assignments.slice(-(count - exists)) }
}

/** Asks the broker on the client's own connection. */
async function send(exchange: Exchange, body: CreatePartitionsRequest, topics: Topic[], validateOnly: boolean) {
  if (topics.length === 0) return []
  const { connection, apiVersion } = exchange
  const request = requestBytes(api, { topics, timeoutMs: body.timeoutMs, validateOnly }, apiVersion)
  const { frame, bodyAt } = await connection.ask(apiKeys.CreatePartitions, apiVersion, request)
  return api.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), apiVersion).results
}

function finish(exchange: Exchange, results: Result[]): void {
  const frame = responseFrame(0, api, { results }, exchange.apiVersion)
  for (const { errorCode } of results)
    if (errorCode !== 0) exchange.connection.context.meter.error(apiKeys.CreatePartitions, errorCode)
  exchange.finish({ kind: 'answer', frame: frameOf(frame) })
}
