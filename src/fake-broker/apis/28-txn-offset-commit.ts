/** TxnOffsetCommit: rows that take effect when the transaction commits; fenced only by what the request names. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { txnOffsetCommit } from '../../protocol/generated/28-txn-offset-commit.ts'
import type { TxnOffsetCommitRequest, TxnOffsetCommitResponse } from '../../protocol/generated/28-txn-offset-commit.ts'
import { api, type Call } from '../api.ts'
import { checkRow } from './08-offset-commit.ts'

/** From here on the broker adds the group to the transaction itself (KIP-890). */
const IMPLICIT_GROUP_VERSION = 5

export const txnOffsetCommitApi = api(txnOffsetCommit, (call) => {
  const { request, cluster, nowMs } = call
  const group = cluster.coordinators.getOrCreate(request.groupId, nowMs)
  const errorCode = check(call)
  const topics = request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => {
      const refused =
        errorCode || checkRow(cluster, cluster.topics.named(name)?.name, partitionIndex, committedMetadata, 0)
      if (refused === 0) {
        group.offsets.commitPending(request.producerId, {
          topic: name,
          partition: partitionIndex,
          offset: committedOffset,
          leaderEpoch: committedLeaderEpoch,
          metadata: committedMetadata ?? '',
          committedAtMs: nowMs,
        })
      }
      return { partitionIndex, errorCode: refused }
    }),
  }))
  return { topics }
})

function check({
  request,
  cluster,
  node,
  version,
  nowMs,
}: Call<TxnOffsetCommitRequest, TxnOffsetCommitResponse>): number {
  const { transactionalId, producerId, producerEpoch, groupId, memberId, groupInstanceId, generationId } = request
  const refused = cluster.coordinators.check(groupId, node.id, nowMs)
  if (refused !== 0) return refused
  const { transactions } = cluster
  const notOpen =
    version >= IMPLICIT_GROUP_VERSION
      ? transactions.addGroup(transactionalId, producerId, producerEpoch, groupId, nowMs)
      : transactions.verify(transactionalId, producerId, producerEpoch, { group: groupId })
  if (notOpen === errorCodes.PRODUCER_FENCED) return errorCodes.INVALID_PRODUCER_EPOCH
  if (notOpen === errorCodes.INVALID_TXN_STATE && version === 4) return errorCodes.TRANSACTION_ABORTABLE
  if (notOpen !== 0) return notOpen
  const group = cluster.coordinators.getOrCreate(groupId, nowMs)
  return version >= 3 ? group.checkTransactionalCommit(memberId, groupInstanceId, generationId) : 0
}
