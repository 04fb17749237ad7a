/**
 * One Fetch of a client, read from the broker in as many Fetches of our own as it takes to find something for it.
 * Pure: `request` says what to ask next, `ingest` takes the answer, `answer` is what the client gets.
 */
import type {
  FetchRequest,
  FetchRequestTopic,
  FetchResponse,
  FetchResponsePartition,
} from '../../protocol/generated/01-fetch.ts'
import type { FetchView } from './policy.ts'
import { PartitionRead } from './partition-read.ts'
import type { SkipPointers } from './skip-pointers.ts'

/** A broker serves one request per connection at a time: longer waits would block the client's other requests. */
export const UPSTREAM_WAIT_MS = 250

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

export class FetchRead {
  private readonly fetch: FetchRequest
  private readonly topics: readonly TopicRead[]
  private readonly byKey = new Map<string, PartitionRead>()
  private readonly peeking = new Set<string>()
  private last: FetchResponse | undefined
  private refused: FetchResponse | undefined
  private peeked = false

  constructor(fetch: FetchRequest, view: FetchView, pointers: SkipPointers, options: FetchReadOptions) {
    this.fetch = fetch
    const { isolationLevel } = fetch
    const { maxInflatedBytes } = options
    const epochs = options.version >= EPOCHS_FROM
    this.topics = fetch.topics.map((topic) => ({
      topic,
      partitions: topic.partitions.map((request) => {
        const key = keyOf(topic.topic, topic.topicId, request.partition)
        const policy = view.partition(topic.topic, topic.topicId, request.partition)
        const pointer = policy === undefined ? undefined : pointers.find(key, request.fetchOffset)
        const read = new PartitionRead({ key, request, policy, pointer, isolationLevel, epochs, maxInflatedBytes })
        this.byKey.set(key, read)
        return read
      }),
    }))
  }

  /** Whether any partition has a policy; if none has, the Fetch needs no editing at all. */
  get edited(): boolean {
    return [...this.byKey.values()].some((read) => read.policy !== undefined)
  }

  /**
   * What to ask the broker now; undefined if every partition is behind a shut limit (ask again when time has passed).
   * Shut partitions are asked once, for their true high watermark.
   */
  request(remainingMs: number): FetchRequest | undefined {
    this.peeking.clear()
    const topics = this.topics.flatMap(({ topic, partitions }) => {
      const asked = partitions.flatMap((read) => this.ask(read) ?? [])
      return asked.length === 0 ? [] : [{ ...topic, partitions: asked }]
    })
    this.peeked = true
    if (topics.length === 0) return undefined
    const waits = this.peeking.size > 0 ? 0 : Math.max(0, Math.min(UPSTREAM_WAIT_MS, Math.floor(remainingMs)))
    return {
      ...this.fetch,
      sessionId: 0,
      sessionEpoch: -1,
      maxWaitMs: waits,
      minBytes: 1,
      topics,
      forgottenTopicsData: [],
    }
  }

  ingest(response: FetchResponse): void {
    this.last = response
    if (response.errorCode !== 0) this.refused = response
    for (const topic of response.responses)
      for (const partition of topic.partitions) this.take(topic.topic, topic.topicId, partition)
  }

  /** Whether the client is to be answered without waiting for more. */
  get complete(): boolean {
    if (this.refused !== undefined) return true
    let urgent = false
    let more = false
    let bytes = 0
    for (const read of this.byKey.values()) {
      if (read.settled) return true
      urgent ||= read.urgent
      more ||= read.open
      bytes += read.foundBytes
    }
    return urgent && (!more || bytes >= this.fetch.minBytes)
  }

  answer(): FetchResponse {
    if (this.refused !== undefined) return { ...this.refused, sessionId: 0, responses: [] }
    return {
      throttleTimeMs: this.last?.throttleTimeMs ?? 0,
      errorCode: 0,
      sessionId: 0,
      responses: this.topics.map(({ topic, partitions }) => ({
        topic: topic.topic,
        topicId: topic.topicId,
        partitions: partitions.map((read) => read.result()),
      })),
      nodeEndpoints: this.last?.nodeEndpoints ?? [],
    }
  }

  /** Keeps what was learned for the client's next Fetch. */
  remember(pointers: SkipPointers): void {
    for (const read of this.byKey.values()) if (read.policy !== undefined) pointers.replace(read.key, read.pointers())
  }

  private ask(read: PartitionRead) {
    if (read.open) return read.upstream()
    if (read.settled || this.peeked) return undefined
    this.peeking.add(read.key)
    return read.peek()
  }

  private take(topic: string, topicId: string, partition: FetchResponsePartition): void {
    const key = keyOf(topic, topicId, partition.partitionIndex)
    const read = this.byKey.get(key)
    if (this.peeking.has(key)) read?.ingestPeek(partition)
    else read?.ingest(partition)
  }
}

/** From v13 on a topic has an id and no name, before it the reverse. */
function keyOf(topic: string, topicId: string, partition: number): string {
  return `${topic === '' ? topicId : topic}/${partition}`
}
