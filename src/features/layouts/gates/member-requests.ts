/**
 * What members send besides Fetch: what they subscribe to and where they begin; a Heartbeat makes their commits be read again
 * (the exchange of positions in KIP-253), and a commit that the coordinator acknowledged here counts at once. A commit inside a
 * transaction counts when the transaction is committed, which only the next read tells.
 *
 * Invariant: a commit that has to wait is not overtaken by what its member sends after it on the same connection: behind
 * a JoinGroup or LeaveGroup it would be refused.
 */
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OffsetCommitRequest, OffsetCommitResponse } from '../../../protocol/generated/08-offset-commit.ts'
import type { OffsetFetchRequest, OffsetFetchResponse } from '../../../protocol/generated/09-offset-fetch.ts'
import { peekResponseBodyStart } from '../../../protocol/peek.ts'
import { zeroUuid } from '../../../protocol/uuid.ts'
import { Reader } from '../../../protocol/reader.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { type Handler, type Interest, taken, type Verdict } from '../../../pipeline/handler.ts'
import type { Instance } from '../../../pipeline/instance.ts'
import type { GroupGates } from './group-gates.ts'

const commits = codec(apiKeys.OffsetCommit)
const transactional = codec(apiKeys.TxnOffsetCommit)
const joins = codec(apiKeys.JoinGroup)
const offsets = codec(apiKeys.OffsetFetch)
const beats = codec(apiKeys.ConsumerGroupHeartbeat)
const leaves = codec(apiKeys.LeaveGroup)
/** Longer than a start position is waited for (start-commits.ts), one after the other. */
const HOLD_MS = 15_000

type Memberships = Instance['memberships']

export class MemberRequests implements Handler {
  readonly name = 'gates'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.JoinGroup, side: 'request', depth: 'full' },
    { apiKey: apiKeys.LeaveGroup, side: 'request', depth: 'full' },
    { apiKey: apiKeys.Heartbeat, side: 'request', depth: 'header' },
    { apiKey: apiKeys.ConsumerGroupHeartbeat, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetCommit, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetCommit, side: 'response', depth: 'full' },
    { apiKey: apiKeys.TxnOffsetCommit, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetFetch, side: 'request', depth: 'full' },
    { apiKey: apiKeys.OffsetFetch, side: 'response', depth: 'full' },
  ]
  private readonly gates: GroupGates

  constructor(gates: GroupGates) {
    this.gates = gates
  }

  onRequest(exchange: Exchange): Verdict {
    const { apiKey } = exchange
    if (apiKey === apiKeys.TxnOffsetCommit) return this.ordered(exchange)
    const changesMembers = apiKey === apiKeys.JoinGroup || apiKey === apiKeys.LeaveGroup
    if (changesMembers && exchange.connection.holds.size > 0 && this.follows(exchange)) return taken
    const memberships = exchange.connection.instance?.memberships
    if (memberships === undefined) return undefined
    switch (exchange.apiKey) {
      case apiKeys.JoinGroup:
        this.joining(exchange, memberships)
        break
      case apiKeys.ConsumerGroupHeartbeat:
        this.subscribing(exchange, memberships)
        this.beat(exchange, memberships)
        break
      case apiKeys.Heartbeat:
        this.beat(exchange, memberships)
        break
      case apiKeys.OffsetCommit:
        this.committing(exchange, memberships)
        return this.ordered(exchange)
      case apiKeys.OffsetFetch:
        if (this.isStarting(memberships))
          exchange.setState(
            this,
            requestOf(exchange, (reader, version) => offsets.decodeRequest(reader, version)),
          )
        break
    }
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const { apiKey } = exchange
    if (apiKey === apiKeys.OffsetCommit) {
      const request = exchange.state<OffsetCommitRequest>(this)
      const body = request && responseOf(exchange, (reader, version) => commits.decodeResponse(reader, version))
      if (request !== undefined && body !== undefined) this.committed(request, body)
    } else {
      const request = exchange.state<OffsetFetchRequest>(this)
      const body = request && responseOf(exchange, (reader, version) => offsets.decodeResponse(reader, version))
      if (request !== undefined && body !== undefined) this.begins(exchange, request.groupId, body)
    }
    return undefined
  }

  /** The instance was bound to its group by the same request. */
  private joining(exchange: Exchange, memberships: Memberships): void {
    const body = requestOf(exchange, (reader, version) => joins.decodeRequest(reader, version))
    const membership = body === undefined ? undefined : memberships.get(body.groupId)
    if (body === undefined || membership === undefined) return
    this.gates.startCommits.committing(membership)
    const topics = this.gates.subscriptions.joined(membership, body)
    if (topics !== 'any' && topics.some((name) => this.gates.hasRule(name)))
      this.gates.starts.joined(membership, body, this.gates.now())
  }

  private subscribing(exchange: Exchange, memberships: Memberships): void {
    const body = requestOf(exchange, (reader, version) => beats.decodeRequest(reader, version))
    const membership = body === undefined ? undefined : memberships.get(body.groupId)
    if (body === undefined || membership === undefined) return
    this.gates.subscriptions.beat(membership, body)
    const isJoining = body.memberEpoch === 0
    if (isJoining && (body.subscribedTopicNames ?? []).some((name) => this.gates.hasRule(name)))
      this.gates.starts.began(membership, this.gates.now())
  }

  private beat(exchange: Exchange, memberships: Memberships): void {
    for (const membership of memberships.values()) {
      const group = this.gates.known(membership.groupId)
      if (group?.isShut !== true) continue
      group.poke()
      const hasEpochs = exchange.apiKey === apiKeys.ConsumerGroupHeartbeat
      void this.gates.commitStarts(exchange.connection, membership, group, hasEpochs)
    }
  }

  private committing(exchange: Exchange, memberships: Memberships): void {
    let isGated = false
    for (const membership of memberships.values()) {
      this.gates.startCommits.committing(membership)
      const group = this.gates.known(membership.groupId)
      if (group?.isShut !== true) continue
      isGated = true
      group.poke()
    }
    if (isGated)
      exchange.setState(
        this,
        requestOf(exchange, (reader, version) => commits.decodeRequest(reader, version)),
      )
  }

  /** Holds a commit while a start position of its group may be written over it. */
  private ordered(exchange: Exchange): Verdict {
    const { apiKey, connection } = exchange
    if (!this.gates.startCommits.isUnderWay && connection.holds.size === 0) return undefined
    const kind = apiKey === apiKeys.OffsetCommit ? commits : transactional
    const groupId = requestOf(exchange, (reader, version) => kind.decodeRequest(reader, version))?.groupId
    if (groupId === undefined) return undefined
    if (exchange.queue([laneOf(groupId)])) return taken
    const go = (): void => exchange.finish('forward')
    if (!this.gates.startCommits.holds(groupId, connection, go)) return undefined
    exchange.hold([laneOf(groupId)], HOLD_MS, 'forward')
    return taken
  }

  /** Whether it waits behind a commit of its group. */
  private follows(exchange: Exchange): boolean {
    const kind = exchange.apiKey === apiKeys.JoinGroup ? joins : leaves
    const groupId = requestOf(exchange, (reader, version) => kind.decodeRequest(reader, version))?.groupId
    return groupId !== undefined && exchange.queue([laneOf(groupId)])
  }

  private isStarting(memberships: Memberships): boolean {
    const now = this.gates.now()
    for (const membership of memberships.values()) if (this.gates.starts.isStarting(membership, now)) return true
    return false
  }

  /** Where the coordinator told a member that nothing is committed, it begins where it likes. */
  private begins(exchange: Exchange, groupId: string, body: OffsetFetchResponse): void {
    const { memberships } = exchange.connection.instance ?? {}
    const groups = body.groups.length > 0 ? body.groups : [{ ...body, groupId }]
    for (const { groupId: id, errorCode, topics } of groups) {
      const membership = memberships?.get(id)
      if (membership === undefined || errorCode !== 0) continue
      for (const topic of topics) {
        const topicId = 'topicId' in topic ? topic.topicId : zeroUuid
        const name = this.gates.find(topic.name, topicId)?.name ?? topic.name
        for (const row of topic.partitions)
          if (row.errorCode === 0 && row.committedOffset < 0)
            this.gates.starts.none(membership, name, row.partitionIndex)
      }
    }
  }

  private committed(request: OffsetCommitRequest, response: OffsetCommitResponse): void {
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

function laneOf(groupId: string): string {
  return `commits:${groupId}`
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

function responseOf<T>(exchange: Exchange, decode: (reader: Reader, version: number) => T): T | undefined {
  const { response, apiKey, apiVersion } = exchange
  if (response === undefined) return undefined
  const end = response.at + response.total
  const bodyAt = peekResponseBodyStart(apiKey, apiVersion, response.bytes, response.at + 4, end)
  return bodyAt < 0 ? undefined : decoded(() => decode(new Reader(response.bytes, bodyAt, end), apiVersion))
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
