/** CreateTopics: by count; −1 stands for the defaults. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { createTopics } from '../../protocol/generated/19-create-topics.ts'
import type { CreateTopicsRequestTopic } from '../../protocol/generated/19-create-topics.ts'
import { api } from '../api.ts'
import type { Cluster } from '../cluster.ts'

export const createTopicsApi = api(
  createTopics,
  ({ request, cluster, node }) => ({
    topics: request.topics.map((asked) => {
      const errorCode = node.id === cluster.controllerId ? check(cluster, asked) : errorCodes.NOT_CONTROLLER
      const count = asked.assignments.length || (asked.numPartitions < 0 ? 1 : asked.numPartitions)
      if (errorCode !== 0) return { name: asked.name, errorCode, errorMessage: null }
      const shape = { name: asked.name, errorCode: 0, numPartitions: count, replicationFactor: 1, configs: [] }
      if (request.validateOnly) return shape
      const topic = cluster.createTopic(asked.name, count)
      for (const { name, value } of asked.configs) topic.configs.set(name, value ?? '')
      return { ...shape, topicId: topic.id }
    }),
  }),
  { min: 2 },
)

function check(
  cluster: Cluster,
  { name, numPartitions, replicationFactor, assignments }: CreateTopicsRequestTopic,
): number {
  if (!/^[A-Za-z0-9._-]{1,249}$/.test(name)) return errorCodes.INVALID_TOPIC_EXCEPTION
  if (cluster.topics.named(name) !== undefined) return errorCodes.TOPIC_ALREADY_EXISTS
  if (assignments.length === 0 && (numPartitions === 0 || numPartitions < -1)) return errorCodes.INVALID_PARTITIONS
  return replicationFactor > cluster.nodes.length ? errorCodes.INVALID_REPLICATION_FACTOR : 0
}
