/**
 * One Fetch of a client, read from the broker in as many Fetches of our own as it takes to find something for it.
 * Pure: `request` says what to ask next, `ingest` takes the answer, `answer` is what the client gets.
 *
 * Memory: one answer of the broker at a time, and what was found in those before, copied out of them.
 */
import type {
  FetchRequest,
  FetchRequestPartition,
  FetchRequestTopic,
  FetchResponse,
  FetchResponsePartition,
} from '../../protocol/generated/01-fetch.ts'
import type { FetchView } from './policy.ts'
import { PartitionRead } from './partition-read.ts'
import type { SkipPointers } from './skip-pointers.ts'

/** A broker serves one request per connection at a time: longer waits would block the client's other requests. */
export const UPSTREAM_WAIT_MS = 250

/** What one answer of the broker may hold: enough for full speed, little enough to be looked through in milliseconds. */
const UPSTREAM_BYTES = 4 * 1024 * 1024

/** `lastFetchedEpoch` exists from this version on. */
const EPOCHS_FROM = 12

export interface FetchReadOptions {
  readonly version: number
  readonly maxInflatedBytes: number
}

/** The client's own grouping is kept: platformatic repeats a topic for each of its partitions. */
interface TopicRead {
  readonly topic: FetchRequestTopic
  readonly partitions: readonly PartitionRead[]
}

/** A partition of the client's request, once, and where it stands. */
interface Asked {
  readonly topic: FetchRequestTopic
  readonly read: PartitionRead
}

export class FetchRead {
  /** Whether any partition has a policy that is not on standby; if none has, the Fetch needs no editing at all. */
  readonly edited: boolean
  private readonly fetch: FetchRequest
  private readonly topics: readonly TopicRead[]
  private readonly byKey = new Map<string, Asked>()
  private readonly peeking = new Set<PartitionRead>()
  private readonly endpoints = new Map<number, FetchResponse['nodeEndpoints'][number]>()
  private turn: number
  private throttleTimeMs = 0
  private refused: FetchResponse | undefined
  private loops = 0

  constructor(fetch: FetchRequest, view: FetchView, pointers: SkipPointers, options: FetchReadOptions) {
    this.fetch = fetch
    this.turn = pointers.turn()
    const { isolationLevel } = fetch
    const { maxInflatedBytes } = options
    const epochs = options.version >= EPOCHS_FROM
    this.topics = fetch.topics.map((topic) => ({
      topic,
      partitions: topic.partitions.map((request) => {
        const key = this.keyOf(topic.topic, topic.topicId, request.partition)
        const known = this.byKey.get(key)
        if (known !== undefined) return known.read
        const policy = view.partition(topic.topic, topic.topicId, request.partition, request.fetchOffset)
        const pointer = policy === undefined ? undefined : pointers.find(key, request.fetchOffset)
        const read = new PartitionRead({ key, request, policy, pointer, isolationLevel, epochs, maxInflatedBytes })
        this.byKey.set(key, { topic, read })
        return read
      }),
    }))
    this.edited = this.reads().some(({ policy }) => policy !== undefined && policy.standby !== true)
  }

  /**
   * What to ask the broker now; undefined if every partition is behind a shut limit (ask again when time has passed).
   * Shut partitions are asked once, for their true high watermark.
   */
  request(remainingMs: number): FetchRequest | undefined {
    this.peeking.clear()
    this.loops++
    for (const read of this.reads()) read.detach()
    const topics = this.asked()
    if (topics.length === 0) return undefined
    const { maxBytes, minBytes } = this.fetch
    const found = this.foundBytes()
    const isDue = this.peeking.size > 0 || this.complete
    const waits = isDue ? 0 : Math.min(UPSTREAM_WAIT_MS, Math.floor(remainingMs))
    return {
      ...this.fetch,
      sessionId: 0,
      sessionEpoch: -1,
      maxWaitMs: Math.max(0, waits),
      minBytes: Math.max(1, minBytes - found),
      maxBytes: Math.max(1, Math.min(UPSTREAM_BYTES, maxBytes - found)),
      topics,
      forgottenTopicsData: [],
    }
  }

  ingest(response: FetchResponse): void {
    this.throttleTimeMs = response.throttleTimeMs
    if (response.errorCode !== 0) this.refused = response
    for (const node of response.nodeEndpoints) this.endpoints.set(node.nodeId, node)
    let budget = this.fetch.maxBytes - this.foundBytes()
    for (const topic of response.responses)
      for (const partition of topic.partitions) budget -= this.take(topic.topic, topic.topicId, partition, budget)
  }

  /** Takes back what was found above a limit of now: to be called before every look at `complete`. */
  recheck(): void {
    for (const read of this.reads()) read.recheck()
  }

  /** Whether the client is to be answered without waiting for more. */
  get complete(): boolean {
    const { maxBytes, minBytes } = this.fetch
    if (this.refused !== undefined || minBytes <= 0) return true
    if (this.reads().some((read) => read.urgent)) return true
    const found = this.foundBytes()
    return found > 0 && (found >= Math.min(minBytes, maxBytes) || !this.reads().some((read) => read.open))
  }

  answer(): FetchResponse {
    if (this.refused !== undefined) return { ...this.refused, sessionId: 0, responses: [] }
    return {
      throttleTimeMs: this.throttleTimeMs,
      errorCode: 0,
      sessionId: 0,
      responses: this.topics.map(({ topic, partitions }) => ({
        topic: topic.topic,
        topicId: topic.topicId,
        partitions: partitions.map((read) => read.result()),
      })),
      nodeEndpoints: [...this.endpoints.values()],
    }
  }

  /** Keeps what was learned for the client's next Fetch, and tells the policies what was decided. */
  remember(pointers: SkipPointers): void {
    for (const read of this.reads()) {
      if (read.policy === undefined) continue
      pointers.replace(read.key, read.pointers())
      read.count()
    }
  }

  /** Partitions with a batch that cannot be read. */
  failures(): PartitionRead[] {
    return this.reads().filter((read) => read.failure !== undefined)
  }

  private reads(): PartitionRead[] {
    return [...this.byKey.values()].map(({ read }) => read)
  }

  private foundBytes(): number {
    let bytes = 0
    for (const { read } of this.byKey.values()) bytes += read.foundBytes
    return bytes
  }

  /** Beginning with another partition each time: see `SkipPointers.turn`. Neighbours of one topic go together. */
  private asked(): FetchRequestTopic[] {
    const all = [...this.byKey.values()]
    const first = all.length === 0 ? 0 : this.turn++ % all.length
    const topics: { topic: FetchRequestTopic; partitions: FetchRequestPartition[] }[] = []
    for (const { topic, read } of [...all.slice(first), ...all.slice(0, first)]) {
      const partition = this.ask(read)
      if (partition === undefined) continue
      const last = topics.at(-1)
      if (last !== undefined && last.topic.topic === topic.topic && last.topic.topicId === topic.topicId)
        last.partitions.push(partition)
      else topics.push({ topic, partitions: [partition] })
    }
    return topics.map(({ topic, partitions }) => ({ ...topic, partitions }))
  }

  private ask(read: PartitionRead): FetchRequestPartition | undefined {
    if (read.open) return read.upstream()
    if (!read.unknown || this.loops > 1) return undefined
    this.peeking.add(read)
    return read.peek()
  }

  /** @returns how many bytes were found in it */
  private take(topic: string, topicId: string, partition: FetchResponsePartition, budget: number): number {
    const read = this.byKey.get(this.keyOf(topic, topicId, partition.partitionIndex))?.read
    if (read === undefined) return 0
    const before = read.foundBytes
    if (this.peeking.has(read)) read.ingestPeek(partition)
    else read.ingest(partition, budget)
    return read.foundBytes - before
  }

  /** From v13 on a topic has an id and no name, before it the reverse. */
  private keyOf(topic: string, topicId: string, partition: number): string {
    return `${topic === '' ? topicId : topic}/${partition}/${this.fetch.isolationLevel}`
  }
}
