/**
 * A classic consumer group: joins, syncs, heartbeats and departures through the states Empty → PreparingRebalance →
 * CompletingRebalance → Stable. A state machine of (state, request, now): replies go to callbacks, at once or when the
 * group gets that far; time passes only by `expire`. Rules as measured on Kafka 4.3.1.
 *
 * Invariant: at most one join and one sync callback per member; one that is overtaken is never called.
 */
import { errorCodes } from '../protocol/error-codes.ts'
import { GroupOffsets } from './group-offsets.ts'
import {
  joinError,
  type JoinReply,
  type JoinRequest,
  type Member,
  metadataOf,
  newMember,
  noBytes,
  sameProtocols,
  subscribedTopics,
  type SyncReply,
  type SyncRequest,
} from './group-member.ts'

export type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable'

export interface GroupOptions {
  /** How long an empty group waits for more members after the first join. */
  initialDelayMs: number
  newMemberId(clientId: string): string
  /** Told of every change of state, for statistics. */
  onState?: (state: GroupState) => void
  /** Told of every member that did not leave but was given up, with the group's generation then: its session ended, or a rebalance went on without it. */
  onGivenUp?: (groupId: string, member: Member, generation: number) => void
}

export class Group {
  readonly id: string
  readonly offsets = new GroupOffsets()
  readonly members = new Map<string, Member>()
  generation = 0
  protocolType = ''
  protocolName: string | null = null
  leader = ''
  emptySinceMs: number | undefined
  readonly #options: GroupOptions
  readonly #pendingIds = new Map<string, number>()
  #state: GroupState = 'Empty'
  #deadlineMs = Number.POSITIVE_INFINITY
  /** Until when an empty group waits for more members. */
  #initialUntilMs = 0
  /** What the log would give back after the coordinator moved: the last generation that was assigned. */
  #stored: { generation: number; protocolName: string | null; leader: string; members: Member[] } | undefined

  constructor(id: string, options: GroupOptions, nowMs: number) {
    this.id = id
    this.#options = options
    this.emptySinceMs = nowMs
  }

  get state(): GroupState {
    return this.#state
  }

  join(request: JoinRequest, nowMs: number, reply: (reply: JoinReply) => void): void {
    const refused = this.#refuseJoin(request, nowMs)
    if (refused !== undefined) return reply(refused)
    const named = request.instanceId === null ? undefined : this.#byInstance(request.instanceId)
    if (named !== undefined && request.memberId === '') return this.#replaceStatic(named, request, nowMs, reply)
    const member = this.members.get(request.memberId)
    if (member === undefined) return this.#admit(request, nowMs, reply)
    const same = sameProtocols(member.protocols, request.protocols)
    const isLeader = member.id === this.leader
    if (same && (this.#state === 'CompletingRebalance' || (this.#state === 'Stable' && !isLeader))) {
      member.expiresAtMs = nowMs + member.sessionTimeoutMs
      return reply(this.#currentGeneration(member))
    }
    this.#update(member, request, nowMs)
    member.join = reply
    this.#prepare(nowMs)
  }

  sync(request: SyncRequest, nowMs: number, reply: (reply: SyncReply) => void): void {
    const member = this.members.get(request.memberId)
    const errorCode = this.#checkMember(request.memberId, request.instanceId, request.generation)
    if (errorCode !== 0 || member === undefined) return reply({ errorCode, assignment: noBytes })
    if (request.protocolName !== null && request.protocolName !== this.protocolName) {
      return reply({ errorCode: errorCodes.INCONSISTENT_GROUP_PROTOCOL, assignment: noBytes })
    }
    member.expiresAtMs = nowMs + member.sessionTimeoutMs
    if (this.#state === 'PreparingRebalance') {
      return reply({ errorCode: errorCodes.REBALANCE_IN_PROGRESS, assignment: noBytes })
    }
    member.unsynced = false
    if (this.#state === 'Stable') return reply({ errorCode: 0, assignment: member.assignment })
    member.sync = reply
    if (member.id === this.leader) this.#assign(request.assignments, nowMs)
  }

  heartbeat(memberId: string, instanceId: string | null, generation: number, nowMs: number): number {
    const errorCode = this.#checkMember(memberId, instanceId, generation)
    const member = this.members.get(memberId)
    if (errorCode !== 0 || member === undefined) return errorCode
    member.expiresAtMs = nowMs + member.sessionTimeoutMs
    return this.#state === 'PreparingRebalance' ? errorCodes.REBALANCE_IN_PROGRESS : 0
  }

  leave(memberId: string, instanceId: string | null, nowMs: number): number {
    const named = instanceId === null ? undefined : this.#byInstance(instanceId)
    if (instanceId !== null && named === undefined) return errorCodes.UNKNOWN_MEMBER_ID
    if (named !== undefined && memberId !== '' && memberId !== named.id) return errorCodes.FENCED_INSTANCE_ID
    if (this.#pendingIds.delete(memberId)) {
      this.#completeIfAll(nowMs)
      return 0
    }
    const member = named ?? this.members.get(memberId)
    if (member === undefined) return errorCodes.UNKNOWN_MEMBER_ID
    this.#remove(member, nowMs)
    return 0
  }

  /** Whether an OffsetCommit may be written; renews the member's session where it may. */
  checkCommit(memberId: string, instanceId: string | null, generation: number, nowMs: number): number {
    if (generation < 0 && memberId === '') return this.members.size === 0 ? 0 : errorCodes.UNKNOWN_MEMBER_ID
    const errorCode = this.#checkMember(memberId, instanceId, generation)
    const member = this.members.get(memberId)
    if (errorCode !== 0 || member === undefined) return errorCode
    if (this.#state === 'CompletingRebalance') return errorCodes.REBALANCE_IN_PROGRESS
    member.expiresAtMs = nowMs + member.sessionTimeoutMs
    return 0
  }

  /** TxnOffsetCommit: fenced by member and generation where it names them, and by nothing else. */
  checkTransactionalCommit(memberId: string, instanceId: string | null, generation: number): number {
    return generation < 0 && memberId === '' ? 0 : this.#checkMember(memberId, instanceId, generation)
  }

  /** Ends what has waited too long: sessions, pending ids, a rebalance. */
  expire(nowMs: number): void {
    for (const [id, deadlineMs] of this.#pendingIds) if (nowMs >= deadlineMs) this.#pendingIds.delete(id)
    for (const member of Array.from(this.members.values())) {
      if (nowMs < sessionEnd(member) || !this.members.has(member.id)) continue
      this.#options.onGivenUp?.(this.id, member, this.generation)
      this.#remove(member, nowMs)
    }
    if (nowMs < this.#deadlineMs) {
      if (this.#state === 'PreparingRebalance' && this.#pendingIds.size === 0) this.#completeIfAll(nowMs)
      return
    }
    this.#deadlineMs = Number.POSITIVE_INFINITY
    if (this.#state === 'PreparingRebalance') this.#complete(nowMs)
    else if (this.#state === 'CompletingRebalance') {
      for (const member of Array.from(this.members.values())) {
        if (!member.unsynced) continue
        this.#options.onGivenUp?.(this.id, member, this.generation)
        this.#remove(member, nowMs)
      }
    }
  }

  nextDeadline(): number {
    let next = this.#deadlineMs
    for (const deadlineMs of this.#pendingIds.values()) next = Math.min(next, deadlineMs)
    for (const member of this.members.values()) next = Math.min(next, sessionEnd(member))
    return next
  }

  /** Topics whose rows stay: subscribed by any member. Undefined, i.e. all: no consumer group, or it cannot be read. */
  subscribed(): ReadonlySet<string> | undefined {
    const topics = new Set<string>()
    if (this.members.size > 0 && this.protocolType !== 'consumer') return undefined
    for (const { protocols } of this.members.values()) {
      for (const { metadata } of protocols) {
        const read = subscribedTopics(metadata)
        if (read === undefined) return undefined
        for (const topic of read) topics.add(topic)
      }
    }
    return topics
  }

  /**
   * The coordinator moved or restarted: what was not assigned yet is forgotten, callbacks are never called, and each
   * member knows only its selected protocol.
   */
  reload(nowMs: number): void {
    const stored = this.#stored
    this.members.clear()
    this.#pendingIds.clear()
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.generation = stored?.generation ?? this.generation
    this.protocolName = stored?.protocolName ?? null
    this.leader = stored?.leader ?? ''
    for (const member of stored?.members ?? []) {
      const protocols = member.protocols.filter((p) => p.name === this.protocolName)
      const expiresAtMs = nowMs + member.sessionTimeoutMs
      this.members.set(member.id, { ...member, protocols, expiresAtMs, join: undefined, sync: undefined })
    }
    this.#enter(this.members.size === 0 ? 'Empty' : 'Stable', nowMs)
  }

  #refuseJoin(request: JoinRequest, nowMs: number): JoinReply | undefined {
    const { memberId, instanceId } = request
    if (request.protocols.length === 0 || !this.#isCompatible(request)) {
      return joinError(errorCodes.INCONSISTENT_GROUP_PROTOCOL, memberId)
    }
    const named = instanceId === null ? undefined : this.#byInstance(instanceId)
    if (memberId !== '') {
      if (named !== undefined && named.id !== memberId) return joinError(errorCodes.FENCED_INSTANCE_ID, memberId)
      const known = this.members.has(memberId) || this.#pendingIds.has(memberId)
      return known ? undefined : joinError(errorCodes.UNKNOWN_MEMBER_ID, memberId)
    }
    if (instanceId !== null || !request.requireKnownMember) return undefined
    const id = this.#options.newMemberId(request.clientId)
    this.#pendingIds.set(id, nowMs + request.sessionTimeoutMs)
    return joinError(errorCodes.MEMBER_ID_REQUIRED, id)
  }

  #isCompatible(request: JoinRequest): boolean {
    if (this.members.size === 0) return true
    if (request.protocolType !== this.protocolType) return false
    const others = Array.from(this.members.values()).filter((m) => m.id !== request.memberId)
    return request.protocols.some((p) => others.every((m) => m.protocols.some((q) => q.name === p.name)))
  }

  #admit(request: JoinRequest, nowMs: number, reply: (reply: JoinReply) => void): void {
    const id =
      request.memberId === '' ? this.#options.newMemberId(request.instanceId ?? request.clientId) : request.memberId
    this.#pendingIds.delete(id)
    const member = newMember(id, request, nowMs)
    member.join = reply
    this.members.set(id, member)
    this.protocolType = request.protocolType
    this.#prepare(nowMs)
  }

  #replaceStatic(old: Member, request: JoinRequest, nowMs: number, reply: (reply: JoinReply) => void): void {
    const member: Member = {
      ...old,
      id: this.#options.newMemberId(request.instanceId ?? ''),
      join: undefined,
      sync: undefined,
    }
    old.join?.(joinError(errorCodes.FENCED_INSTANCE_ID, old.id))
    old.sync?.({ errorCode: errorCodes.FENCED_INSTANCE_ID, assignment: noBytes })
    const formerLeader = this.leader
    this.members.delete(old.id)
    this.members.set(member.id, member)
    if (this.leader === old.id) this.leader = member.id
    this.#update(member, request, nowMs)
    if (this.#state === 'Stable' && this.#selectProtocol() === this.protocolName) {
      this.#store()
      const leads = this.leader === member.id
      const answer = this.#currentGeneration(member)
      if (!leads) return reply(answer)
      if (request.canSkipAssignment) return reply({ ...answer, skipAssignment: true })
      return reply({ ...answer, leader: formerLeader, members: [] })
    }
    member.join = reply
    this.#prepare(nowMs)
  }

  #update(member: Member, request: JoinRequest, nowMs: number): void {
    member.protocols = request.protocols
    member.sessionTimeoutMs = request.sessionTimeoutMs
    member.rebalanceTimeoutMs = request.rebalanceTimeoutMs
    member.expiresAtMs = nowMs + request.sessionTimeoutMs
  }

  #prepare(nowMs: number): void {
    if (this.#state !== 'PreparingRebalance') {
      const wasEmpty = this.#state === 'Empty'
      for (const member of this.members.values()) {
        member.sync?.({ errorCode: errorCodes.REBALANCE_IN_PROGRESS, assignment: noBytes })
        member.sync = undefined
      }
      const longest = Math.max(...Array.from(this.members.values(), (m) => m.rebalanceTimeoutMs))
      if (wasEmpty) this.#initialUntilMs = nowMs + this.#options.initialDelayMs
      this.#deadlineMs = wasEmpty ? this.#initialUntilMs : nowMs + longest
      this.#enter('PreparingRebalance', nowMs)
    }
    this.#completeIfAll(nowMs)
  }

  #completeIfAll(nowMs: number): void {
    if (this.#state !== 'PreparingRebalance' || this.#pendingIds.size > 0 || nowMs < this.#initialUntilMs) return
    if (Array.from(this.members.values()).every((m) => m.join !== undefined)) this.#complete(nowMs)
  }

  /** Everybody is here, or has been waited for long enough: the next generation begins. */
  #complete(nowMs: number): void {
    for (const member of Array.from(this.members.values())) {
      if (member.join !== undefined || member.instanceId !== null) continue
      this.#options.onGivenUp?.(this.id, member, this.generation)
      this.members.delete(member.id)
    }
    this.generation++
    if (this.members.size === 0) {
      this.#deadlineMs = Number.POSITIVE_INFINITY
      this.protocolName = null
      this.leader = ''
      this.#enter('Empty', nowMs)
      this.#store()
      return
    }
    this.protocolName = this.#selectProtocol()
    if (this.members.get(this.leader)?.join === undefined) {
      this.leader = Array.from(this.members.values()).find((m) => m.join !== undefined)?.id ?? ''
    }
    const members = Array.from(this.members.values())
    this.#deadlineMs = nowMs + Math.max(...members.map((m) => m.rebalanceTimeoutMs))
    this.#enter('CompletingRebalance', nowMs)
    for (const member of members) {
      member.unsynced = true
      member.expiresAtMs = nowMs + member.sessionTimeoutMs
      const { join } = member
      member.join = undefined
      join?.(this.#currentGeneration(member))
    }
  }

  #assign(assignments: SyncRequest['assignments'], nowMs: number): void {
    for (const member of this.members.values()) {
      member.assignment = assignments.find((a) => a.memberId === member.id)?.assignment ?? noBytes
    }
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.#enter('Stable', nowMs)
    this.#store()
    for (const member of Array.from(this.members.values())) {
      const { sync } = member
      member.sync = undefined
      member.expiresAtMs = nowMs + member.sessionTimeoutMs
      sync?.({ errorCode: 0, assignment: member.assignment })
    }
  }

  #remove(member: Member, nowMs: number): void {
    this.members.delete(member.id)
    member.join?.(joinError(errorCodes.UNKNOWN_MEMBER_ID, member.id))
    member.sync?.({ errorCode: errorCodes.UNKNOWN_MEMBER_ID, assignment: noBytes })
    if (this.#state === 'PreparingRebalance') this.#completeIfAll(nowMs)
    else if (this.members.size === 0) this.#complete(nowMs)
    else this.#prepare(nowMs)
  }

  #currentGeneration(member: Member): JoinReply {
    const leads = member.id === this.leader
    const members = leads
      ? Array.from(this.members.values(), (m) => ({
          memberId: m.id,
          instanceId: m.instanceId,
          metadata: metadataOf(m, this.protocolName),
        }))
      : []
    const { generation, protocolName, leader } = this
    return { errorCode: 0, generation, protocolName, leader, skipAssignment: false, memberId: member.id, members }
  }

  /** Each member votes for the first of its protocols that all support. */
  #selectProtocol(): string | null {
    const members = Array.from(this.members.values())
    const votes = new Map<string, number>()
    for (const member of members) {
      const vote = member.protocols.find((p) => members.every((m) => m.protocols.some((q) => q.name === p.name)))
      if (vote !== undefined) votes.set(vote.name, (votes.get(vote.name) ?? 0) + 1)
    }
    return Array.from(votes).sort((a, b) => b[1] - a[1])[0]?.[0] ?? null
  }

  #checkMember(memberId: string, instanceId: string | null, generation: number): number {
    const named = instanceId === null ? undefined : this.#byInstance(instanceId)
    if (instanceId !== null && named === undefined) return errorCodes.UNKNOWN_MEMBER_ID
    if (named !== undefined && named.id !== memberId) return errorCodes.FENCED_INSTANCE_ID
    if (!this.members.has(memberId)) return errorCodes.UNKNOWN_MEMBER_ID
    return generation === this.generation ? 0 : errorCodes.ILLEGAL_GENERATION
  }

  #byInstance(instanceId: string): Member | undefined {
    return Array.from(this.members.values()).find((m) => m.instanceId === instanceId)
  }

  #store(): void {
    const { generation, protocolName, leader } = this
    this.#stored = { generation, protocolName, leader, members: Array.from(this.members.values(), (m) => ({ ...m })) }
  }

  #enter(state: GroupState, nowMs: number): void {
    this.#state = state
    this.emptySinceMs = state === 'Empty' ? nowMs : undefined
    this.#options.onState?.(state)
  }
}

/** A member whose join or sync is held does not run out of its session. */
function sessionEnd(member: Member): number {
  return member.join !== undefined || member.sync !== undefined ? Number.POSITIVE_INFINITY : member.expiresAtMs
}
