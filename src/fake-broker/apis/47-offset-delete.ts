/** OffsetDelete: rows of topics that no member subscribes to; a transaction's pending row goes too. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { offsetDelete } from '../../protocol/generated/47-offset-delete.ts'
import { api } from '../api.ts'

export const offsetDeleteApi = api(offsetDelete, ({ request, cluster, node, nowMs }) => {
  const refused = cluster.coordinators.check(request.groupId, node.id, nowMs)
  const group = cluster.coordinators.get(request.groupId)
  if (refused !== 0) return { errorCode: refused }
  if (group === undefined) return { errorCode: errorCodes.GROUP_ID_NOT_FOUND }
  if (group.members.size > 0 && group.protocolType !== 'consumer') return { errorCode: errorCodes.NON_EMPTY_GROUP }
  const subscribed = group.subscribed()
  const topics = request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex }) => {
      if (subscribed?.has(name) ?? true) return { partitionIndex, errorCode: errorCodes.GROUP_SUBSCRIBED_TO_TOPIC }
      group.offsets.delete(name, partitionIndex)
      return { partitionIndex, errorCode: 0 }
    }),
  }))
  return { errorCode: 0, topics }
})
