/**
 * Our own client of the cluster: what `Cluster` promises to features, and what the state log needs besides. Leaders,
 * coordinators and the controller are looked up and looked up anew when they move; every request has a time-out, and
 * what cannot be had is a ClusterError that says what was asked, where, and what to do.
 *
 * Requests that a broker may park go in lanes of their own (`broker-links.ts`): nothing waits behind a long poll.
 */
import { apiKeys } from '../protocol/api-table.ts'
import { codec } from '../protocol/codecs.ts'
import { errorCodes } from '../protocol/error-codes.ts'
import type { CreateTopicsRequestTopic } from '../protocol/generated/19-create-topics.ts'
import type { OffsetFetchResponse } from '../protocol/generated/09-offset-fetch.ts'
import type { Draft } from '../protocol/codec.ts'
import type { LinkSettings, Question } from './broker-link.ts'
import { BrokerLinks, type KnownBrokers } from './broker-links.ts'
import { type Cluster, partitionKey, type TopicDescription, type TopicPartition } from './cluster.ts'
import { ClusterError, refusal } from './cluster-error.ts'
import { type Fetched, type FetchOptions, fetchQuestion, firstDeliverableIn, positionAfter } from './fetch-records.ts'
import { GroupCoordinators, type GroupQuestion } from './group-coordinators.ts'
import { pause, retried } from './retried.ts'
import { TopicLeaders } from './topic-leaders.ts'

const listOffsets = codec(apiKeys.ListOffsets)
const offsetFetch = codec(apiKeys.OffsetFetch)
const offsetForLeaderEpoch = codec(apiKeys.OffsetForLeaderEpoch)
const createPartitions = codec(apiKeys.CreatePartitions)
const createTopics = codec(apiKeys.CreateTopics)
const describeConfigs = codec(apiKeys.DescribeConfigs)
const produce = codec(apiKeys.Produce)

const LATEST = -1
const EARLIEST = -2
const CONSUMER = -1
const ALL_IN_SYNC = -1
const TOPIC = 2
/** From here on OffsetFetch asks for several groups (KIP-709); v10 names topics by id, which a commit need not have. */
const GROUPS_FROM = 8
const OFFSET_FETCH_MAX = 9
/** Longest that new partitions are waited for to appear in Metadata, in steps. */
const grownSteps = 20
const grownStepMs = 100

export interface ClusterClientOptions extends LinkSettings {
  readonly brokers: KnownBrokers
  /** How long an answer is waited for. */
  readonly requestTimeoutMs: number
}

export interface ProduceOptions {
  readonly lane: string
  readonly timeoutMs: number
}

export class ClusterClient implements Cluster {
  readonly #options: ClusterClientOptions
  readonly #links: BrokerLinks
  readonly #leaders: TopicLeaders
  readonly #coordinators: GroupCoordinators

  constructor(options: ClusterClientOptions) {
    const { runtime, brokers, requestTimeoutMs } = options
    this.#options = options
    this.#links = new BrokerLinks(options, brokers)
    this.#leaders = new TopicLeaders(runtime, this.#links, brokers, requestTimeoutMs)
    this.#coordinators = new GroupCoordinators(runtime, this.#links, brokers, requestTimeoutMs)
  }

  /** Closes every connection; what was asked rejects. */
  close(): void {
    this.#links.close()
  }

  describeTopics(names?: readonly string[]): Promise<readonly TopicDescription[]> {
    return retried(this.#options.runtime, undefined, () => this.#leaders.describe(names))
  }

  endOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>> {
    return this.#offsets(topic, partitions, LATEST)
  }

  startOffsets(topic: string, partitions: readonly number[]): Promise<Readonly<Record<number, number>>> {
    return this.#offsets(topic, partitions, EARLIEST)
  }

  async createPartitions(topic: string, count: number): Promise<void> {
    if ((await this.#countOf(topic)) >= count) return
    const timeoutMs = this.#options.requestTimeoutMs
    const what = `CreatePartitions of topic ${topic} to ${count}`
    await this.#askController(async (node) => {
      const response = await this.#links.node(node, 'admin', {
        codec: createPartitions,
        timeoutMs,
        build: () => ({ topics: [{ name: topic, count, assignments: null }], timeoutMs, validateOnly: false }),
      })
      const result = response.results.find(({ name }) => name === topic)
      const errorCode = result?.errorCode ?? errorCodes.UNKNOWN_SERVER_ERROR
      if (errorCode === errorCodes.NONE) return
      // somebody else was faster, or our own first attempt was served and its answer lost
      if (errorCode === errorCodes.INVALID_PARTITIONS && (await this.#countOf(topic)) >= count) return
      throw refusal(what, errorCode, result?.errorMessage)
    })
    for (let step = 0; (await this.#countOf(topic)) < count; step++) {
      if (step === grownSteps) throw refusal(`${what}: Metadata does not show them, it`, errorCodes.REQUEST_TIMED_OUT)
      await pause(this.#options.runtime, grownStepMs)
    }
  }

  async committed(group: string, partitions: readonly TopicPartition[]): Promise<ReadonlyMap<string, number>> {
    const byTopic = new Map<string, number[]>()
    for (const { topic, partition } of partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition])
    const topics = Array.from(byTopic, ([name, partitionIndexes]) => ({ name, partitionIndexes }))
    const response = await this.#coordinators.ask(group, {
      codec: offsetFetch,
      lane: '',
      timeoutMs: this.#options.requestTimeoutMs,
      maxVersion: OFFSET_FETCH_MAX,
      build: (version) =>
        version < GROUPS_FROM
          ? { groupId: group, topics }
          : { groups: [{ groupId: group, memberId: null, memberEpoch: -1, topics }] },
      errorOf: (answer) => committedRows(answer).errorCode,
    })
    return readCommitted(group, response)
  }

  /**
   * As `Cluster` says. While a transaction is open in the range, the answer is where it begins: a record may come of it.
   * Reads no further than the first such record.
   */
  async firstDeliverable(topic: string, partition: number, from: number, to: number): Promise<number | undefined> {
    const startOf = async () => (await this.startOffsets(topic, [partition]))[partition] ?? 0
    const timeoutMs = this.#options.requestTimeoutMs
    const options = { isolation: 'committed', maxWaitMs: 0, timeoutMs, lane: 'read' } as const
    for (let at = Math.max(from, await startOf()); at < to; ) {
      const fetched = await this.fetch(topic, partition, at, options)
      const found = firstDeliverableIn(fetched, at, to)
      if (found !== undefined) return found
      const next = positionAfter(fetched.records, at)
      if (next > at) at = next
      else if (fetched.lastStableOffset >= to) return undefined
      else if (fetched.highWatermark >= to) return Math.max(at, fetched.lastStableOffset)
      else {
        const end = `partition ${partition} of topic ${topic} ends at ${fetched.highWatermark}, below ${to}`
        throw new ClusterError('HG_CLUSTER_UNKNOWN', `${end}: its log was cut, or its leader is not up to date yet`)
      }
    }
    return undefined
  }

  async endOfEpoch(topic: string, partition: number, leaderEpoch: number): Promise<number | undefined> {
    const answers = await this.#leaders.ask(topic, [partition], {
      codec: offsetForLeaderEpoch,
      lane: '',
      timeoutMs: this.#options.requestTimeoutMs,
      build: ({ name }) => ({
        replicaId: CONSUMER,
        topics: [{ topic: name, partitions: [{ partition, currentLeaderEpoch: -1, leaderEpoch }] }],
      }),
      read: ({ topics }) =>
        topics.flatMap(({ partitions }) =>
          partitions.map(({ partition: index, errorCode, endOffset }) => ({
            partition: index,
            errorCode,
            value: endOffset,
          })),
        ),
    })
    const end = answers.get(partition) ?? -1
    return end < 0 ? undefined : end
  }

  /** Reads a partition from `offset` on. @throws ClusterError with OFFSET_OUT_OF_RANGE where the log is elsewhere */
  async fetch(topic: string, partition: number, offset: number, options: FetchOptions): Promise<Fetched> {
    const answers = await this.#leaders.ask(topic, [partition], fetchQuestion(offset, options))
    return answers.get(partition) as Fetched
  }

  /**
   * Appends one batch with acks=all, and sends it once only: after an error it may have been written or not.
   * @returns the offset of its first record
   */
  async produce(topic: string, partition: number, records: Buffer, options: ProduceOptions): Promise<number> {
    const answers = await this.#leaders.ask(topic, [partition], {
      codec: produce,
      lane: options.lane,
      attempts: 1,
      timeoutMs: options.timeoutMs,
      build: ({ name, topicId }) => ({
        transactionalId: null,
        acks: ALL_IN_SYNC,
        timeoutMs: options.timeoutMs,
        topicData: [{ name, topicId, partitionData: [{ index: partition, records }] }],
      }),
      read: ({ responses }) =>
        responses.flatMap(({ partitionResponses }) =>
          partitionResponses.map(({ index, errorCode, baseOffset }) => ({
            partition: index,
            errorCode,
            value: baseOffset,
          })),
        ),
    })
    return answers.get(partition) ?? -1
  }

  /** Creates a topic. @throws ClusterError; TOPIC_ALREADY_EXISTS is one */
  async createTopic(topic: Draft<CreateTopicsRequestTopic> & { readonly name: string }): Promise<void> {
    const timeoutMs = this.#options.requestTimeoutMs
    await this.#askController(async (node) => {
      const response = await this.#links.node(node, 'admin', {
        codec: createTopics,
        timeoutMs,
        build: () => ({ topics: [topic], timeoutMs, validateOnly: false }),
      })
      const result = response.topics.find(({ name }) => name === topic.name)
      const errorCode = result?.errorCode ?? errorCodes.UNKNOWN_SERVER_ERROR
      if (errorCode !== errorCodes.NONE)
        throw refusal(`CreateTopics of ${topic.name}`, errorCode, result?.errorMessage ?? null)
    })
  }

  /** The named settings of a topic, defaults too; a setting that the broker does not know is left out. */
  async topicSettings(topic: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const response = await this.ask({
      codec: describeConfigs,
      timeoutMs: this.#options.requestTimeoutMs,
      build: () => ({ resources: [{ resourceType: TOPIC, resourceName: topic, configurationKeys: [...names] }] }),
    })
    const result = response.results[0]
    const errorCode = result?.errorCode ?? errorCodes.UNKNOWN_SERVER_ERROR
    if (errorCode !== errorCodes.NONE)
      throw refusal(`DescribeConfigs of topic ${topic}`, errorCode, result?.errorMessage)
    return new Map(result?.configs.map(({ name, value }) => [name, value ?? '']))
  }

  /** Brokers that were up when Metadata was asked last. */
  get brokerCount(): number {
    return this.#leaders.brokerCount
  }

  /** Asks any broker. */
  ask<Request, Response>(question: Question<Request, Response>): Promise<Response> {
    return this.#links.any(question)
  }

  /** Asks a group's coordinator, wherever it is. */
  askCoordinator<Request, Response>(group: string, question: GroupQuestion<Request, Response>): Promise<Response> {
    return this.#coordinators.ask(group, question)
  }

  async #countOf(topic: string): Promise<number> {
    const [described] = await this.describeTopics([topic])
    if (described !== undefined) return described.partitions.length
    const code = errorCodes.UNKNOWN_TOPIC_OR_PARTITION
    throw new ClusterError('HG_CLUSTER_UNKNOWN', `topic ${topic} does not exist in the cluster`, code)
  }

  #askController(ask: (nodeId: number) => Promise<void>): Promise<void> {
    return retried(this.#options.runtime, undefined, async (attempt) =>
      ask(await this.#leaders.controller(attempt > 1)),
    )
  }

  async #offsets(topic: string, partitions: readonly number[], timestamp: number): Promise<Record<number, number>> {
    const answers = await this.#leaders.ask(topic, partitions, {
      codec: listOffsets,
      lane: '',
      timeoutMs: this.#options.requestTimeoutMs,
      build: ({ name }, some) => ({
        replicaId: CONSUMER,
        isolationLevel: 0,
        topics: [
          {
            name,
            partitions: some.map((partitionIndex) => ({ partitionIndex, currentLeaderEpoch: -1, timestamp })),
          },
        ],
        timeoutMs: this.#options.requestTimeoutMs,
      }),
      read: ({ topics }) =>
        topics.flatMap((answer) =>
          answer.partitions.map(({ partitionIndex, errorCode, offset, oldStyleOffsets }) => ({
            partition: partitionIndex,
            errorCode,
            value: oldStyleOffsets[0] ?? offset,
          })),
        ),
    })
    return Object.fromEntries(answers)
  }
}

function committedRows(response: OffsetFetchResponse): Pick<OffsetFetchResponse, 'errorCode' | 'topics'> {
  return response.groups[0] ?? response
}

function readCommitted(group: string, response: OffsetFetchResponse): Map<string, number> {
  const { errorCode, topics } = committedRows(response)
  if (errorCode === errorCodes.GROUP_ID_NOT_FOUND) return new Map()
  if (errorCode !== errorCodes.NONE) throw refusal(`OffsetFetch of group ${group}`, errorCode)
  const offsets = new Map<string, number>()
  for (const { name, partitions } of topics) {
    for (const { partitionIndex, committedOffset, errorCode: code } of partitions) {
      const what = `OffsetFetch of group ${group}, topic ${name}, partition ${partitionIndex}`
      if (code !== errorCodes.NONE && code !== errorCodes.UNKNOWN_TOPIC_OR_PARTITION) throw refusal(what, code)
      if (code === errorCodes.NONE && committedOffset >= 0)
        offsets.set(partitionKey(name, partitionIndex), committedOffset)
    }
  }
  return offsets
}
