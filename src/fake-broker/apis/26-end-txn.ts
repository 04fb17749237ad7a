/** EndTxn: writes the markers and applies the offsets before it answers; since version 5 the epoch rises (KIP-890). */
import { errorCodes } from '../../protocol/error-codes.ts'
import { endTxn } from '../../protocol/generated/26-end-txn.ts'
import { api } from '../api.ts'

export const endTxnApi = api(endTxn, ({ request, cluster, node, version, nowMs }) => {
  const { transactionalId, producerId, producerEpoch, committed } = request
  const refused = cluster.coordinators.check(transactionalId, node.id, nowMs)
  if (refused !== 0) return { errorCode: refused }
  const end = cluster.transactions.end(transactionalId, producerId, producerEpoch, committed, version >= 5)
  if (end.ended !== undefined) cluster.finish(end.ended)
  return { ...end.identity, errorCode: forVersion(end.identity.errorCode, version, 2) }
})

/** PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to clients that came before it (KIP-588). */
export function forVersion(errorCode: number, version: number, knownFrom: number): number {
  const fenced = errorCode === errorCodes.PRODUCER_FENCED && version < knownFrom
  return fenced ? errorCodes.INVALID_PRODUCER_EPOCH : errorCode
}
