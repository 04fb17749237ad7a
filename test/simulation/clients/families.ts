/**
 * How the real client families behave where it matters to a proxy, as measured (shared facts on clients and groups):
 * versions, requests in flight, what they do with a refused batch, where they go on reading, how they commit.
 */

export interface ProducerFamily {
  name: string
  versions: Readonly<Record<number, number>>
  idempotent: boolean
  /** Produce requests in flight per connection. */
  inFlight: number
  acks: -1 | 1
  maxBatch: number
  retryBackoffMs: number
  requestTimeoutMs: number
  deliveryTimeoutMs: number
  /** Metadata is asked for again after this long. */
  metadataMaxAgeMs: number
  /** kafkajs: what is retried is placed anew. */
  replacesOnRetry: boolean
  /** franz-go: a retry waits until this long after the last refresh. */
  metadataMinAgeMs: number
}

export interface ConsumerFamily {
  name: string
  versions: Readonly<Record<number, number>>
  /** Fetch sessions (KIP-227). */
  sessions: boolean
  /** platformatic names a topic once per partition. */
  repeatsTopics: boolean
  maxWaitMs: number
  minBytes: number
  partitionMaxBytes: number
  /** Where it goes on after a batch whose last records are missing: behind the batch, or behind its last record. */
  position: 'batch' | 'record'
  /** Records buffered beyond which it does not fetch. */
  prefetch: number
  assignor: 'range' | 'roundrobin' | 'cooperative-sticky'
  commit: 'record' | 'batch' | 'auto' | 'asynchronous'
  commitIntervalMs: number
  /** The offset committed: behind the batch where the position is (Java, aiokafka), or behind the last record. */
  commits: 'position' | 'record'
  heartbeatMs: number
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  /** After this long a leader looks whether its topic has grown. */
  metadataMaxAgeMs: number
  retryBackoffMs: number
  requestTimeoutMs: number
  /** Whether it waits for the record in hand before it gives partitions up. */
  waitsAtRebalance: boolean
  /** A connection of its own to the coordinator. */
  ownCoordinatorConnection: boolean
  isolation: 0 | 1
}

const produce = 0
const fetch = 1
const metadata = 3
const apiVersions = 18

const java = { [produce]: 13, [fetch]: 18, [metadata]: 13, [apiVersions]: 4 }
const kafkajs = {
  [produce]: 7,
  [fetch]: 11,
  [metadata]: 6,
  [apiVersions]: 2,
  2: 3,
  8: 5,
  9: 4,
  10: 2,
  11: 5,
  12: 3,
  13: 3,
  14: 3,
  22: 1,
  26: 1,
}
const platformatic = { [produce]: 11, [fetch]: 17, [metadata]: 12, [apiVersions]: 4, 11: 9, 14: 5, 26: 4 }
const librdkafka = { [produce]: 10, [fetch]: 16, [metadata]: 13, [apiVersions]: 3, 8: 9, 9: 9, 11: 5, 14: 3, 26: 1 }
const franz = { [produce]: 13, [fetch]: 18, [metadata]: 13, [apiVersions]: 4 }
const sarama = { [produce]: 10, [fetch]: 12, [metadata]: 11, [apiVersions]: 3, 11: 5, 14: 3, 26: 2 }
const aiokafka = {
  [produce]: 7,
  [fetch]: 11,
  [metadata]: 5,
  [apiVersions]: 0,
  8: 3,
  9: 3,
  11: 5,
  14: 3,
  10: 1,
  22: 0,
  24: 0,
  26: 0,
}

const producerDefaults = {
  acks: -1,
  maxBatch: 8,
  retryBackoffMs: 100,
  requestTimeoutMs: 4_000,
  deliveryTimeoutMs: 20_000,
  metadataMaxAgeMs: 30_000,
  replacesOnRetry: false,
  metadataMinAgeMs: 0,
} as const

export const producerFamilies: readonly ProducerFamily[] = [
  { ...producerDefaults, name: 'java', versions: java, idempotent: true, inFlight: 5 },
  { ...producerDefaults, name: 'java-plain', versions: java, idempotent: false, inFlight: 5, acks: 1 },
  { ...producerDefaults, name: 'kafkajs', versions: kafkajs, idempotent: false, inFlight: 1, replacesOnRetry: true },
  { ...producerDefaults, name: 'kafkajs-idempotent', versions: kafkajs, idempotent: true, inFlight: 1 },
  { ...producerDefaults, name: 'platformatic', versions: platformatic, idempotent: false, inFlight: 1 },
  { ...producerDefaults, name: 'librdkafka', versions: librdkafka, idempotent: false, inFlight: 5 },
  { ...producerDefaults, name: 'librdkafka-idempotent', versions: librdkafka, idempotent: true, inFlight: 5 },
  { ...producerDefaults, name: 'franz-go', versions: franz, idempotent: true, inFlight: 5, metadataMinAgeMs: 5_000 },
  { ...producerDefaults, name: 'sarama', versions: sarama, idempotent: false, inFlight: 1, acks: 1 },
  { ...producerDefaults, name: 'aiokafka', versions: aiokafka, idempotent: false, inFlight: 1 },
  { ...producerDefaults, name: 'kafka-python', versions: librdkafka, idempotent: true, inFlight: 5 },
]

const consumerDefaults = {
  sessions: false,
  repeatsTopics: false,
  maxWaitMs: 500,
  minBytes: 1,
  partitionMaxBytes: 1024 * 1024,
  position: 'batch',
  prefetch: 500,
  assignor: 'range',
  commit: 'batch',
  commitIntervalMs: 1_000,
  commits: 'record',
  heartbeatMs: 1_000,
  sessionTimeoutMs: 6_000,
  rebalanceTimeoutMs: 8_000,
  metadataMaxAgeMs: 30_000,
  retryBackoffMs: 100,
  requestTimeoutMs: 8_000,
  waitsAtRebalance: true,
  ownCoordinatorConnection: false,
  isolation: 1,
} as const

export const consumerFamilies: readonly ConsumerFamily[] = [
  {
    ...consumerDefaults,
    name: 'java',
    versions: java,
    sessions: true,
    commits: 'position',
    commit: 'auto',
    ownCoordinatorConnection: true,
  },
  {
    ...consumerDefaults,
    name: 'java-cooperative',
    versions: java,
    sessions: true,
    assignor: 'cooperative-sticky',
    commits: 'position',
    ownCoordinatorConnection: true,
  },
  {
    ...consumerDefaults,
    name: 'kafkajs',
    versions: kafkajs,
    maxWaitMs: 5_000,
    // Its heartbeats may queue behind two long polls (where a proxy let the one before pass the first); by default it has six.
    sessionTimeoutMs: 12_000,
    position: 'record',
    prefetch: 1,
    assignor: 'roundrobin',
  },
  {
    ...consumerDefaults,
    name: 'platformatic',
    versions: platformatic,
    sessions: true,
    repeatsTopics: true,
    waitsAtRebalance: false,
    maxWaitMs: 5_000,
    assignor: 'roundrobin',
    commit: 'record',
    ownCoordinatorConnection: true,
  },
  {
    ...consumerDefaults,
    name: 'librdkafka',
    versions: librdkafka,
    prefetch: 5_000,
    ownCoordinatorConnection: true,
    commit: 'auto',
  },
  {
    ...consumerDefaults,
    name: 'librdkafka-cooperative',
    versions: librdkafka,
    prefetch: 5_000,
    ownCoordinatorConnection: true,
    assignor: 'cooperative-sticky',
    commit: 'asynchronous',
  },
  {
    ...consumerDefaults,
    name: 'franz-go',
    versions: franz,
    sessions: true,
    maxWaitMs: 5_000,
    assignor: 'cooperative-sticky',
    ownCoordinatorConnection: true,
  },
  { ...consumerDefaults, name: 'sarama', versions: sarama, position: 'record', commit: 'asynchronous' },
  {
    ...consumerDefaults,
    name: 'aiokafka',
    versions: aiokafka,
    assignor: 'roundrobin',
    commits: 'position',
    commit: 'auto',
  },
]
