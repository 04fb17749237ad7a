/** ListOffsets: earliest (−2), latest (−1: the last stable offset for read_committed), the largest timestamp (−3), times. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { listOffsets } from '../../protocol/generated/02-list-offsets.ts'
import { api } from '../api.ts'
import type { Partition } from '../topics.ts'
import { checkLeader } from './01-fetch.ts'

const LATEST = -1
const EARLIEST = -2
const MAX_TIMESTAMP = -3

export const listOffsetsApi = api(
  listOffsets,
  ({ request, cluster, node, version }) => ({
    topics: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex, timestamp, currentLeaderEpoch }) => {
        const partition = cluster.topics.partition(name, partitionIndex)
        if (partition === undefined) return { partitionIndex, errorCode: errorCodes.UNKNOWN_TOPIC_OR_PARTITION }
        const errorCode = checkLeader(node.id, partition, currentLeaderEpoch)
        if (errorCode !== 0) return { partitionIndex, errorCode }
        const found = find(partition, timestamp, request.isolationLevel === 1)
        return {
          partitionIndex,
          errorCode: 0,
          ...found,
          leaderEpoch: version >= 4 && found.offset >= 0 ? partition.log.epoch : -1,
        }
      }),
    })),
  }),
  { min: 1 },
)

function find({ log }: Partition, timestamp: number, committed: boolean): { offset: number; timestamp: number } {
  if (timestamp === EARLIEST) return { offset: log.start, timestamp: -1 }
  if (timestamp === LATEST) return { offset: committed ? log.lastStable : log.highWatermark, timestamp: -1 }
  const latest = Math.max(-1, ...log.batches.map((batch) => batch.maxTimestamp))
  const wanted = timestamp === MAX_TIMESTAMP ? latest : timestamp
  return log.offsetForTime(wanted) ?? { offset: -1, timestamp: -1 }
}
