/** One member of a classic group, and what it asks and is answered. */

export interface Protocol {
  name: string
  metadata: Buffer
}

export interface JoinRequest {
  memberId: string
  instanceId: string | null
  protocolType: string
  protocols: Protocol[]
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  clientId: string
  clientHost: string
  /** v4+: an empty member id is answered 79 with the id to use. */
  requireKnownMember: boolean
  /** v9+: a static leader that comes back is told to skip the assignment. */
  canSkipAssignment: boolean
}

export interface JoinReply {
  errorCode: number
  generation: number
  protocolName: string | null
  leader: string
  skipAssignment: boolean
  memberId: string
  /** Filled for the leader only. */
  members: { memberId: string; instanceId: string | null; metadata: Buffer }[]
}

export interface SyncRequest {
  memberId: string
  instanceId: string | null
  generation: number
  /** v5+; null before. */
  protocolName: string | null
  assignments: { memberId: string; assignment: Buffer }[]
}

export interface SyncReply {
  errorCode: number
  assignment: Buffer
}

export interface Member {
  id: string
  instanceId: string | null
  /** Those of its first join, for ever. */
  clientId: string
  clientHost: string
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  protocols: Protocol[]
  assignment: Buffer
  expiresAtMs: number
  join: ((reply: JoinReply) => void) | undefined
  sync: ((reply: SyncReply) => void) | undefined
  /** Never synced in this generation yet. */
  unsynced: boolean
}

export const noBytes = Buffer.alloc(0)

export function newMember(id: string, request: JoinRequest, nowMs: number): Member {
  return {
    id,
    instanceId: request.instanceId,
    clientId: request.clientId,
    clientHost: request.clientHost,
    sessionTimeoutMs: request.sessionTimeoutMs,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs,
    protocols: request.protocols,
    assignment: noBytes,
    expiresAtMs: nowMs + request.sessionTimeoutMs,
    join: undefined,
    sync: undefined,
    unsynced: true,
  }
}

export function metadataOf(member: Member, protocolName: string | null): Buffer {
  return member.protocols.find((p) => p.name === protocolName)?.metadata ?? noBytes
}

export function sameProtocols(a: readonly Protocol[], b: readonly Protocol[]): boolean {
  return a.length === b.length && a.every((p, at) => p.name === b[at]?.name && p.metadata.equals(b[at].metadata))
}

export function joinError(errorCode: number, memberId: string): JoinReply {
  return { errorCode, generation: -1, protocolName: null, leader: '', skipAssignment: false, memberId, members: [] }
}

/** Topics of a consumer subscription (version int16, array of strings, …); none where the bytes are something else. */
export function subscribedTopics(metadata: Buffer): string[] | undefined {
  const topics: string[] = []
  try {
    const count = metadata.readInt32BE(2)
    let at = 6
    for (let i = 0; i < count; i++) {
      const length = metadata.readInt16BE(at)
      topics.push(metadata.toString('utf8', at + 2, at + 2 + length))
      at += 2 + length
    }
  } catch {
    return undefined
  }
  return topics
}
