/** InitProducerId: a new producer, or a transactional one that fences its former holder and ends what it left open. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { initProducerId } from '../../protocol/generated/22-init-producer-id.ts'
import { api } from '../api.ts'

export const initProducerIdApi = api(initProducerId, ({ request, cluster, node, version, nowMs }) => {
  const { transactionalId, transactionTimeoutMs: timeoutMs, producerId, producerEpoch } = request
  const refused = transactionalId === null ? 0 : cluster.coordinators.check(transactionalId, node.id, nowMs)
  if (refused !== 0) return { errorCode: refused, producerId: -1, producerEpoch: -1 }
  const { identity, ended } = cluster.transactions.init(
    { transactionalId, timeoutMs, producerId, producerEpoch },
    nowMs,
  )
  if (ended !== undefined) cluster.finish(ended)
  const fenced = identity.errorCode === errorCodes.PRODUCER_FENCED && version < 4
  return fenced ? { ...identity, errorCode: errorCodes.INVALID_PRODUCER_EPOCH } : identity
})
