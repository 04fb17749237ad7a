/** Heartbeat: answered while the coordinator still loads, too. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { heartbeat } from '../../protocol/generated/12-heartbeat.ts'
import { api } from '../api.ts'

export const heartbeatApi = api(heartbeat, ({ request, cluster, node, nowMs }) => {
  const { groupId, memberId, groupInstanceId, generationId } = request
  const refused = cluster.coordinators.check(groupId, node.id, nowMs, true)
  if (refused !== 0) return { errorCode: refused }
  const group = cluster.coordinators.get(groupId)
  const answer = group?.heartbeat(memberId, groupInstanceId, generationId, nowMs)
  return { errorCode: answer ?? errorCodes.UNKNOWN_MEMBER_ID }
})
