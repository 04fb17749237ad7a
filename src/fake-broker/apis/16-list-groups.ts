/** ListGroups: the groups that this node coordinates. */
import { listGroups } from '../../protocol/generated/16-list-groups.ts'
import { api } from '../api.ts'

export const listGroupsApi = api(listGroups, ({ request, cluster, node }) => {
  const groups = cluster.coordinators.groups
    .filter((group) => cluster.coordinators.nodeOf(group.id) === node.id)
    .filter(({ state }) => request.statesFilter.length === 0 || request.statesFilter.includes(state))
    .map(({ id, protocolType, state }) => ({ groupId: id, protocolType, groupState: state, groupType: 'classic' }))
  return { errorCode: 0, groups }
})
