/**
 * Commits of a consumer with static ranges are refused, those in transactions too: the committed offset of a partition
 * stands for all its records, so that a plain commit would skip those of the other ranges. INVALID_REQUEST (42) is final
 * for every client family.
 */
import { apiKeys, responseHeaderVersion } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import type { Handler, Interest, Verdict } from '../../pipeline/handler.ts'
import type { StaticRanges } from './feature.ts'

const plain = codec(apiKeys.OffsetCommit)
const transactional = codec(apiKeys.TxnOffsetCommit)
const commitApis = [apiKeys.OffsetCommit, apiKeys.TxnOffsetCommit]

export class RangeCommits implements Handler {
  readonly name = 'static-range-commits'
  readonly interests = commitApis.map((apiKey): Interest => ({ apiKey, side: 'request', depth: 'full' }))
  private readonly ranges: StaticRanges
  private readonly told = new Set<string>()

  constructor(ranges: StaticRanges) {
    this.ranges = ranges
  }

  onRequest(exchange: Exchange): Verdict {
    const { connection, request, apiKey, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0 || this.ranges.ownerOf(connection) === undefined) return undefined
    const reader = new Reader(request.bytes, at, request.at + request.total)
    try {
      const { groupId, body } = refusal(apiKey, reader, apiVersion)
      this.tell(exchange, groupId)
      connection.context.meter.error(apiKey, errorCodes.INVALID_REQUEST)
      return { kind: 'answer', frame: framed(apiKey, apiVersion, body) }
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

/** The body of an answer that refuses each partition. */
function refusal(apiKey: number, reader: Reader, version: number): { groupId: string; body: Buffer } {
  const writer = new Writer(256)
  if (apiKey === apiKeys.TxnOffsetCommit) {
    const { groupId, topics } = transactional.decodeRequest(reader, version)
    const refused = topics.map(({ name, partitions }) => ({ name, partitions: partitions.map(refuse) }))
    transactional.encodeResponse(writer, { topics: refused }, version)
    return { groupId, body: writer.finish() }
  }
  const { groupId, topics } = plain.decodeRequest(reader, version)
  const refused = topics.map(({ name, topicId, partitions }) => ({ name, topicId, partitions: partitions.map(refuse) }))
  plain.encodeResponse(writer, { topics: refused }, version)
  return { groupId, body: writer.finish() }
}

function refuse({ partitionIndex }: { readonly partitionIndex: number }) {
  return { partitionIndex, errorCode: errorCodes.INVALID_REQUEST }
}

/** The correlation id is filled in when the answer leaves. */
function framed(apiKey: number, version: number, body: Buffer): Frame {
  const writer = new Writer(16 + body.length)
  writer.int32(0)
  writer.int32(0)
  if (responseHeaderVersion(apiKey, version) === 1) writer.uvarint(0)
  writer.raw(body)
  const bytes = writer.finish()
  bytes.writeInt32BE(bytes.length - 4, 0)
  return frameOf(bytes)
}
