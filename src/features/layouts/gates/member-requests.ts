/**
 * What members of gated groups send besides Fetch: what they subscribe to; a Heartbeat makes their commits be read again
 * (the exchange of positions in KIP-253), and a commit that the coordinator acknowledged here counts at once. A commit inside a
 * transaction counts when the transaction is committed, which only the next read tells.
 */
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OffsetCommitRequest, OffsetCommitResponse } from '../../../protocol/generated/08-offset-commit.ts'
import { peekResponseBodyStart } from '../../../protocol/peek.ts'
import { Reader } from '../../../protocol/reader.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Handler, Interest, Verdict } from '../../../pipeline/handler.ts'
import type { GroupGates } from './group-gates.ts'

const commits = codec(apiKeys.OffsetCommit)
const joins = codec(apiKeys.JoinGroup)
const beats = codec(apiKeys.ConsumerGroupHeartbeat)

export class MemberRequests implements Handler {
  readonly name = 'gates'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.JoinGroup, side: 'request', depth: 'full' },
    { apiKey: apiKeys.Heartbeat, side: 'request', depth: 'header' },
    { apiKey: apiKeys.ConsumerGroupHeartbeat, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetCommit, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetCommit, side: 'response', depth: 'full' },
  ]
  private readonly gates: GroupGates

  constructor(gates: GroupGates) {
    this.gates = gates
  }

  onRequest(exchange: Exchange): Verdict {
    const { apiKey } = exchange
    if (apiKey === apiKeys.JoinGroup || apiKey === apiKeys.ConsumerGroupHeartbeat) this.subscribed(exchange)
    if (apiKey === apiKeys.JoinGroup) return undefined
    let isGated = false
    for (const groupId of exchange.connection.instance?.memberships.keys() ?? []) {
      const group = this.gates.known(groupId)
      if (group?.isShut !== true) continue
      isGated = true
      group.poke()
    }
    if (!isGated || apiKey !== apiKeys.OffsetCommit) return undefined
    const body = requestOf(exchange, (reader, version) => commits.decodeRequest(reader, version))
    if (body !== undefined) exchange.setState(this, body)
    return undefined
  }

  /** The instance was bound to its group by the same request. */
  private subscribed(exchange: Exchange): void {
    const memberships = exchange.connection.instance?.memberships
    if (exchange.apiKey === apiKeys.JoinGroup) {
      const body = requestOf(exchange, (reader, version) => joins.decodeRequest(reader, version))
      const membership = body === undefined ? undefined : memberships?.get(body.groupId)
      if (body !== undefined && membership !== undefined) this.gates.subscriptions.joined(membership, body)
    } else {
      const body = requestOf(exchange, (reader, version) => beats.decodeRequest(reader, version))
      const membership = body === undefined ? undefined : memberships?.get(body.groupId)
      if (body !== undefined && membership !== undefined) this.gates.subscriptions.beat(membership, body)
    }
  }

  onResponse(exchange: Exchange): Verdict {
    const request = exchange.state<OffsetCommitRequest>(this)
    const { response, apiKey, apiVersion } = exchange
    if (request === undefined || response === undefined) return undefined
    const end = response.at + response.total
    const bodyAt = peekResponseBodyStart(apiKey, apiVersion, response.bytes, response.at + 4, end)
    if (bodyAt < 0) return undefined
    const body = decoded(() => commits.decodeResponse(new Reader(response.bytes, bodyAt, end), apiVersion))
    if (body !== undefined) this.learn(request, body)
    return undefined
  }

  private learn(request: OffsetCommitRequest, response: OffsetCommitResponse): void {
    const group = this.gates.known(request.groupId)
    if (group === undefined) return
    const written = new Set(
      response.topics.flatMap(({ name, topicId, partitions }) =>
        partitions.flatMap((row) => (row.errorCode === 0 ? [rowName(name, topicId, row.partitionIndex)] : [])),
      ),
    )
    let isNews = false
    for (const { name, topicId, partitions } of request.topics) {
      const topic = this.gates.find(name, topicId)
      const progress = topic === undefined ? undefined : group.topics.get(topic.topicId)?.progress
      if (progress === undefined) continue
      for (const { partitionIndex, committedOffset } of partitions) {
        if (!written.has(rowName(name, topicId, partitionIndex))) continue
        progress.commit(partitionIndex, committedOffset, this.gates.now())
        isNews = true
      }
    }
    if (isNews) this.gates.changed()
  }
}

/** Topics are named by id from v10 on. */
function rowName(name: string, topicId: string, partition: number): string {
  return `${name}/${topicId}/${partition}`
}

function requestOf<T>(exchange: Exchange, decode: (reader: Reader, version: number) => T): T | undefined {
  const { request, apiVersion } = exchange
  const at = exchange.requestBodyAt()
  if (request === undefined || at < 0) return undefined
  return decoded(() => decode(new Reader(request.bytes, at, request.at + request.total), apiVersion))
}

/** undefined: cannot be read; the broker refuses such a request, and the client such an answer. */
function decoded<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}
