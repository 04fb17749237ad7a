/** SyncGroup: answered when the leader has handed in the plan. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { syncGroup } from '../../protocol/generated/14-sync-group.ts'
import { api } from '../api.ts'
import { noBytes } from '../group-member.ts'

export const syncGroupApi = api(syncGroup, (call) => {
  const { request, cluster, node, version, nowMs } = call
  const refused = cluster.coordinators.check(request.groupId, node.id, nowMs)
  const group = cluster.coordinators.get(request.groupId)
  if (refused !== 0 || group === undefined) {
    return { errorCode: refused || errorCodes.UNKNOWN_MEMBER_ID, assignment: noBytes }
  }
  group.sync(
    {
      memberId: request.memberId,
      instanceId: request.groupInstanceId,
      generation: request.generationId,
      protocolName: version >= 5 ? request.protocolName : null,
      assignments: request.assignments.map((a) => ({ memberId: a.memberId, assignment: Buffer.from(a.assignment) })),
    },
    nowMs,
    ({ errorCode, assignment }) => {
      const { protocolType, protocolName } = group
      call.reply({ errorCode, assignment, ...(errorCode === 0 ? { protocolType, protocolName } : {}) })
    },
  )
  return undefined
})
