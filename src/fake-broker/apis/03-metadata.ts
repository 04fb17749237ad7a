/** Metadata: brokers that are up, topics by name or id, created when missing if the request and the cluster allow it. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { metadata } from '../../protocol/generated/03-metadata.ts'
import type {
  MetadataRequest,
  MetadataRequestTopic,
  MetadataResponseTopic,
} from '../../protocol/generated/03-metadata.ts'
import { zeroUuid } from '../../protocol/uuid.ts'
import { api } from '../api.ts'
import type { Cluster } from '../cluster.ts'
import type { Topic } from '../topics.ts'

/** READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE and the two of configuration: nobody is refused anything. */
const ALL_OPERATIONS = 0b110111111000

export const metadataApi = api(metadata, ({ request, cluster, version }) => {
  const up = cluster.nodes.filter((node) => node.up)
  const all = request.topics === null || (version === 0 && request.topics.length === 0)
  const topics = all
    ? cluster.topics.all.map((topic) => describe(cluster, topic))
    : (request.topics ?? []).map((asked) => describeAsked(cluster, asked, version, request))
  const operations = request.includeTopicAuthorizedOperations ? { topicAuthorizedOperations: ALL_OPERATIONS } : {}
  return {
    brokers: up.map(({ id, host, port }) => ({ nodeId: id, host, port, rack: null })),
    clusterId: cluster.options.clusterId,
    controllerId: cluster.controllerId,
    topics: topics.map((topic) => ({ ...topic, ...operations })),
  }
})

/** The field of a topic that is left out unless it was asked for. */
const blank = { topicAuthorizedOperations: -2147483648 }

type Described = MetadataResponseTopic

function describeAsked(
  cluster: Cluster,
  asked: MetadataRequestTopic,
  version: number,
  request: MetadataRequest,
): Described {
  const byId = version >= 10 && asked.topicId !== zeroUuid
  let topic = byId ? cluster.topics.withId(asked.topicId) : cluster.topics.named(asked.name ?? '')
  const { autoCreatePartitions } = cluster.options
  const creates = !byId && (version < 4 || request.allowAutoTopicCreation) && autoCreatePartitions > 0
  if (topic === undefined && creates && asked.name !== null)
    topic = cluster.createTopic(asked.name, autoCreatePartitions)
  if (topic !== undefined) return describe(cluster, topic)
  const errorCode = byId ? errorCodes.UNKNOWN_TOPIC_ID : errorCodes.UNKNOWN_TOPIC_OR_PARTITION
  return { ...blank, errorCode, name: asked.name, topicId: asked.topicId, isInternal: false, partitions: [] }
}

function describe(cluster: Cluster, topic: Topic): Described {
  const up = cluster.upNodeIds()
  const nodes = cluster.nodes.map((node) => node.id)
  const partitions = topic.partitions.map(({ index, leader, log }) => ({
    errorCode: leader < 0 ? errorCodes.LEADER_NOT_AVAILABLE : 0,
    partitionIndex: index,
    leaderId: leader,
    leaderEpoch: log.epoch,
    replicaNodes: nodes,
    isrNodes: up,
    offlineReplicas: nodes.filter((id) => !up.includes(id)),
  }))
  return {
    ...blank,
    errorCode: 0,
    name: topic.name,
    topicId: topic.id,
    isInternal: topic.name.startsWith('__'),
    partitions,
  }
}
