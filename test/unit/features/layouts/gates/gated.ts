/**
 * A topic behind the gates, on a rig in virtual time: logs of real batches that a scripted broker serves and `Cluster`
 * answers for, a state that a test sets, and one client whose Fetches the real editor edits.
 */
import type { BrokerAddresses } from '../../../../../src/editors/addresses.ts'
import { FetchEditor } from '../../../../../src/editors/fetch/editor.ts'
import { GroupGates } from '../../../../../src/features/layouts/gates/group-gates.ts'
import { MemberRequests } from '../../../../../src/features/layouts/gates/member-requests.ts'
import type { GateRule, LayoutTopic, LayoutTopics, TopicRule } from '../../../../../src/features/layouts/topic-rule.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { codec } from '../../../../../src/protocol/codecs.ts'
import type { FetchRequest, FetchResponse } from '../../../../../src/protocol/generated/01-fetch.ts'
import type { OffsetCommitRequest } from '../../../../../src/protocol/generated/08-offset-commit.ts'
import type { OffsetFetchRequest } from '../../../../../src/protocol/generated/09-offset-fetch.ts'
import { peekBodyStart } from '../../../../../src/protocol/peek.ts'
import { Reader } from '../../../../../src/protocol/reader.ts'
import { readRecords } from '../../../../../src/records/read.ts'
import type { TopicState } from '../../../../../src/state/topic-state.ts'
import { codecRequest, codecResponse, openResponse } from '../../../../support/codec-frames.ts'
import { type Peer, Rig } from '../../../../support/rig.ts'
import { LogCluster, type PartLog } from './log-cluster.ts'
import { grown, SetState, TOPIC_ID } from './set-state.ts'

const addresses: BrokerAddresses = { advertised: () => ({ host: 'proxy', port: 1 }), learn: () => undefined }

const defaultRule: TopicRule = {
  topic: /t/,
  partitioner: 'auto',
  order: 'key',
  sealAfterMs: undefined,
  goneAfterMs: 120_000,
  late: 'accept',
  stateLoss: 'hold',
}

export interface GatedOptions {
  readonly topic?: TopicState
  readonly rule?: Partial<TopicRule>
  readonly rules?: readonly GateRule[]
  readonly version?: number
  readonly group?: string
  /** Partitions of the cluster. */
  readonly count?: number
}

export class Gated {
  readonly state = new SetState()
  readonly cluster = new LogCluster()
  readonly fetches: FetchRequest[] = []
  /** Member and generation of each OffsetCommit. */
  readonly committers: string[] = []
  gates!: GroupGates
  rig!: Rig
  client!: Peer
  private readonly version: number
  private ids = 0
  private readonly queue: Buffer[] = []
  /** Whether the topic has been met by this proxy. */
  isMet = true
  /** Partitions with a commit in a transaction that is open. */
  readonly pending = new Set<number>()
  holdOffsets: Promise<void> = Promise.resolve()
  /** Answers to OffsetCommit wait for this. */
  holdCommits: Promise<void> | undefined
  /** Upstream Fetches wait for this. */
  stall: Promise<void> | undefined

  private constructor(version: number) {
    this.version = version
  }

  static async start(options: GatedOptions = {}): Promise<Gated> {
    const { topic = grown(2), rule = {}, rules = [], version = 11, group = 'g', count = 0 } = options
    const gated = new Gated(version)
    gated.state.topic = topic
    const known: LayoutTopic = {
      name: 't',
      topicId: TOPIC_ID,
      rule: { ...defaultRule, ...rule },
      count,
      view: () => (gated.state.mayAct() ? gated.state.view(TOPIC_ID) : undefined),
    }
    const topics: LayoutTopics = {
      get isLoaded() {
        return gated.isMet
      },
      mayBeRuled: (name, topicId) =>
        name === '' ? !gated.isMet || gated.state.view(topicId) !== undefined : name === 't',
      onNamed: () => undefined,
      rule: (name) => (name === 't' ? known.rule : undefined),
      find: (name, topicId) => (gated.isMet && (name === 't' || topicId === TOPIC_ID) ? known : undefined),
      all: () => (gated.isMet ? [known] : []),
    }
    gated.rig = await Rig.start({
      handlers: (runtime) => {
        const { state, cluster } = gated
        gated.gates = new GroupGates({ runtime, log: gated.rigLog, state, cluster, topics, rules })
        return [
          new FetchEditor({ policies: [gated.gates], addresses, maxInflatedBytes: 1 << 20 }),
          new MemberRequests(gated.gates),
        ]
      },
      broker: (peer) => (peer.onFrame = (frame) => gated.serve(peer, frame)),
    })
    gated.cluster.now = () => gated.rig.runtime.now()
    gated.cluster.pause = (ms) => new Promise<void>((resolve) => void gated.rig.runtime.timer(ms, resolve))
    gated.client = gated.rig.connect()
    await gated.rig.run(() => gated.client.connected && gated.rig.brokers.length > 0 && gated.rig.broker.connected)
    // the first request names the client: the instance of the rig is known from then on
    gated.send(apiKeys.ApiVersions, 0, {})
    await gated.rig.run(() => gated.client.frames.length === 1)
    if (group !== '') gated.join(group)
    return gated
  }

  readonly lines: { level: string; fields: object; message: string }[] = []
  private readonly rigLog = {
    debug: () => undefined,
    info: (fields: object, message: string) => void this.lines.push({ level: 'info', fields, message }),
    warn: (fields: object, message: string) => void this.lines.push({ level: 'warn', fields, message }),
    error: (fields: object, message: string) => void this.lines.push({ level: 'error', fields, message }),
  }

  join(groupId: string, generation = 1, memberId = 'm'): void {
    const { instance } = this.rig.connection
    instance?.memberships.set(groupId, { groupId, memberId, generation, groupInstanceId: null })
  }

  leave(groupId: string): void {
    this.rig.connection.instance?.memberships.delete(groupId)
  }

  /** A later generation of a member that is known. */
  rejoin(groupId: string, generation: number): void {
    const membership = this.rig.connection.instance?.memberships.get(groupId)
    if (membership !== undefined) membership.generation = generation
  }

  log(q: number): PartLog {
    return this.cluster.log(q)
  }

  send(apiKey: number, version: number, draft: object): void {
    this.client.send(codecRequest(apiKey, version, ++this.ids, draft))
  }

  /** Asks for these partitions (number → offset) and gives, of each, the offsets that came and the high watermark. */
  async fetch(positions: Record<number, number>, maxWaitMs = 500): Promise<Fetched> {
    const id = this.ids + 1
    const find = () => this.client.frames.find((frame) => frame.readInt32BE(4) === id)
    const sentAt = this.rig.runtime.now()
    const partitions = Object.entries(positions).map(([partition, fetchOffset]) => ({
      partition: Number(partition),
      fetchOffset,
      partitionMaxBytes: 1 << 20,
    }))
    const topics = [{ topic: 't', topicId: TOPIC_ID, partitions }]
    const draft = { maxWaitMs, minBytes: 1, maxBytes: 1 << 20, sessionId: 0, sessionEpoch: -1, topics }
    this.send(apiKeys.Fetch, this.version, draft)
    await this.rig.run(() => find() !== undefined)
    const frame = find()
    if (frame === undefined) throw new Error('no answer')
    const answer = openResponse(apiKeys.Fetch, this.version, frame) as FetchResponse
    return { ...summary(answer), tookMs: this.rig.runtime.now() - sentAt, answer }
  }

  pass(ms: number): Promise<boolean> {
    return this.rig.run(() => false, ms)
  }

  /** One request at a time, as brokers do. */
  private serve(peer: Peer, frame: Buffer): void {
    this.queue.push(frame)
    if (this.queue.length === 1) void this.work(peer)
  }

  private async work(peer: Peer): Promise<void> {
    for (let frame = this.queue[0]; frame !== undefined; frame = this.queue[0]) {
      const [apiKey, version, id] = [frame.readInt16BE(4), frame.readInt16BE(6), frame.readInt32BE(8)]
      const reader = new Reader(frame, peekBodyStart(frame, 4, frame.length), frame.length)
      const answer = await this.answerTo(apiKey, version, reader)
      peer.send(codecResponse(apiKey, version, id, answer))
      this.queue.shift()
    }
  }

  private async answerTo(apiKey: number, version: number, reader: Reader): Promise<object> {
    if (apiKey === apiKeys.OffsetCommit) {
      const answer = this.commit(codec(apiKeys.OffsetCommit).decodeRequest(reader, version))
      await this.holdCommits
      return answer
    }
    if (apiKey === apiKeys.OffsetFetch) {
      const answer = this.offsets(codec(apiKeys.OffsetFetch).decodeRequest(reader, version))
      await this.holdOffsets
      return answer
    }
    if (apiKey !== apiKeys.Fetch) return {}
    const request = codec(apiKeys.Fetch).decodeRequest(reader, version)
    this.fetches.push(request)
    return this.answer(request)
  }

  private commit({ groupId, topics, memberId, generationIdOrMemberEpoch }: OffsetCommitRequest): object {
    this.committers.push(`${memberId}/${generationIdOrMemberEpoch}`)
    const written = topics.map(({ name, topicId, partitions }) => ({
      name,
      topicId,
      partitions: partitions.map(({ partitionIndex, committedOffset }) => {
        if (committedOffset < 0) return { partitionIndex, errorCode: 28 }
        this.cluster.commit(groupId, partitionIndex, committedOffset)
        return { partitionIndex, errorCode: 0 }
      }),
    }))
    return { topics: written }
  }

  private offsets({ groupId, topics, requireStable }: OffsetFetchRequest): object {
    const rows = (topics ?? []).map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partitionIndex) => ({
        partitionIndex,
        committedOffset: this.cluster.commits.get(groupId)?.get(partitionIndex) ?? -1,
        metadata: '',
        errorCode: requireStable && this.pending.has(partitionIndex) ? 88 : 0,
      })),
    }))
    return { topics: rows }
  }

  private async answer(request: FetchRequest): Promise<object> {
    const until = this.rig.runtime.now() + request.maxWaitMs
    for (;;) {
      await this.stall
      const answer = { responses: request.topics.map((topic) => ({ ...topic, partitions: this.partitions(topic) })) }
      const isFound = answer.responses.some(({ partitions }) => partitions.some(({ records }) => records.length > 0))
      if (isFound || this.rig.runtime.now() >= until) return answer
      await new Promise<void>((resolve) => void this.rig.runtime.timer(20, resolve))
    }
  }

  private partitions({ partitions }: FetchRequest['topics'][number]) {
    return partitions.map(({ partition, fetchOffset, partitionMaxBytes }) => {
      const { highWatermark } = this.log(partition)
      const records = this.log(partition).read(fetchOffset, partitionMaxBytes)
      return { partitionIndex: partition, highWatermark, lastStableOffset: highWatermark, logStartOffset: 0, records }
    })
  }
}

export interface Fetched {
  /** Partition → offsets of the records that came. */
  readonly offsets: Record<number, number[]>
  readonly highWatermarks: Record<number, number>
  readonly tookMs: number
  readonly answer: FetchResponse
}

function summary({ responses }: FetchResponse): Pick<Fetched, 'offsets' | 'highWatermarks'> {
  const offsets: Record<number, number[]> = {}
  const highWatermarks: Record<number, number> = {}
  for (const { partitions } of responses) {
    for (const { partitionIndex, records, highWatermark } of partitions) {
      offsets[partitionIndex] = readRecords(records ?? Buffer.alloc(0), 1 << 20)
        .filter(({ control }) => !control)
        .map(({ offset }) => offset)
      highWatermarks[partitionIndex] = highWatermark
    }
  }
  return { offsets, highWatermarks }
}
