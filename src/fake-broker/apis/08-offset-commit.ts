/** OffsetCommit: member and generation decide for the whole request, each row for itself. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { offsetCommit } from '../../protocol/generated/08-offset-commit.ts'
import { api } from '../api.ts'
import type { Cluster } from '../cluster.ts'
import type { Group } from '../group.ts'

/** In UTF-16 units. */
const MAX_METADATA = 4096

export const offsetCommitApi = api(
  offsetCommit,
  (call) => {
    const { request, cluster, node, version, nowMs } = call
    const { groupId, memberId, groupInstanceId, generationIdOrMemberEpoch: generation } = request
    let group: Group | undefined = cluster.coordinators.get(groupId)
    let errorCode = cluster.coordinators.check(groupId, node.id, nowMs)
    if (errorCode === 0 && group === undefined) {
      if (generation < 0) group = cluster.coordinators.getOrCreate(groupId, nowMs)
      else errorCode = version >= 9 ? errorCodes.GROUP_ID_NOT_FOUND : errorCodes.ILLEGAL_GENERATION
    }
    if (errorCode === 0) errorCode = group?.checkCommit(memberId, groupInstanceId, generation, nowMs) ?? 0
    const topics = request.topics.map(({ name, topicId, partitions }) => {
      const topic = version >= 10 ? cluster.topics.withId(topicId) : cluster.topics.named(name)
      const rows = partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => {
        const refused =
          errorCode !== 0 ? errorCode : checkRow(cluster, topic?.name, partitionIndex, committedMetadata, version)
        if (refused === 0) {
          group?.offsets.commit({
            topic: topic?.name ?? name,
            partition: partitionIndex,
            offset: committedOffset,
            leaderEpoch: committedLeaderEpoch,
            metadata: committedMetadata ?? '',
            committedAtMs: nowMs,
          })
        }
        return { partitionIndex, errorCode: refused }
      })
      return { name, topicId, partitions: rows }
    })
    return { topics }
  },
  { min: 2 },
)

/** 12, 3 or 100 where this one row cannot be written. */
export function checkRow(
  cluster: Cluster,
  topic: string | undefined,
  partition: number,
  metadata: string | null,
  version: number,
): number {
  if (topic === undefined && version >= 10) return errorCodes.UNKNOWN_TOPIC_ID
  if (topic === undefined || cluster.topics.partition(topic, partition) === undefined) {
    return errorCodes.UNKNOWN_TOPIC_OR_PARTITION
  }
  return (metadata?.length ?? 0) > MAX_METADATA ? errorCodes.OFFSET_METADATA_TOO_LARGE : 0
}
