/** DeleteRecords: moves the log start; −1 stands for the high watermark. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { deleteRecords } from '../../protocol/generated/21-delete-records.ts'
import { api } from '../api.ts'

export const deleteRecordsApi = api(deleteRecords, ({ request, cluster, node }) => ({
  topics: request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex, offset }) => {
      const partition = cluster.topics.partition(name, partitionIndex)
      const refused = (errorCode: number) => ({ partitionIndex, lowWatermark: -1, errorCode })
      if (partition === undefined) return refused(errorCodes.UNKNOWN_TOPIC_OR_PARTITION)
      if (partition.leader !== node.id) return refused(errorCodes.NOT_LEADER_OR_FOLLOWER)
      const { log } = partition
      if (offset > log.highWatermark) return refused(errorCodes.OFFSET_OUT_OF_RANGE)
      log.trim(offset < 0 ? log.highWatermark : offset)
      return { partitionIndex, lowWatermark: log.start, errorCode: 0 }
    }),
  })),
}))
