/** AddPartitionsToTxn, in the versions that clients use. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { addPartitionsToTxn } from '../../protocol/generated/24-add-partitions-to-txn.ts'
import { api } from '../api.ts'
import { forVersion } from './26-end-txn.ts'

export const addPartitionsToTxnApi = api(
  addPartitionsToTxn,
  ({ request, cluster, node, version, nowMs }) => {
    const { v3AndBelowTransactionalId: id, v3AndBelowProducerId: producerId, v3AndBelowTopics: topics } = request
    const places = topics.flatMap(({ name, partitions }) => partitions.map((partition) => ({ topic: name, partition })))
    const unknown = places.some((place) => cluster.topics.partition(place.topic, place.partition) === undefined)
    let errorCode = cluster.coordinators.check(id, node.id, nowMs)
    if (errorCode === 0 && unknown) errorCode = errorCodes.UNKNOWN_TOPIC_OR_PARTITION
    else if (errorCode === 0) {
      const epoch = request.v3AndBelowProducerEpoch
      errorCode = forVersion(cluster.transactions.addPartitions(id, producerId, epoch, places, nowMs), version, 2)
    }
    return {
      resultsByTopicV3AndBelow: topics.map(({ name, partitions }) => ({
        name,
        resultsByPartition: partitions.map((partitionIndex) => ({ partitionIndex, partitionErrorCode: errorCode })),
      })),
    }
  },
  { max: 3 },
)
