/** The same messages as the rivals' request functions take them. */
import { commitRequest, fetchRequest } from './messages.ts'

export const jsFetchRequest = {
  replicaId: -1,
  maxWaitTime: 500,
  minBytes: 1,
  maxBytes: 1 << 30,
  topics: [
    {
      topic: 'orders',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: 1_000_000 + partition,
        maxBytes: 1 << 20,
      })),
    },
  ],
}
export const tsFetchRequest = {
  ...fetchRequest,
  maxBytes: 1 << 30,
  isolationLevel: 0,
  sessionId: 0,
  rackId: '',
  forgottenTopicsData: [],
  topics: [
    {
      topicId: '000102030405060708090a0b0c0d0e0f',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: BigInt(1_000_000 + partition),
        lastFetchedEpoch: -1,
        logStartOffset: -1n,
        partitionMaxBytes: 1 << 20,
      })),
    },
  ],
}
export const jsCommit = {
  groupId: commitRequest.groupId,
  groupGenerationId: 9,
  memberId: commitRequest.memberId,
  topics: [
    {
      topic: 'orders',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        offset: String(1_000_000 + partition),
        metadata: '',
      })),
    },
  ],
}
export const tsCommit = {
  ...commitRequest,
  groupInstanceId: null,
  topics: [
    {
      name: 'orders',
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        committedOffset: BigInt(1_000_000 + partitionIndex),
        committedLeaderEpoch: -1,
        committedMetadata: '',
      })),
    },
  ],
}
