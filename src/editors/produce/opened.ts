/**
 * One Produce request that was opened. If all its batches may go at once it goes as it came. Else it is taken apart: what
 * may go is sent in requests of our own on the same connection, in the order in which it was decided, and the client gets
 * one answer, in its own grouping, when everything has a result.
 *
 * Invariant: every batch that the policy knows is told its end exactly once, `ended` if the policy let it go, else `lost` if
 * its connection went while it waited, or nothing if the policy refused it.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { requestBytes, responseFrame } from '../../protocol/encode.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import type {
  ProduceRequest,
  ProduceRequestPartition,
  ProduceRequestTopic,
  ProduceResponse,
  ProduceResponseNodeEndpoint,
  ProduceResponsePartition,
} from '../../protocol/generated/00-produce.ts'
import type { Draft } from '../../protocol/codec.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { frameOf } from '../../pipeline/frame.ts'
import type { Answer } from '../../pipeline/handler.ts'
import { HEADER_SIZE, magicOf, producerIdOf } from '../../records/batch.ts'
import type { BrokerAddresses } from '../addresses.ts'
import { readEnds } from './ends.ts'
import type { ProduceLane } from './lane.ts'
import type { AdmittedBatch, BatchVerdict, ProduceBatch } from './policy.ts'
import { recordCount } from './record-count.ts'

const api = codec(apiKeys.Produce)

export interface Part {
  readonly topic: ProduceRequestTopic
  readonly data: ProduceRequestPartition
  readonly batch: ProduceBatch
  admitted: AdmittedBatch | undefined
  /** `sent` waits for the broker; `done` has its result, and the policy was told. */
  fate: 'waiting' | 'forward' | 'refuse' | 'sent' | 'done'
  result: Draft<ProduceResponsePartition> | undefined
}

export class OpenedProduce {
  readonly exchange: Exchange
  readonly lane: ProduceLane
  readonly body: ProduceRequest
  readonly parts: readonly Part[]
  /** It was taken apart and its transaction waits for it. */
  isApart = false
  /** The client's answer is on its way. */
  isAnswered = false
  /** The longest that a broker told the client to wait. */
  throttleMs = 0
  private readonly endpoints = new Map<number, ProduceResponseNodeEndpoint>()

  constructor(exchange: Exchange, lane: ProduceLane, body: ProduceRequest) {
    this.exchange = exchange
    this.lane = lane
    this.body = body
    const { transactionalId, acks } = body
    this.parts = body.topicData.flatMap((topic) =>
      topic.partitionData.map((data): Part => {
        const { name, topicId } = topic
        const records = data.records ?? nothing
        const batch = { lane, topic: name, topicId, partition: data.index, transactionalId, acks, records }
        return { topic, data, batch, admitted: undefined, fate: 'waiting', result: undefined }
      }),
    )
  }

  get batches(): readonly ProduceBatch[] {
    return this.parts.map((part) => part.batch)
  }

  /** @returns the part, if nothing had been decided about it; others of its request may be refused with it */
  decide(index: number, verdict: BatchVerdict): Part | undefined {
    const part = this.parts[index]
    if (part?.fate !== 'waiting') return undefined
    part.fate = verdict.kind
    if (verdict.kind === 'refuse') part.result = refusal(part.data.index, verdict.errorCode)
    if (this.isApart) this.keepTogether()
    return part
  }

  /** What the policy said of each batch; those that it does not know may go. */
  admit(admitted: readonly (AdmittedBatch | undefined)[]): void {
    for (const [i, part] of this.parts.entries()) {
      part.admitted = admitted[i]
      if (part.admitted === undefined) part.fate = 'forward'
    }
    this.keepTogether()
  }

  /**
   * Where a part is to come again, all of it is: a client without idempotence may repeat the whole request (kafkajs does),
   * and what had gone would be written twice. So while none has gone one refusal is everybody's; and once one has, those
   * that wait are not to be refused any more.
   */
  private keepTogether(): void {
    if (this.exchange.noReply || this.parts.some(({ batch }) => isSequenced(batch.records))) return
    const errorCode = errorCodes.NOT_LEADER_OR_FOLLOWER
    const hasGone = this.parts.some(({ fate }) => fate === 'sent' || fate === 'done')
    if (!hasGone && this.parts.some(({ fate, result }) => fate === 'refuse' && result?.errorCode === errorCode)) {
      for (const part of this.parts) this.refuseToo(part, errorCode)
    } else if (this.parts.some(({ fate }) => fate !== 'waiting' && fate !== 'refuse')) {
      for (const { fate, admitted } of this.parts) if (fate === 'waiting') admitted?.bound()
    }
  }

  private refuseToo(part: Part, errorCode: number): void {
    const { fate, admitted } = part
    if (fate === 'refuse') return
    part.fate = 'refuse'
    part.result = refusal(part.data.index, errorCode)
    if (fate === 'waiting') admitted?.lost()
    else admitted?.ended({ kind: 'withheld' })
  }

  /** Whether it goes as it came, is answered without the broker, or must be taken apart. */
  get way(): 'pass' | 'refuse' | 'apart' {
    if (this.parts.every(({ fate }) => fate === 'forward')) return 'pass'
    return this.parts.every(({ fate }) => fate === 'refuse') ? 'refuse' : 'apart'
  }

  /** Something waits, or may go and was not sent. */
  get isPending(): boolean {
    return this.parts.some(({ fate }) => fate === 'waiting' || fate === 'forward')
  }

  /** It goes as it came. @param done called when its ends are known, where it has no answer */
  pass(done: () => void): void {
    for (const part of this.parts) part.fate = 'sent'
    // The request leaves when this event is over; what reads the ends must come behind it.
    if (this.exchange.noReply) this.lane.connection.context.runtime.soon(() => this.measure(this.parts, done))
  }

  /** Sends those of its parts that may go, in one request. @param done called when they have results */
  send(parts: readonly Part[], done: () => void): void {
    const { exchange, lane, body } = this
    const going = parts.filter(({ fate }) => fate === 'forward')
    if (going.length === 0) return
    for (const part of going) part.fate = 'sent'
    const chosen = new Set(going.map((part) => part.data))
    const topicData = body.topicData.flatMap((topic) => {
      const partitionData = topic.partitionData.filter((data) => chosen.has(data))
      return partitionData.length === 0 ? [] : [{ ...topic, partitionData }]
    })
    const bytes = requestBytes(api, { ...body, topicData }, exchange.apiVersion)
    if (exchange.noReply) {
      lane.connection.own.tell(apiKeys.Produce, exchange.apiVersion, bytes)
      this.measure(going, done)
      return
    }
    lane.connection.ask(apiKeys.Produce, exchange.apiVersion, bytes).then(
      ({ frame, bodyAt }) => {
        this.received(going, new Reader(frame.bytes, bodyAt, frame.total))
        done()
      },
      () => this.lost(),
    )
  }

  /** The broker's answer to the request as it came. */
  answered(reader: Reader): ProduceResponse | undefined {
    return this.received(this.parts, reader)
  }

  private received(parts: readonly Part[], reader: Reader): ProduceResponse | undefined {
    const response = decode(reader, this.exchange.apiVersion)
    const results = new Map(
      response?.responses.flatMap((topic) =>
        topic.partitionResponses.map((result) => [`${topic.name}/${topic.topicId}/${result.index}`, result] as const),
      ),
    )
    for (const part of parts) {
      const { name, topicId } = part.topic
      part.result =
        results.get(`${name}/${topicId}/${part.data.index}`) ??
        refusal(part.data.index, errorCodes.UNKNOWN_SERVER_ERROR)
      this.end(part, part.result.errorCode ?? 0, part.result.baseOffset ?? -1)
    }
    if (response === undefined) return undefined
    this.throttleMs = Math.max(this.throttleMs, response.throttleTimeMs)
    for (const node of response.nodeEndpoints) this.endpoints.set(node.nodeId, node)
    return response
  }

  /** Nobody says what became of batches with acks=0: a later request on the same connection shows where their logs end. */
  private measure(parts: readonly Part[], done: () => void): void {
    const asked = parts.flatMap(({ admitted, data }) =>
      admitted === undefined ? [] : [{ topic: admitted.topic, partition: data.index }],
    )
    for (const part of parts) if (part.admitted === undefined) part.fate = 'done'
    if (asked.length === 0) return done()
    readEnds(this.lane.connection, asked).then(
      (ends) => {
        for (const part of parts) {
          if (part.fate !== 'sent') continue
          part.fate = 'done'
          part.admitted?.ended({
            kind: 'acknowledged',
            end: ends.get(`${part.admitted.topic}/${part.data.index}`) ?? -1,
          })
        }
        done()
      },
      () => this.lost(),
    )
  }

  private end(part: Part, errorCode: number, baseOffset: number): void {
    if (part.fate !== 'sent') return
    part.fate = 'done'
    // A double of a batch that is in the log already (KIP-98) is as good as acknowledged.
    if (errorCode !== 0 && errorCode !== errorCodes.DUPLICATE_SEQUENCE_NUMBER) {
      part.admitted?.ended({ kind: 'failed', errorCode })
      return
    }
    const end = baseOffset < 0 ? -1 : baseOffset + recordCount(part.batch.records)
    part.admitted?.ended({ kind: 'acknowledged', end })
  }

  /** The connection is gone. */
  lost(): void {
    for (const part of this.parts) {
      const { fate } = part
      if (fate === 'refuse' || fate === 'done') continue
      part.fate = 'done'
      if (fate === 'waiting') part.admitted?.lost()
      else part.admitted?.ended({ kind: 'failed', errorCode: errorCodes.NETWORK_EXCEPTION })
    }
  }

  get isComplete(): boolean {
    return this.parts.every(({ fate }) => fate === 'done' || fate === 'refuse')
  }

  get hasRefused(): boolean {
    return this.parts.some(({ fate }) => fate === 'refuse')
  }

  /** One answer to the client, in its own grouping. */
  async answer(addresses: BrokerAddresses): Promise<Answer> {
    const { connection } = this.lane
    const nodes = [...this.endpoints.values()]
    await addresses.learn(nodes)?.catch(() => undefined)
    const nodeEndpoints = nodes.flatMap((node) => {
      const shown = addresses.advertised(connection, node.nodeId)
      return shown === undefined ? [] : [{ ...node, ...shown }]
    })
    return this.answerWith(nodeEndpoints)
  }

  answerWith(nodeEndpoints: readonly ProduceResponseNodeEndpoint[]): Answer {
    const { exchange, body } = this
    const { meter } = this.lane.connection.context
    const responses = body.topicData.map((topic) => ({
      name: topic.name,
      topicId: topic.topicId,
      partitionResponses: this.parts.flatMap((part) => (part.topic === topic ? [part.result ?? {}] : [])),
    }))
    for (const { result } of this.parts)
      if (result?.errorCode !== undefined && result.errorCode !== 0) meter.error(apiKeys.Produce, result.errorCode)
    const response = { responses, throttleTimeMs: this.throttleMs, nodeEndpoints }
    return { kind: 'answer', frame: frameOf(responseFrame(0, api, response, exchange.apiVersion)) }
  }
}

function decode(reader: Reader, version: number): ProduceResponse | undefined {
  try {
    return api.decodeResponse(reader, version)
  } catch {
    return undefined // the batches count as failed: they may be in the log
  }
}

/** Code 6 asks for a refresh in every family; the leader fields stay at −1 (their default), which names no leader. */
function refusal(index: number, errorCode: number): Draft<ProduceResponsePartition> & { errorCode: number } {
  return { index, errorCode, baseOffset: -1 }
}

/** Of an idempotent producer: the broker knows what comes again. */
function isSequenced(records: Buffer): boolean {
  return records.length >= HEADER_SIZE && magicOf(records, 0) === 2 && producerIdOf(records, 0) >= 0
}

const nothing = Buffer.alloc(0)
