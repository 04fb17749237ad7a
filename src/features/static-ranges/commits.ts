/**
 * Commits of a consumer with static ranges are refused, those in transactions too: the committed offset of a partition
 * stands for all its records, so that a plain commit would skip those of the other ranges. INVALID_REQUEST (42) is final
 * for every client family.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { responseFrame } from '../../protocol/encode.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { frameOf } from '../../pipeline/frame.ts'
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
      const { groupId, frame } = refusal(apiKey, reader, apiVersion)
      this.tell(exchange, groupId)
      connection.context.meter.error(apiKey, errorCodes.INVALID_REQUEST)
      return { kind: 'answer', frame: frameOf(frame) }
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

/** An answer that refuses each partition; the correlation id is filled in when it leaves. */
function refusal(apiKey: number, reader: Reader, version: number): { groupId: string; frame: Buffer } {
  if (apiKey === apiKeys.TxnOffsetCommit) {
    const { groupId, topics } = transactional.decodeRequest(reader, version)
    const refused = topics.map(({ name, partitions }) => ({ name, partitions: partitions.map(refuse) }))
    return { groupId, frame: responseFrame(0, transactional, { topics: refused }, version) }
  }
  const { groupId, topics } = plain.decodeRequest(reader, version)
  const refused = topics.map(({ name, topicId, partitions }) => ({ name, topicId, partitions: partitions.map(refuse) }))
  return { groupId, frame: responseFrame(0, plain, { topics: refused }, version) }
}

function refuse({ partitionIndex }: { readonly partitionIndex: number }) {
  return { partitionIndex, errorCode: errorCodes.INVALID_REQUEST }
}
