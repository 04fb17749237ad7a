/** DeleteTopics: by name or id; committed offsets of a deleted topic go with it. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { deleteTopics } from '../../protocol/generated/20-delete-topics.ts'
import { zeroUuid } from '../../protocol/uuid.ts'
import { api } from '../api.ts'

export const deleteTopicsApi = api(
  deleteTopics,
  ({ request, cluster, node, version }) => {
    const asked = version >= 6 ? request.topics : request.topicNames.map((name) => ({ name, topicId: zeroUuid }))
    const responses = asked.map(({ name, topicId }) => {
      const byName = name !== null
      const topic = byName ? cluster.topics.named(name) : cluster.topics.withId(topicId)
      if (node.id !== cluster.controllerId) return { name, topicId, errorCode: errorCodes.NOT_CONTROLLER }
      const missing = byName ? errorCodes.UNKNOWN_TOPIC_OR_PARTITION : errorCodes.UNKNOWN_TOPIC_ID
      if (topic === undefined) return { name, topicId, errorCode: missing }
      cluster.topics.delete(topic)
      for (const { offsets } of cluster.coordinators.groups) {
        for (const row of offsets.all()) if (row.topic === topic.name) offsets.delete(row.topic, row.partition)
      }
      return { name: topic.name, topicId: topic.id, errorCode: 0 }
    })
    cluster.wake()
    return { responses }
  },
  { min: 1 },
)
