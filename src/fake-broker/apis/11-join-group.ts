/** JoinGroup: answered when the group is complete. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { joinGroup } from '../../protocol/generated/11-join-group.ts'
import type { JoinGroupRequest, JoinGroupResponse } from '../../protocol/generated/11-join-group.ts'
import { api, type Call } from '../api.ts'
import { joinError } from '../group-member.ts'

export const joinGroupApi = api(joinGroup, (call) => {
  const { request, cluster, node, version, nowMs } = call
  const { groupId, memberId, sessionTimeoutMs } = request
  const refused = cluster.coordinators.check(groupId, node.id, nowMs) || checkJoin(call)
  const noProtocol = version >= 7 ? null : ''
  if (refused !== 0) return { ...joinError(refused, memberId), protocolName: noProtocol, members: [] }
  const group = cluster.coordinators.getOrCreate(groupId, nowMs)
  group.join(
    {
      memberId,
      instanceId: request.groupInstanceId,
      protocolType: request.protocolType,
      protocols: request.protocols.map(({ name, metadata }) => ({ name, metadata: Buffer.from(metadata) })),
      sessionTimeoutMs,
      rebalanceTimeoutMs: version >= 1 ? request.rebalanceTimeoutMs : sessionTimeoutMs,
      clientId: call.clientId,
      clientHost: call.clientHost,
      requireKnownMember: version >= 4,
      canSkipAssignment: version >= 9,
    },
    nowMs,
    (reply) =>
      call.reply({
        errorCode: reply.errorCode,
        generationId: reply.generation,
        protocolType: reply.errorCode === 0 ? group.protocolType : null,
        protocolName: reply.protocolName ?? noProtocol,
        leader: reply.leader,
        skipAssignment: reply.skipAssignment,
        memberId: reply.memberId,
        members: reply.members.map((m) => ({ ...m, groupInstanceId: m.instanceId })),
      }),
  )
  return undefined
})

function checkJoin({ request, cluster }: Call<JoinGroupRequest, JoinGroupResponse>): number {
  if (request.groupId === '') return errorCodes.INVALID_GROUP_ID
  const shortest = Math.max(1, cluster.options.minSessionTimeoutMs)
  return request.sessionTimeoutMs < shortest ? errorCodes.INVALID_SESSION_TIMEOUT : 0
}
