/** Fetch: long poll over several partitions, both isolation levels, epochs, sessions. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { fetch } from '../../protocol/generated/01-fetch.ts'
import type { FetchRequest, FetchRequestPartition, FetchResponse } from '../../protocol/generated/01-fetch.ts'
import { api, type Call } from '../api.ts'
import type { AskedPartition } from '../fetch-sessions.ts'
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
  const { request, cluster, node } = call
  const session = cluster.fetchSessions.resolve(request, node.id)
  if (!('asked' in session)) {
    call.reply({ errorCode: session.errorCode, sessionId: 0, responses: [] })
    return
  }
  const { sessionId, incremental, asked } = session
  cluster.wait(request.maxWaitMs, (expired) => {
    const { read, bytes, failed } = readAll(call, asked)
    if (!expired && !failed && bytes < request.minBytes) return false
    const news = read.filter((r) => isNews(r, cluster.fetchSessions.tell(sessionId, r.asked, r.answered)))
    call.reply({ errorCode: 0, sessionId, responses: group(incremental ? news : read) })
    return true
  })
}

interface Read {
  asked: AskedPartition
  answered: Answered
}

function readAll(call: FetchCall, all: AskedPartition[]): { read: Read[]; bytes: number; failed: boolean } {
  let bytes = 0
  let failed = false
  const read = all.map((asked) => {
    const answered = readOne(call, asked, asked.request, call.request.maxBytes - bytes, bytes === 0)
    bytes += answered.records.length
    failed ||= answered.errorCode !== 0 || answered.divergingEpoch !== undefined
    return { asked, answered }
  })
  return { read, bytes, failed }
}

function isNews({ answered }: Read, known: boolean): boolean {
  const { records, errorCode, divergingEpoch } = answered
  return !known || records.length > 0 || errorCode !== 0 || divergingEpoch !== undefined
}

/** Neighbours of one topic share an entry, as a broker answers. */
function group(read: Read[]): { topic: string; topicId: string; partitions: Answered[] }[] {
  const groups: { topic: string; topicId: string; partitions: Answered[] }[] = []
  for (const { asked, answered } of read) {
    const last = groups.at(-1)
    if (last?.topic === asked.topic && last.topicId === asked.topicId) last.partitions.push(answered)
    else groups.push({ topic: asked.topic, topicId: asked.topicId, partitions: [answered] })
  }
  return groups
}

function readOne(
  call: FetchCall,
  asked: AskedPartition,
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
  if (fetchOffset < log.start || fetchOffset > log.end) return refused(index, errorCodes.OFFSET_OUT_OF_RANGE)
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
