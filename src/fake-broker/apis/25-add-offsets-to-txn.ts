/** AddOffsetsToTxn: the transaction will commit offsets of this group. */
import { addOffsetsToTxn } from '../../protocol/generated/25-add-offsets-to-txn.ts'
import { api } from '../api.ts'
import { forVersion } from './26-end-txn.ts'

export const addOffsetsToTxnApi = api(addOffsetsToTxn, ({ request, cluster, node, version, nowMs }) => {
  const { transactionalId, producerId, producerEpoch, groupId } = request
  const refused = cluster.coordinators.check(transactionalId, node.id, nowMs)
  if (refused !== 0) return { errorCode: refused }
  const errorCode = cluster.transactions.addGroup(transactionalId, producerId, producerEpoch, groupId, nowMs)
  return { errorCode: forVersion(errorCode, version, 2) }
})
