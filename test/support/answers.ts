/** Random answers that brokers could give, for every version; drafts for the generated codecs. */
import type { Draft } from '../../src/protocol/codec.ts'
import type { ProduceResponse } from '../../src/protocol/generated/00-produce.ts'
import type { FetchResponse } from '../../src/protocol/generated/01-fetch.ts'
import type { MetadataResponse } from '../../src/protocol/generated/03-metadata.ts'
import type { FindCoordinatorResponse } from '../../src/protocol/generated/10-find-coordinator.ts'
import type { DescribeQuorumResponse } from '../../src/protocol/generated/55-describe-quorum.ts'
import type { DescribeClusterResponse } from '../../src/protocol/generated/60-describe-cluster.ts'
import type { ShareFetchResponse } from '../../src/protocol/generated/78-share-fetch.ts'
import type { ShareAcknowledgeResponse } from '../../src/protocol/generated/79-share-acknowledge.ts'
import type { UnknownTag } from '../../src/protocol/reader.ts'
import type { Prng } from './prng.ts'

export interface AnswerShape {
  /** Node ids to choose from. */
  nodes: readonly number[]
  /** Unknown tagged fields may occur (flexible versions only). */
  tags: boolean
  /** Longest `records`, in bytes. */
  recordBytes: number
  endpoints: boolean
}

function many<T>(prng: Prng, most: number, make: (i: number) => T): T[] {
  return Array.from({ length: prng.below(most + 1) }, (_, i) => make(i))
}

function text(prng: Prng, most = 12): string {
  return 'abcdefghijklmnopqrstuvwxyz-éß'.slice(prng.below(10), 10 + prng.below(19)).slice(0, 1 + prng.below(most))
}

function maybeText(prng: Prng): string | null {
  return prng.below(3) === 0 ? null : prng.below(4) === 0 ? '' : text(prng, 30)
}

function errorCode(prng: Prng): number {
  return prng.below(3) === 0 ? prng.between(-1, 120) : 0
}

function uuid(prng: Prng): string {
  return prng.bytes(16).toString('base64url')
}

function tags(prng: Prng, shape: AnswerShape): { unknownTags?: UnknownTag[] } {
  if (!shape.tags || prng.below(3) > 0) return {}
  const wide = prng.below(4) === 0
  return { unknownTags: [{ tag: wide ? 5000 : 90, data: prng.bytes(prng.below(wide ? 300 : 10)) }] }
}

function endpoints(prng: Prng, shape: AnswerShape) {
  if (!shape.endpoints) return []
  return shape.nodes
    .filter(() => prng.below(2) === 0)
    .map((nodeId) => ({ nodeId, host: `broker-${nodeId}.internal`, port: 19092 + nodeId, rack: maybeText(prng) }))
}

export function fetchAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<FetchResponse> {
  return {
    throttleTimeMs: prng.below(5000),
    errorCode: version >= 7 ? errorCode(prng) : 0,
    sessionId: version >= 7 ? prng.below(2 ** 31) : 0,
    responses: many(prng, 4, () => ({
      ...(version >= 13 ? { topicId: uuid(prng) } : { topic: text(prng) }),
      partitions: many(prng, 6, (partitionIndex) => ({
        partitionIndex,
        errorCode: errorCode(prng),
        highWatermark: prng.below(2 ** 40),
        ...(version >= 4 ? { abortedTransactions: aborted(prng, shape) } : {}),
        ...(version >= 12 && prng.below(4) === 0 ? { currentLeader: { leaderId: 3, leaderEpoch: 70_000 } } : {}),
        ...(version >= 12 && prng.below(5) === 0 ? { divergingEpoch: { epoch: 3, endOffset: 2 ** 41 } } : {}),
        records: prng.below(5) === 0 ? null : prng.bytes(prng.below(shape.recordBytes + 1)),
        ...tags(prng, shape),
      })),
      ...tags(prng, shape),
    })),
    nodeEndpoints: endpoints(prng, shape),
    ...tags(prng, shape),
  }
}

function aborted(prng: Prng, shape: AnswerShape) {
  if (prng.below(3) === 0) return null
  return many(prng, 3, () => ({ producerId: prng.below(99), firstOffset: prng.below(2 ** 40), ...tags(prng, shape) }))
}

export function produceAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<ProduceResponse> {
  return {
    responses: many(prng, 4, () => ({
      ...(version >= 13 ? { topicId: uuid(prng) } : { name: text(prng) }),
      partitionResponses: many(prng, 6, (index) => ({
        index,
        errorCode: errorCode(prng),
        baseOffset: prng.below(2 ** 40),
        ...(version >= 8
          ? {
              recordErrors: many(prng, 3, (batchIndex) => ({
                batchIndex,
                batchIndexErrorMessage: maybeText(prng),
                ...tags(prng, shape),
              })),
              errorMessage: maybeText(prng),
            }
          : {}),
        ...(version >= 10 && prng.below(3) === 0 ? { currentLeader: { leaderId: 2, leaderEpoch: 9 } } : {}),
        ...tags(prng, shape),
      })),
      ...tags(prng, shape),
    })),
    throttleTimeMs: version >= 1 ? prng.below(5000) : 0,
    nodeEndpoints: endpoints(prng, shape),
    ...tags(prng, shape),
  }
}

export function metadataAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<MetadataResponse> {
  const replicas = () => many(prng, 3, () => shape.nodes[prng.below(shape.nodes.length)] ?? 0)
  return {
    throttleTimeMs: prng.below(100),
    brokers: shape.nodes.map((nodeId) => ({
      nodeId,
      host: `broker-${nodeId}.internal`,
      port: 19092 + nodeId,
      rack: version >= 1 ? maybeText(prng) : null,
      ...tags(prng, shape),
    })),
    clusterId: version >= 2 ? maybeText(prng) : null,
    controllerId: version >= 1 ? prng.below(5) : -1,
    topics: many(prng, 5, () => ({
      errorCode: errorCode(prng),
      name: version >= 12 && prng.below(4) === 0 ? null : text(prng),
      ...(version >= 10 ? { topicId: uuid(prng) } : {}),
      isInternal: version >= 1 && prng.below(2) === 0,
      partitions: many(prng, 5, (partitionIndex) => ({
        errorCode: errorCode(prng),
        partitionIndex,
        leaderId: prng.below(5),
        replicaNodes: replicas(),
        isrNodes: replicas(),
        ...(version >= 5 ? { offlineReplicas: replicas() } : {}),
        ...tags(prng, shape),
      })),
      ...tags(prng, shape),
    })),
    errorCode: version >= 13 ? errorCode(prng) : 0,
    ...tags(prng, shape),
  }
}

export function coordinatorAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<FindCoordinatorResponse> {
  const found = () => {
    const nodeId = shape.nodes[prng.below(shape.nodes.length)] ?? 0
    return prng.below(4) === 0
      ? { nodeId: -1, host: '', port: -1, errorCode: 15 }
      : { nodeId, host: `broker-${nodeId}.internal`, port: 19092 + nodeId, errorCode: 0 }
  }
  if (version < 4)
    return {
      ...found(),
      ...(version >= 1 ? { errorMessage: maybeText(prng), throttleTimeMs: 3 } : {}),
      ...tags(prng, shape),
    }
  return {
    throttleTimeMs: 3,
    coordinators: many(prng, 5, () => ({
      key: text(prng),
      ...found(),
      errorMessage: maybeText(prng),
      ...tags(prng, shape),
    })),
    ...tags(prng, shape),
  }
}

export function clusterAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<DescribeClusterResponse> {
  return {
    throttleTimeMs: 1,
    errorCode: errorCode(prng),
    errorMessage: maybeText(prng),
    clusterId: text(prng),
    controllerId: prng.below(9),
    brokers: shape.nodes.map((brokerId) => ({
      brokerId,
      host: `broker-${brokerId}.internal`,
      port: 19092 + brokerId,
      rack: maybeText(prng),
      isFenced: version >= 2 && prng.below(2) === 0,
      ...tags(prng, shape),
    })),
    ...tags(prng, shape),
  }
}

export function quorumAnswer(prng: Prng, version: number, shape: AnswerShape): Draft<DescribeQuorumResponse> {
  const states = () =>
    many(prng, 3, (replicaId) => ({ replicaId, logEndOffset: prng.below(2 ** 40), ...tags(prng, shape) }))
  return {
    topics: many(prng, 1, () => ({
      topicName: '__cluster_metadata',
      partitions: many(prng, 2, (partitionIndex) => ({
        partitionIndex,
        leaderId: 1,
        leaderEpoch: 4,
        highWatermark: prng.below(2 ** 40),
        currentVoters: states(),
        observers: states(),
      })),
    })),
    nodes:
      version < 2
        ? []
        : shape.nodes.map((nodeId) => ({
            nodeId,
            listeners: many(prng, 2, () => ({ name: 'CONTROLLER', host: `broker-${nodeId}.internal`, port: 9093 })),
            ...tags(prng, shape),
          })),
    ...tags(prng, shape),
  }
}

function sharePartition(prng: Prng, partitionIndex: number) {
  const partition = { partitionIndex, errorCode: errorCode(prng), errorMessage: maybeText(prng) }
  return { ...partition, currentLeader: { leaderId: 1, leaderEpoch: 2 } }
}

export function shareFetchAnswer(prng: Prng, _version: number, shape: AnswerShape): Draft<ShareFetchResponse> {
  return {
    throttleTimeMs: 2,
    errorMessage: maybeText(prng),
    responses: many(prng, 3, () => ({
      topicId: uuid(prng),
      partitions: many(prng, 4, (partitionIndex) => ({
        ...sharePartition(prng, partitionIndex),
        records: prng.bytes(prng.below(shape.recordBytes + 1)),
        acquiredRecords: many(prng, 3, (firstOffset) => ({ firstOffset, lastOffset: 2 ** 41, deliveryCount: 1 })),
        ...tags(prng, shape),
      })),
    })),
    nodeEndpoints: endpoints(prng, shape),
    ...tags(prng, shape),
  }
}

export function shareAcknowledgeAnswer(
  prng: Prng,
  _version: number,
  shape: AnswerShape,
): Draft<ShareAcknowledgeResponse> {
  return {
    throttleTimeMs: 2,
    errorMessage: maybeText(prng),
    responses: many(prng, 3, () => ({
      topicId: uuid(prng),
      partitions: many(prng, 4, (partitionIndex) => ({
        ...sharePartition(prng, partitionIndex),
        ...tags(prng, shape),
      })),
    })),
    nodeEndpoints: endpoints(prng, shape),
    ...tags(prng, shape),
  }
}
