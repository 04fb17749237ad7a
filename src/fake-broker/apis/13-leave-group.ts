/** LeaveGroup: one member, or several with an answer each. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { leaveGroup } from '../../protocol/generated/13-leave-group.ts'
import { api } from '../api.ts'

export const leaveGroupApi = api(leaveGroup, ({ request, cluster, node, version, nowMs }) => {
  const refused = cluster.coordinators.check(request.groupId, node.id, nowMs)
  if (refused !== 0) return { errorCode: refused, members: [] }
  const group = cluster.coordinators.get(request.groupId)
  const leave = (memberId: string, instanceId: string | null): number =>
    group?.leave(memberId, instanceId, nowMs) ?? errorCodes.UNKNOWN_MEMBER_ID
  if (version < 3) return { errorCode: leave(request.memberId, null) }
  const members = request.members.map(({ memberId, groupInstanceId }) => {
    return { memberId, groupInstanceId, errorCode: leave(memberId, groupInstanceId) }
  })
  return { errorCode: 0, members }
})
