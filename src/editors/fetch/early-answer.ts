/** An empty answer to a Fetch that waits at the broker, so that a client can be let go before its long poll is over. */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { peekBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { FetchRequest } from '../../protocol/generated/01-fetch.ts'
import type { Frame } from '../../pipeline/frame.ts'
import { frameAnswer } from './editor.ts'

const noRecords = Buffer.alloc(0)

/** @returns undefined if the request cannot be read (the broker will refuse it) */
export function emptyFetchAnswer(request: Frame, version: number): Frame | undefined {
  const { bytes, at, total } = request
  const bodyAt = peekBodyStart(bytes, at + 4, at + total)
  if (bodyAt < 0) return undefined
  try {
    const body = codec(apiKeys.Fetch).decodeRequest(new Reader(bytes, bodyAt, at + total), version)
    return frameAnswer(empty(body), version)
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

/** In a session (epoch > 0) a partition without news is left out (KIP-227); a full Fetch names each. */
function empty(request: FetchRequest) {
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
