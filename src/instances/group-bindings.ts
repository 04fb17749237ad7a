/**
 * Binds client instances to their group, member and generation as group requests pass: a Fetch names none of them, so
 * features look at what its instance showed on other connections.
 */
import { apiKeys } from '../protocol/api-table.ts'
import { codec } from '../protocol/codecs.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { type GroupPeek, peekGroup, peekLeavingMembers, peekResponseBodyStart } from '../protocol/peek.ts'
import { Reader } from '../protocol/reader.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Handler, Interest, Verdict } from '../pipeline/handler.ts'
import type { Instances } from './registry.ts'

const requests = [
  apiKeys.JoinGroup,
  apiKeys.SyncGroup,
  apiKeys.Heartbeat,
  apiKeys.LeaveGroup,
  apiKeys.OffsetCommit,
  apiKeys.ConsumerGroupHeartbeat,
  apiKeys.ShareGroupHeartbeat,
  apiKeys.StreamsGroupHeartbeat,
]
const responses = [apiKeys.JoinGroup, apiKeys.ConsumerGroupHeartbeat]

export class GroupBindings implements Handler {
  readonly name = 'group-bindings'
  readonly interests: readonly Interest[] = [
    ...requests.map((apiKey): Interest => ({ apiKey, side: 'request', depth: 'scan' })),
    ...responses.map((apiKey): Interest => ({ apiKey, side: 'response', depth: 'full' })),
  ]
  private readonly instances: Instances

  constructor(instances: Instances) {
    this.instances = instances
  }

  onRequest(exchange: Exchange): Verdict {
    const { request, connection, apiKey, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0 || connection.instance === undefined) return undefined
    const end = request.at + request.total
    const peek = peekGroup(apiKey, apiVersion, request.bytes, at, end)
    if (peek === undefined) return undefined // the broker refuses what cannot be read
    if (apiKey === apiKeys.LeaveGroup) {
      for (const member of peekLeavingMembers(apiVersion, request.bytes, at, end) ?? [])
        this.instances.left(connection, peek.groupId, member.memberId)
      return undefined
    }
    exchange.setState(this, peek)
    if (apiKey === apiKeys.OffsetCommit && peek.memberId === '') this.instances.committed(connection, peek.groupId)
    else this.instances.bound(connection, peek)
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const asked = exchange.state<GroupPeek>(this)
    const { response, connection, apiKey, apiVersion } = exchange
    if (asked === undefined || response === undefined) return undefined
    const end = response.at + response.total
    const bodyAt = peekResponseBodyStart(apiKey, apiVersion, response.bytes, response.at + 4, end)
    if (bodyAt < 0) return undefined
    try {
      const learned = answer(apiKey, apiVersion, new Reader(response.bytes, bodyAt, end))
      if (learned !== undefined) this.instances.bound(connection, { ...asked, ...learned })
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      connection.context.meter.undecodable(apiKey, apiVersion)
    }
    return undefined
  }
}

/** Member and generation in an answer; undefined where it is a refusal. */
function answer(
  apiKey: number,
  version: number,
  reader: Reader,
): Pick<GroupPeek, 'memberId' | 'generation'> | undefined {
  if (apiKey === apiKeys.JoinGroup) {
    const body = codec(apiKeys.JoinGroup).decodeResponse(reader, version)
    return body.errorCode === 0 ? { memberId: body.memberId, generation: body.generationId } : undefined
  }
  const body = codec(apiKeys.ConsumerGroupHeartbeat).decodeResponse(reader, version)
  if (body.errorCode !== 0 || body.memberId === null) return undefined
  return { memberId: body.memberId, generation: body.memberEpoch }
}
