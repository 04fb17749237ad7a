/** DescribeGroups: state and members, with subscription and assignment as their owners wrote them. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { describeGroups } from '../../protocol/generated/15-describe-groups.ts'
import { api } from '../api.ts'
import { metadataOf } from '../group-member.ts'

export const describeGroupsApi = api(describeGroups, ({ request, cluster, node, version, nowMs }) => ({
  groups: request.groups.map((groupId) => {
    const refused = cluster.coordinators.check(groupId, node.id, nowMs)
    const group = cluster.coordinators.get(groupId)
    const none = { groupId, groupState: 'Dead', protocolType: '', protocolData: '', members: [] }
    if (refused !== 0) return { ...none, errorCode: refused }
    if (group === undefined) return { ...none, errorCode: version >= 6 ? errorCodes.GROUP_ID_NOT_FOUND : 0 }
    const { state, protocolType, protocolName } = group
    const members = Array.from(group.members.values(), (member) => ({
      memberId: member.id,
      groupInstanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      memberMetadata: metadataOf(member, protocolName),
      memberAssignment: member.assignment,
    }))
    const protocolData = state === 'Stable' ? (protocolName ?? '') : ''
    return { groupId, errorCode: 0, groupState: state, protocolType, protocolData, members }
  }),
}))
