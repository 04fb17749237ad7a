/**
 * Commits of a consumer with static ranges are refused: the committed offset of a partition stands for all its records,
 * so that a plain commit would skip those of the other ranges. INVALID_REQUEST (42) is final for every client family.
 */
import { apiKeys, responseHeaderVersion } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { OffsetCommitRequest } from '../../protocol/generated/08-offset-commit.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import type { Handler, Interest, Verdict } from '../../pipeline/handler.ts'
import type { StaticRanges } from './feature.ts'

const api = codec(apiKeys.OffsetCommit)

export class RangeCommits implements Handler {
  readonly name = 'static-range-commits'
  readonly interests: readonly Interest[] = [{ apiKey: apiKeys.OffsetCommit, side: 'request', depth: 'full' }]
  private readonly ranges: StaticRanges
  private readonly told = new Set<string>()

  constructor(ranges: StaticRanges) {
    this.ranges = ranges
  }

  onRequest(exchange: Exchange): Verdict {
    const { connection, request, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0 || this.ranges.ownerOf(connection) === undefined) return undefined
    try {
      const body = api.decodeRequest(new Reader(request.bytes, at, request.at + request.total), apiVersion)
      this.tell(exchange, body.groupId)
      return { kind: 'answer', frame: refusal(body, apiVersion) }
    } catch (error) {
      if (error instanceof ProtocolError) return undefined // the broker refuses what cannot be read
      throw error
    }
  }

  /** One log line per client id. */
  private tell({ connection }: Exchange, group: string): void {
    const { clientId } = connection
    if (clientId === null || this.told.has(clientId)) return
    this.told.add(clientId)
    connection.context.log.warn(
      { clientId, group },
      'commits of a consumer with static key ranges are refused (42): a commit would skip the records of the other ranges; turn auto-commit off and seek',
    )
  }
}

function refusal(body: OffsetCommitRequest, version: number): Frame {
  const writer = new Writer(256)
  writer.int32(0)
  writer.int32(0)
  if (responseHeaderVersion(apiKeys.OffsetCommit, version) === 1) writer.uvarint(0)
  const topics = body.topics.map(({ name, topicId, partitions }) => ({
    name,
    topicId,
    partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: errorCodes.INVALID_REQUEST })),
  }))
  api.encodeResponse(writer, { topics }, version)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return frameOf(bytes)
}
