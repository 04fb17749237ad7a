/** DeleteGroups: only empty ones, with all their offsets. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { deleteGroups } from '../../protocol/generated/42-delete-groups.ts'
import { api } from '../api.ts'

export const deleteGroupsApi = api(deleteGroups, ({ request, cluster, node, nowMs }) => ({
  results: request.groupsNames.map((groupId) => {
    const refused = cluster.coordinators.check(groupId, node.id, nowMs)
    const group = cluster.coordinators.get(groupId)
    if (refused !== 0) return { groupId, errorCode: refused }
    if (group === undefined) return { groupId, errorCode: errorCodes.GROUP_ID_NOT_FOUND }
    if (group.state !== 'Empty') return { groupId, errorCode: errorCodes.NON_EMPTY_GROUP }
    cluster.coordinators.delete(groupId)
    return { groupId, errorCode: 0 }
  }),
}))
