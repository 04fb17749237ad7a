/** CreatePartitions: only ever upwards. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { createPartitions } from '../../protocol/generated/37-create-partitions.ts'
import { api } from '../api.ts'

export const createPartitionsApi = api(createPartitions, ({ request, cluster, node }) => ({
  results: request.topics.map(({ name, count }) => {
    const topic = cluster.topics.named(name)
    if (node.id !== cluster.controllerId) return { name, errorCode: errorCodes.NOT_CONTROLLER }
    if (topic === undefined) return { name, errorCode: errorCodes.UNKNOWN_TOPIC_OR_PARTITION }
    if (count <= topic.partitions.length) return { name, errorCode: errorCodes.INVALID_PARTITIONS }
    if (!request.validateOnly) cluster.topics.grow(topic, count, cluster.upNodeIds())
    return { name, errorCode: 0 }
  }),
}))
