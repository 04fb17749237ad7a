/** OffsetForLeaderEpoch: where an epoch ended, by which a consumer finds out that the log was truncated. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { offsetForLeaderEpoch } from '../../protocol/generated/23-offset-for-leader-epoch.ts'
import { api } from '../api.ts'
import { checkLeader } from './01-fetch.ts'

export const offsetForLeaderEpochApi = api(
  offsetForLeaderEpoch,
  ({ request, cluster, node }) => ({
    topics: request.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition: index, currentLeaderEpoch, leaderEpoch }) => {
        const partition = cluster.topics.partition(topic, index)
        if (partition === undefined) return { partition: index, errorCode: errorCodes.UNKNOWN_TOPIC_OR_PARTITION }
        const errorCode = checkLeader(node.id, partition, currentLeaderEpoch)
        if (errorCode !== 0) return { partition: index, errorCode }
        const { epoch, endOffset } = partition.log.endOfEpoch(leaderEpoch)
        return { partition: index, errorCode: 0, leaderEpoch: epoch, endOffset }
      }),
    })),
  }),
  { min: 2 },
)
