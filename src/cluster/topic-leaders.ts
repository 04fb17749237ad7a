/**
 * Who leads which partition, from Metadata, and questions to the leaders of several partitions of a topic. What was
 * learned is used until an answer contradicts it; then Metadata is asked anew, a bounded number of times.
 */
import { apiKeys } from '../protocol/api-table.ts'
import type { Draft } from '../protocol/codec.ts'
import { codec } from '../protocol/codecs.ts'
import { errorCodes, isRetriable } from '../protocol/error-codes.ts'
import type { MetadataResponse, MetadataResponseTopic } from '../protocol/generated/03-metadata.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Question } from './broker-link.ts'
import type { BrokerLinks, KnownBrokers } from './broker-links.ts'
import type { TopicDescription } from './cluster.ts'
import { ClusterError, refusal } from './cluster-error.ts'
import { retried } from './retried.ts'

const metadata = codec(apiKeys.Metadata)

/** Answers that mean: there is no such topic (yet). */
const absent: ReadonlySet<number> = new Set([
  errorCodes.UNKNOWN_TOPIC_OR_PARTITION,
  errorCodes.LEADER_NOT_AVAILABLE,
  errorCodes.INVALID_TOPIC_EXCEPTION,
  errorCodes.UNKNOWN_TOPIC_ID,
])

export interface PartitionAnswer<Value> {
  readonly partition: number
  readonly errorCode: number
  readonly value: Value
}

/** A question to the leaders of partitions of one topic. */
export interface LeaderQuestion<Request, Response, Value> {
  readonly codec: Question<Request, Response>['codec']
  readonly timeoutMs: number
  readonly maxVersion?: number
  readonly lane: string
  /** How often it is asked at most: 1 for what must not be sent twice. */
  readonly attempts?: number
  build(topic: TopicDescription, partitions: readonly number[], version: number): Draft<Request>
  read(response: Response, topic: TopicDescription): readonly PartitionAnswer<Value>[]
}

export class TopicLeaders {
  readonly #runtime: Runtime
  readonly #links: BrokerLinks
  readonly #brokers: KnownBrokers
  readonly #timeoutMs: number
  readonly #topics = new Map<string, TopicDescription>()
  #controllerId = -1
  #brokerCount = 0

  constructor(runtime: Runtime, links: BrokerLinks, brokers: KnownBrokers, timeoutMs: number) {
    this.#runtime = runtime
    this.#links = links
    this.#brokers = brokers
    this.#timeoutMs = timeoutMs
  }

  /** Brokers in the last Metadata answer. */
  get brokerCount(): number {
    return this.#brokerCount
  }

  /** Topics by name, or all that can be described, as Metadata says now; those that do not exist are left out. */
  async describe(names?: readonly string[]): Promise<TopicDescription[]> {
    const response = await this.#ask(names)
    for (const name of names ?? []) this.#topics.delete(name)
    // One that cannot be described must not hide all others from whoever asked for everything.
    const isLeftOut = (code: number): boolean => (names === undefined ? code !== errorCodes.NONE : absent.has(code))
    const topics = response.topics.filter(({ errorCode }) => !isLeftOut(errorCode)).map(describeTopic)
    for (const topic of topics) this.#topics.set(topic.name, topic)
    return topics
  }

  /** The node that takes CreateTopics and the like: the controller, or any broker where brokers pass them on. */
  async controller(refresh: boolean): Promise<number> {
    if (refresh || this.#controllerId < 0) await this.#ask([])
    return this.#controllerId
  }

  /** Forgets who leads: the next question asks Metadata first. */
  forget(topic: string): void {
    this.#topics.delete(topic)
  }

  /**
   * Asks the leader of each partition.
   * @throws ClusterError if one of them cannot be had; what others answered is lost then
   */
  async ask<Request, Response, Value>(
    name: string,
    partitions: readonly number[],
    question: LeaderQuestion<Request, Response, Value>,
  ): Promise<Map<number, Value>> {
    const found = new Map<number, Value>()
    await retried(this.#runtime, question.attempts, async () => {
      const topic = this.#topics.get(name) ?? (await this.#find(name))
      const left = partitions.filter((partition) => !found.has(partition))
      const byLeader = new Map<number, number[]>()
      for (const partition of left) {
        const leader = topic.partitions[partition]?.leader ?? -1
        byLeader.set(leader, [...(byLeader.get(leader) ?? []), partition])
      }
      const asked = Array.from(byLeader, ([leader, some]) => this.#askOne(topic, leader, some, question))
      const results = await Promise.allSettled(asked)
      let failure: ClusterError | undefined
      for (const result of results) {
        const answer = result.status === 'fulfilled' ? result.value : { values: none, failure: result.reason as Error }
        for (const [partition, value] of answer.values) found.set(partition, value)
        if (answer.failure !== undefined && !(answer.failure instanceof ClusterError)) throw answer.failure
        failure = answer.failure ?? failure
      }
      if (failure === undefined) return
      this.forget(name)
      throw failure
    })
    return found
  }

  async #askOne<Request, Response, Value>(
    topic: TopicDescription,
    leader: number,
    partitions: readonly number[],
    question: LeaderQuestion<Request, Response, Value>,
  ): Promise<{ values: Map<number, Value>; failure?: ClusterError }> {
    const { codec, timeoutMs, maxVersion } = question
    const where = `topic ${topic.name}, partition ${partitions.join(', ')}`
    if (leader < 0) throw new ClusterError('HG_CLUSTER_UNKNOWN', `no broker leads ${where} now`)
    const response = await this.#links.node(leader, question.lane, {
      codec,
      timeoutMs,
      ...(maxVersion === undefined ? {} : { maxVersion }),
      build: (version) => question.build(topic, partitions, version),
    })
    const values = new Map<number, Value>()
    let failure: ClusterError | undefined
    for (const { partition, errorCode, value } of question.read(response, topic)) {
      if (errorCode === errorCodes.NONE) values.set(partition, value)
      else if (failure === undefined || !isRetriable(errorCode)) {
        failure = refusal(`${codec.name} of topic ${topic.name}, partition ${partition}`, errorCode)
      }
    }
    if (failure === undefined && partitions.some((partition) => !values.has(partition))) {
      failure = new ClusterError(
        'HG_CLUSTER_UNREACHABLE',
        `broker ${leader} left something out of its answer: ${where}`,
      )
    }
    return failure === undefined ? { values } : { values, failure }
  }

  async #find(name: string): Promise<TopicDescription> {
    const [topic] = await this.describe([name])
    if (topic !== undefined) return topic
    const code = errorCodes.UNKNOWN_TOPIC_OR_PARTITION
    throw new ClusterError('HG_CLUSTER_UNKNOWN', `topic ${name} does not exist in the cluster`, code)
  }

  async #ask(names: readonly string[] | undefined): Promise<MetadataResponse> {
    const response = await this.#links.any({
      codec: metadata,
      timeoutMs: this.#timeoutMs,
      build: () => ({ topics: names?.map((name) => ({ name })) ?? null, allowAutoTopicCreation: false }),
    })
    this.#brokers.learn(response.brokers)
    this.#controllerId = response.controllerId
    this.#brokerCount = response.brokers.length
    return response
  }
}

const none = new Map<number, never>()

function describeTopic({ errorCode, name, topicId, partitions }: MetadataResponseTopic): TopicDescription {
  if (errorCode !== errorCodes.NONE) throw refusal(`Metadata of topic ${name ?? topicId}`, errorCode)
  const byNumber: { leader: number; leaderEpoch: number }[] = Array.from({ length: partitions.length }, () => ({
    leader: -1,
    leaderEpoch: -1,
  }))
  for (const { partitionIndex, leaderId, leaderEpoch } of partitions) {
    if (partitionIndex < byNumber.length) byNumber[partitionIndex] = { leader: leaderId, leaderEpoch }
  }
  return { name: name ?? '', topicId, partitions: byNumber }
}
