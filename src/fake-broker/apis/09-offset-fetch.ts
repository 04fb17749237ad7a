/** OffsetFetch: one group or several, named rows or all; 88 for rows with an open transaction when they must be stable. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { offsetFetch } from '../../protocol/generated/09-offset-fetch.ts'
import type { OffsetFetchRequest, OffsetFetchResponse } from '../../protocol/generated/09-offset-fetch.ts'
import { zeroUuid } from '../../protocol/uuid.ts'
import { api, type Call } from '../api.ts'

interface Row {
  partitionIndex: number
  committedOffset: number
  committedLeaderEpoch: number
  metadata: string
  errorCode: number
}

interface Asked {
  groupId: string
  topics: { name: string; topicId?: string; partitionIndexes: number[] }[] | null
}

type OffsetFetchCall = Call<OffsetFetchRequest, OffsetFetchResponse>

export const offsetFetchApi = api(
  offsetFetch,
  (call) => {
    const { request, version } = call
    if (version >= 8) return { groups: request.groups.map((group) => answerGroup(call, group)) }
    const { topics, errorCode } = answerGroup(call, { groupId: request.groupId, topics: request.topics })
    if (version >= 2) return { topics, errorCode }
    const partitions = (rows: Row[]): Row[] => rows.map((row) => ({ ...row, errorCode: row.errorCode || errorCode }))
    return { topics: topics.map((topic) => ({ ...topic, partitions: partitions(topic.partitions) })) }
  },
  { min: 1 },
)

function answerGroup(call: OffsetFetchCall, asked: Asked) {
  const { cluster, node, nowMs } = call
  const errorCode = cluster.coordinators.check(asked.groupId, node.id, nowMs)
  const wanted = errorCode === 0 ? resolve(call, asked) : []
  return {
    groupId: asked.groupId,
    errorCode,
    topics: wanted.map(({ name, topicId, partitionIndexes, known }) => ({
      name,
      topicId,
      partitions: partitionIndexes.map((index) => answerRow(call, asked.groupId, known ? name : undefined, index)),
    })),
  }
}

interface Wanted {
  name: string
  topicId: string
  partitionIndexes: number[]
  known: boolean
}

/** Names and ids of what is asked for; with null topics, of every committed row (a row that is only pending is none). */
function resolve(call: OffsetFetchCall, asked: Asked): Wanted[] {
  const { cluster, version, nowMs } = call
  const group = cluster.coordinators.get(asked.groupId)
  if (group !== undefined) {
    const subscribed = group.subscribed()
    const { offsetsRetentionMs } = cluster.options
    if (subscribed !== undefined && group.state !== 'PreparingRebalance') {
      group.offsets.expire(nowMs, offsetsRetentionMs, group.emptySinceMs, subscribed)
    }
  }
  if (asked.topics !== null) {
    return asked.topics.map(({ name, topicId = zeroUuid, partitionIndexes }) => {
      const topic = version >= 10 ? cluster.topics.withId(topicId) : cluster.topics.named(name)
      return { name: topic?.name ?? name, topicId, partitionIndexes, known: topic !== undefined || version < 10 }
    })
  }
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of group?.offsets.all() ?? []) {
    byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition])
  }
  return Array.from(byTopic, ([name, partitionIndexes]) => {
    return { name, topicId: cluster.topics.named(name)?.id ?? zeroUuid, partitionIndexes, known: true }
  })
}

function answerRow(call: OffsetFetchCall, groupId: string, topic: string | undefined, partition: number): Row {
  const none = { partitionIndex: partition, committedOffset: -1, committedLeaderEpoch: -1, metadata: '', errorCode: 0 }
  if (topic === undefined) return { ...none, errorCode: errorCodes.UNKNOWN_TOPIC_ID }
  const offsets = call.cluster.coordinators.get(groupId)?.offsets
  if (call.request.requireStable && offsets?.isPending(topic, partition) === true) {
    return { ...none, errorCode: errorCodes.UNSTABLE_OFFSET_COMMIT }
  }
  const row = offsets?.get(topic, partition)
  if (row === undefined) return none
  const { offset, leaderEpoch, metadata } = row
  return { ...none, committedOffset: offset, committedLeaderEpoch: leaderEpoch, metadata }
}
