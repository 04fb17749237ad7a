/** FindCoordinator: of groups and transactional ids, one or several. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { findCoordinator } from '../../protocol/generated/10-find-coordinator.ts'
import { api } from '../api.ts'

export const findCoordinatorApi = api(findCoordinator, ({ request, cluster, version }) => {
  const find = (key: string) => {
    const nodeId = cluster.coordinators.nodeOf(key)
    const node = cluster.nodes.find((n) => n.id === nodeId)
    const unknown = { nodeId: -1, host: '', port: -1, errorMessage: null }
    if (request.keyType > 1) return { ...unknown, errorCode: errorCodes.INVALID_REQUEST }
    if (node === undefined) return { ...unknown, errorCode: errorCodes.COORDINATOR_NOT_AVAILABLE }
    return { nodeId, host: node.host, port: node.port, errorMessage: null, errorCode: 0 }
  }
  if (version < 4) return find(request.key)
  return { coordinators: request.coordinatorKeys.map((key) => ({ key, ...find(key) })) }
})
