/** Fetch: long poll over several partitions, both isolation levels, epochs; sessions are always answered with id 0. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { fetch } from '../../protocol/generated/01-fetch.ts'
import type {
  FetchRequest,
  FetchRequestPartition,
  FetchRequestTopic,
  FetchResponse,
} from '../../protocol/generated/01-fetch.ts'
import { api, type Call } from '../api.ts'
import type { Partition } from '../topics.ts'

const READ_COMMITTED = 1
/** First version whose answer may say who leads. */
const LEADER_FROM = 12
const noRecords = Buffer.alloc(0)

type FetchCall = Call<FetchRequest, FetchResponse>

interface Answered {
  partitionIndex: number
  errorCode: number
  highWatermark: number
  lastStableOffset: number
  logStartOffset: number
  abortedTransactions: { producerId: number; firstOffset: number }[] | null
  records: Buffer
  currentLeader?: { leaderId: number; leaderEpoch: number }
  divergingEpoch?: { epoch: number; endOffset: number }
}

export const fetchApi = api(fetch, handle, { min: 4 })

function handle(call: FetchCall): undefined {
  const { request, cluster } = call
  if (request.sessionId !== 0 && request.sessionEpoch > 0) {
    call.reply({ errorCode: errorCodes.FETCH_SESSION_ID_NOT_FOUND, sessionId: 0, responses: [] })
    return
  }
  cluster.wait(request.maxWaitMs, (expired) => {
    const { responses, bytes, failed } = readAll(call)
    if (!expired && !failed && bytes < request.minBytes) return false
    call.reply({ errorCode: 0, sessionId: 0, responses })
    return true
  })
}

function readAll(call: FetchCall): {
  responses: { topic: string; topicId: string; partitions: Answered[] }[]
  bytes: number
  failed: boolean
} {
  let bytes = 0
  let failed = false
  const responses = call.request.topics.map((asked) => ({
    topic: asked.topic,
    topicId: asked.topicId,
    partitions: asked.partitions.map((partition) => {
      const answered = readOne(call, asked, partition, call.request.maxBytes - bytes, bytes === 0)
      bytes += answered.records.length
      failed ||= answered.errorCode !== 0 || answered.divergingEpoch !== undefined
      return answered
    }),
  }))
  return { responses, bytes, failed }
}

function readOne(
  call: FetchCall,
  asked: FetchRequestTopic,
  { partition: index, fetchOffset, partitionMaxBytes, currentLeaderEpoch, lastFetchedEpoch }: FetchRequestPartition,
  room: number,
  first: boolean,
): Answered {
  const { topics } = call.cluster
  const topic = call.version >= 13 ? topics.withId(asked.topicId) : topics.named(asked.topic)
  const partition = topic?.partitions[index]
  if (topic === undefined && call.version >= 13) return refused(index, errorCodes.UNKNOWN_TOPIC_ID)
  if (partition === undefined) return refused(index, errorCodes.UNKNOWN_TOPIC_OR_PARTITION)
  const errorCode = checkLeader(call.node.id, partition, currentLeaderEpoch)
  const { log, leader } = partition
  const currentLeader = { leaderId: leader, leaderEpoch: log.epoch }
  if (errorCode !== 0)
    return { ...refused(index, errorCode), ...(call.version >= LEADER_FROM ? { currentLeader } : {}) }
  const base = { ...refused(index, 0), ...ends(partition) }
  if (lastFetchedEpoch >= 0) {
    const end = log.endOfEpoch(lastFetchedEpoch)
    if (end.endOffset < fetchOffset || end.epoch < lastFetchedEpoch) return { ...base, divergingEpoch: end }
  }
  if (fetchOffset < log.start || fetchOffset > log.end) return { ...base, errorCode: errorCodes.OFFSET_OUT_OF_RANGE }
  const committed = call.request.isolationLevel === READ_COMMITTED
  const below = committed ? log.lastStable : log.highWatermark
  const slice = log.read(fetchOffset, below, Math.min(room, partitionMaxBytes), first)
  const abortedTransactions = committed
    ? slice.aborted.map(({ producerId, firstOffset }) => ({ producerId, firstOffset }))
    : null
  return { ...base, abortedTransactions, records: slice.records }
}

/** 6, 74 or 75 where this node, or the client, is not up to date about who leads. */
export function checkLeader(nodeId: number, { leader, log }: Partition, currentLeaderEpoch: number): number {
  if (leader !== nodeId) return errorCodes.NOT_LEADER_OR_FOLLOWER
  if (currentLeaderEpoch >= 0 && currentLeaderEpoch < log.epoch) return errorCodes.FENCED_LEADER_EPOCH
  return currentLeaderEpoch > log.epoch ? errorCodes.UNKNOWN_LEADER_EPOCH : 0
}

function ends({ log }: Partition): Pick<Answered, 'highWatermark' | 'lastStableOffset' | 'logStartOffset'> {
  return { highWatermark: log.highWatermark, lastStableOffset: log.lastStable, logStartOffset: log.start }
}

function refused(partitionIndex: number, errorCode: number): Answered {
  return {
    partitionIndex,
    errorCode,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    abortedTransactions: null,
    records: noRecords,
  }
}
