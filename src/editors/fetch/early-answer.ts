/**
 * Empty answers to a Fetch: while it waits at the broker, so that a client can be let go before its long poll is over, and
 * in place of an answer that may not go to the client any more.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { peekBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { FetchRequest, FetchResponse } from '../../protocol/generated/01-fetch.ts'
import type { Frame } from '../../pipeline/frame.ts'
import { frameAnswer } from './answer-frame.ts'

const noRecords = Buffer.alloc(0)

/** @returns undefined if the request cannot be read (the broker will refuse it) */
export function emptyFetchAnswer(request: Frame, version: number): Frame | undefined {
  const body = fetchRequestIn(request, version)
  return body === undefined ? undefined : frameAnswer(emptyAnswerTo(body), version)
}

/** @returns undefined if the request cannot be read */
export function fetchRequestIn({ bytes, at, total }: Frame, version: number): FetchRequest | undefined {
  const bodyAt = peekBodyStart(bytes, at + 4, at + total)
  if (bodyAt < 0) return undefined
  try {
    return codec(apiKeys.Fetch).decodeRequest(new Reader(bytes, bodyAt, at + total), version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

/** The broker's answer without its records; its watermarks and errors stay. */
export function withoutRecords(answer: FetchResponse): FetchResponse {
  return {
    ...answer,
    responses: answer.responses.map((topic) => ({
      ...topic,
      partitions: topic.partitions.map((partition) => ({
        ...partition,
        records: noRecords,
        abortedTransactions: partition.abortedTransactions === null ? null : [],
      })),
    })),
    nodeEndpoints: [], // the addresses in it are the brokers' own
  }
}

/** In a session (epoch > 0) a partition without news is left out (KIP-227); a full Fetch names each. */
export function emptyAnswerTo(request: FetchRequest) {
  if (request.sessionEpoch > 0) return { sessionId: request.sessionId, responses: [] }
  return {
    sessionId: 0,
    responses: request.topics.map(({ topic, topicId, partitions }) => ({
      topic,
      topicId,
      partitions: partitions.map(({ partition }) => ({
        partitionIndex: partition,
        highWatermark: -1,
        lastStableOffset: -1,
        logStartOffset: -1,
        records: noRecords,
      })),
    })),
  }
}
