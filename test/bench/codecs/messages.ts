/** The messages that are compared, as our codecs take them: of the size that busy clients send. */

const replicas = [1, 2, 3]
const uuid = 'AAECAwQFBgcICQoLDA0ODw'
export const metadata = {
  brokers: [1, 2, 3].map((nodeId) => ({ nodeId, host: `broker-${nodeId}.example.com`, port: 9092, rack: 'zone-a' })),
  clusterId: 'abcdefghijklmnopqrstuv',
  controllerId: 1,
  topics: Array.from({ length: 1000 }, (_, t) => ({
    name: `orders-by-region-${t}`,
    partitions: Array.from({ length: 10 }, (_, p) => ({
      partitionIndex: p,
      leaderId: 1 + (p % 3),
      replicaNodes: replicas,
      isrNodes: replicas,
    })),
  })),
}
export const fetchRequest = {
  maxWaitMs: 500,
  minBytes: 1,
  sessionEpoch: 0,
  topics: [
    {
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: 1_000_000 + partition,
        partitionMaxBytes: 1 << 20,
      })),
    },
  ],
}
export const fetchResponse = (records: Buffer | null) => ({
  sessionId: 77,
  responses: [
    {
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        highWatermark: 2_000_000,
        lastStableOffset: 2_000_000,
        logStartOffset: 5,
        records,
      })),
    },
  ],
})
export const batch = Buffer.alloc(1024, 3)
export const produceRequest = {
  acks: -1,
  timeoutMs: 30_000,
  topicData: [{ name: 'orders', partitionData: Array.from({ length: 10 }, (_, index) => ({ index, records: batch })) }],
}
export const produceResponse = {
  responses: [
    {
      name: 'orders',
      partitionResponses: Array.from({ length: 10 }, (_, index) => ({ index, baseOffset: 123_456, logStartOffset: 0 })),
    },
  ],
}
export const commitRequest = {
  groupId: 'billing',
  generationIdOrMemberEpoch: 9,
  memberId: 'consumer-billing-1-5e2c7f5e-5a3b-4d53-9e0a-b9d9a3f2c9a1',
  topics: [
    {
      name: 'orders',
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        committedOffset: 1_000_000 + partitionIndex,
        committedMetadata: '',
      })),
    },
  ],
}
export const commitResponse = {
  topics: [{ name: 'orders', partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({ partitionIndex })) }],
}

/** The topic by its name, or by its id from the version on that has ids. */
export function named(version: number, value: { topics: readonly object[] }): object {
  const topics = value.topics.map((topic) => ({
    ...topic,
    ...(version >= 13 ? { topicId: uuid } : { topic: 'orders' }),
  }))
  return { ...value, topics }
}

export function answered(version: number, records: Buffer | null): object {
  const value = fetchResponse(records)
  const responses = value.responses.map((one) => ({
    ...one,
    ...(version >= 13 ? { topicId: uuid } : { topic: 'orders' }),
  }))
  return { ...value, responses }
}
