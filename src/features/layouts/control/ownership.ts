/**
 * Who leads a group and which partitions each member owns, seen as JoinGroup, SyncGroup and ConsumerGroupHeartbeat
 * pass: what a consumer owns must not vanish from its Metadata. Of a member that was not seen to sync nothing is known.
 */
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { decodeAssignment } from '../../../protocol/embedded.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { peekGroup, peekResponseBodyStart } from '../../../protocol/peek.ts'
import { Reader } from '../../../protocol/reader.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Handler, Interest, Verdict } from '../../../pipeline/handler.ts'
import type { Instance } from '../../../pipeline/instance.ts'

export interface Owned {
  isLeader: boolean
  /** The broker assigns (KIP-848): Metadata has no say in it. */
  isServerSide: boolean
  /** Topic → partitions; undefined: it has not synced since it joined. */
  partitions: ReadonlyMap<string, readonly number[]> | undefined
  /** The protocol that its group chose; undefined: it was not seen to join. */
  assignor?: string | undefined
  /** It is the leader, by this member id. */
  lead?: Lead | undefined
}

/** What the leader of a group assigned last. */
export interface Lead {
  readonly memberId: string
  /** Topic → highest partition that anybody was assigned, plus one; undefined: it has not assigned yet. */
  counts: ReadonlyMap<string, number> | undefined
  /** How many members it assigned for. */
  members: number
  /** When it did, on the runtime's clock. */
  atMs: number
}

/** Groups that are remembered of one instance: those used last. */
const GROUPS_MAX = 1000

export class Ownership implements Handler {
  readonly name = 'ownership'
  readonly interests: readonly Interest[] = [
    ...[apiKeys.JoinGroup, apiKeys.SyncGroup].map((apiKey): Interest => ({ apiKey, side: 'request', depth: 'scan' })),
    ...[apiKeys.JoinGroup, apiKeys.SyncGroup].map((apiKey): Interest => ({ apiKey, side: 'response', depth: 'full' })),
    { apiKey: apiKeys.ConsumerGroupHeartbeat, side: 'request', depth: 'scan' },
    { apiKey: apiKeys.FindCoordinator, side: 'request', depth: 'scan' },
  ]
  private readonly seekers = new WeakSet<Instance>()
  private readonly owned = new WeakMap<Instance, Map<string, Owned>>()

  /** What an instance was seen to be in a group. */
  of(instance: Instance, group: string): Owned | undefined {
    return this.owned.get(instance)?.get(group)
  }

  /** Whether an instance has looked for a group's coordinator: it is about to join, as no plain producer is. */
  seeksGroup(instance: Instance): boolean {
    return this.seekers.has(instance)
  }

  onRequest(exchange: Exchange): Verdict {
    const { request, connection, apiKey, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request === undefined || at < 0 || connection.instance === undefined) return undefined
    if (apiKey === apiKeys.FindCoordinator) {
      const reader = new Reader(request.bytes, at, request.at + request.total)
      if (asksForGroup(reader, apiVersion)) this.seekers.add(connection.instance)
      return undefined
    }
    const groupId = peekGroup(apiKey, apiVersion, request.bytes, at, request.at + request.total)?.groupId
    if (groupId === undefined) return undefined
    if (apiKey === apiKeys.ConsumerGroupHeartbeat) this.at(connection.instance, groupId).isServerSide = true
    else exchange.setState(this, groupId)
    if (apiKey === apiKeys.SyncGroup) {
      const { lead } = this.at(connection.instance, groupId)
      if (lead !== undefined) this.assigning(lead, exchange, new Reader(request.bytes, at, request.at + request.total))
    }
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const groupId = exchange.state<string>(this)
    const { response, connection, apiKey, apiVersion } = exchange
    const { instance } = connection
    if (groupId === undefined || response === undefined || instance === undefined) return undefined
    const end = response.at + response.total
    const bodyAt = peekResponseBodyStart(apiKey, apiVersion, response.bytes, response.at + 4, end)
    if (bodyAt < 0) return undefined
    try {
      this.learn(this.at(instance, groupId), apiKey, apiVersion, new Reader(response.bytes, bodyAt, end))
    } catch (error) {
      // Not a consumer's assignment (Kafka Connect, schema registries), or nothing that can be read.
      if (!(error instanceof ProtocolError)) throw error
    }
    return undefined
  }

  /** The leader sends the assignments of all members; a member that leads no more sends none. */
  private assigning(lead: Lead, { apiVersion, receivedAt }: Exchange, reader: Reader): void {
    try {
      const { memberId, assignments } = codec(apiKeys.SyncGroup).decodeRequest(reader, apiVersion)
      if (memberId !== lead.memberId || assignments.length === 0) return
      const counts = new Map<string, number>()
      for (const { assignment } of assignments)
        for (const { topic, partitions } of decodeAssignment(assignment).value.assignedPartitions)
          counts.set(topic, countFrom(partitions, counts.get(topic)))
      lead.counts = counts
      lead.members = assignments.length
      lead.atMs = receivedAt
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
    }
  }

  private learn(owned: Owned, apiKey: number, version: number, reader: Reader): void {
    if (apiKey === apiKeys.JoinGroup) {
      const { errorCode, leader, memberId, protocolName } = codec(apiKeys.JoinGroup).decodeResponse(reader, version)
      if (errorCode !== 0) return
      owned.isLeader = leader === memberId
      owned.assignor = protocolName ?? undefined
      if (owned.isLeader && owned.lead?.memberId !== memberId)
        owned.lead = { memberId, counts: undefined, members: 0, atMs: 0 }
      else if (!owned.isLeader && owned.lead?.memberId === memberId) owned.lead = undefined
      return
    }
    const { errorCode, assignment } = codec(apiKeys.SyncGroup).decodeResponse(reader, version)
    if (errorCode !== 0) return
    const { assignedPartitions } = decodeAssignment(assignment).value
    owned.partitions = new Map(assignedPartitions.map(({ topic, partitions }) => [topic, partitions]))
  }

  private at(instance: Instance, group: string): Owned {
    let groups = this.owned.get(instance)
    if (groups === undefined) this.owned.set(instance, (groups = new Map<string, Owned>()))
    const owned = groups.get(group) ?? { isLeader: false, isServerSide: false, partitions: undefined }
    groups.delete(group)
    groups.set(group, owned)
    if (groups.size > GROUPS_MAX) for (const oldest of groups.keys()) if (groups.delete(oldest)) break
    return owned
  }
}

/** The highest partition plus one. Not by `Math.max(...)`: what is read as numbers may be another protocol's megabytes. */
function countFrom(partitions: readonly number[], least = 0): number {
  return partitions.reduce((most, partition) => Math.max(most, partition + 1), least)
}

/** Transactional producers ask for another kind of coordinator. */
function asksForGroup(reader: Reader, version: number): boolean {
  try {
    return codec(apiKeys.FindCoordinator).decodeRequest(reader, version).keyType === 0
  } catch (error) {
    if (error instanceof ProtocolError) return false
    throw error
  }
}
