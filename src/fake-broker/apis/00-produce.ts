/** Produce: appends, idempotence and transactions; acks=all waits for replication where the model holds it back. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { produce } from '../../protocol/generated/00-produce.ts'
import type { ProduceRequest, ProduceRequestPartition, ProduceResponse } from '../../protocol/generated/00-produce.ts'
import { checkCrc, isTransactional, producerIdOf, readHeader, walkEntries } from '../../records/batch.ts'
import { RecordsError } from '../../records/errors.ts'
import { api, type Call } from '../api.ts'
import type { Partition, Topic } from '../topics.ts'

/** From here on a partition joins its transaction by being produced to (KIP-890). */
const IMPLICIT_TRANSACTION_VERSION = 12

/** First version that is told to abort where it wrote outside its transaction. */
const ABORTABLE_FROM = 11
/** First version whose answer may say who leads. */
const LEADER_FROM = 10

type ProduceCall = Call<ProduceRequest, ProduceResponse>

interface Result {
  index: number
  errorCode: number
  baseOffset: number
  logStartOffset: number
  currentLeader?: { leaderId: number; leaderEpoch: number }
}

export const produceApi = api(produce, handle, { min: 3, isSilent: (request) => request.acks === 0 })

function handle(call: ProduceCall): ReturnType<typeof answer> | undefined {
  const { request, cluster } = call
  if (![0, 1, -1].includes(request.acks))
    return answer(call, (_, data) => ({ index: data.index, ...refused(errorCodes.INVALID_REQUIRED_ACKS) }))
  const ends: { partition: Partition; epoch: number; end: number; result: Result }[] = []
  const response = answer(call, (topic, data) => {
    const partition = topic?.partitions[data.index]
    if (topic === undefined || partition === undefined) return { index: data.index, ...refused(unknownTopic(call)) }
    const result = { index: data.index, ...append(call, topic, partition, data) }
    if (result.errorCode === 0) ends.push({ partition, epoch: partition.log.epoch, end: partition.log.end, result })
    return result
  })
  cluster.wake()
  if (request.acks !== -1) return response
  cluster.wait(request.timeoutMs, (expired) => {
    for (const { partition, epoch, end, result } of ends) {
      if (partition.log.epoch !== epoch) result.errorCode = errorCodes.NOT_LEADER_OR_FOLLOWER
      else if (partition.log.highWatermark >= end) result.errorCode = 0
      else if (expired) result.errorCode = errorCodes.REQUEST_TIMED_OUT
      else return false
    }
    call.reply(response)
    return true
  })
  return undefined
}

function answer(
  call: ProduceCall,
  produceTo: (topic: Topic | undefined, data: ProduceRequestPartition) => Result,
): { responses: { name: string; topicId: string; partitionResponses: Result[] }[] } {
  const { topics } = call.cluster
  return {
    responses: call.request.topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map((data) => {
        const topic = call.version >= 13 ? topics.withId(topicId) : topics.named(name)
        return produceTo(topic, data)
      }),
    })),
  }
}

function append(
  call: ProduceCall,
  topic: Topic,
  partition: Partition,
  data: ProduceRequestPartition,
): Omit<Result, 'index'> {
  const { log, leader } = partition
  if (leader !== call.node.id) {
    const currentLeader = { leaderId: leader, leaderEpoch: log.epoch }
    return { ...refused(errorCodes.NOT_LEADER_OR_FOLLOWER), ...(call.version >= LEADER_FROM ? { currentLeader } : {}) }
  }
  const { records } = data
  if (records === null || records.length === 0) return refused(errorCodes.INVALID_RECORD)
  try {
    let batches = 0
    walkEntries(records, (at, end) => {
      checkCrc(records, at, end)
      batches++
    })
    if (batches !== 1) return refused(errorCodes.INVALID_RECORD)
    const errorCode = checkTransaction(call, topic, partition, records)
    if (errorCode !== 0) return refused(errorCode)
    const appended = log.append(records)
    if (!('baseOffset' in appended)) return refused(appended.errorCode)
    return { errorCode: 0, baseOffset: appended.baseOffset, logStartOffset: log.start }
  } catch (error) {
    if (error instanceof RecordsError) return refused(errorCodes.CORRUPT_MESSAGE)
    throw error
  }
}

/** Transactional batches need a transaction that knows the partition; since v12 producing is enough to add it. */
function checkTransaction(call: ProduceCall, topic: Topic, partition: Partition, records: Buffer): number {
  if (!isTransactional(records, 0)) return 0
  const { transactionalId } = call.request
  if (transactionalId === null) return errorCodes.INVALID_TXN_STATE
  const producerId = producerIdOf(records, 0)
  const { producerEpoch } = readHeader(records, 0)
  const { transactions } = call.cluster
  const place = { topic: topic.name, partition: partition.index }
  const errorCode =
    call.version >= IMPLICIT_TRANSACTION_VERSION
      ? transactions.addPartitions(transactionalId, producerId, producerEpoch, [place], call.nowMs)
      : transactions.verify(transactionalId, producerId, producerEpoch, place)
  if (errorCode === errorCodes.PRODUCER_FENCED) return errorCodes.INVALID_PRODUCER_EPOCH
  const outside = errorCode === errorCodes.INVALID_TXN_STATE
  return outside && call.version >= ABORTABLE_FROM ? errorCodes.TRANSACTION_ABORTABLE : errorCode
}

function unknownTopic(call: ProduceCall): number {
  return call.version >= 13 ? errorCodes.UNKNOWN_TOPIC_ID : errorCodes.UNKNOWN_TOPIC_OR_PARTITION
}

function refused(errorCode: number): Omit<Result, 'index'> {
  return { errorCode, baseOffset: -1, logStartOffset: -1 }
}
