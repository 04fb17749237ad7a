/**
 * One proxy's membership of the Kafka group `__headgate`: it finds failures and elects who leads, the log decides.
 *
 * Heartbeats go on a connection of their own and on during a rebalance, when JoinGroup may be held for as long as a dead
 * member's session: an answer 27 says that the coordinator counts this member, so the lease may rest on it.
 */
import { refusal } from '../../cluster/cluster-error.ts'
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import { pause } from '../../cluster/retried.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { joinGroup, type JoinGroupResponse } from '../../protocol/generated/11-join-group.ts'
import { heartbeat } from '../../protocol/generated/12-heartbeat.ts'
import { leaveGroup } from '../../protocol/generated/13-leave-group.ts'
import { syncGroup } from '../../protocol/generated/14-sync-group.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { StateError } from '../errors.ts'
import {
  assign,
  type Assignment,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  protocolName,
  protocolType,
  type Subscription,
} from '../group-protocol.ts'
import type { Moment } from '../lease.ts'
import { Backoff } from './backoff.ts'
import { momentOf } from './moment.ts'

export interface FleetGroupOptions {
  readonly runtime: Runtime
  readonly cluster: ClusterClient
  readonly groupId: string
  readonly subscription: Subscription
  readonly sessionMs: number
  readonly heartbeatMs: number
  readonly timeoutMs: number
  /** The coordinator counted this proxy as a member when it answered what was sent then. */
  readonly onHeartbeat: (sent: Moment) => void
  readonly onAssigned: (assignment: Assignment) => void
  /** No generation now: it rejoins, or cannot. */
  readonly onLost: () => void
  readonly onProblem: (problem: string | undefined) => void
}

/** Joins are held for the rebalance and the group's initial delay (3 s where it is not configured). */
const joinGraceMs = 10_000
/** From here on several members leave at once. */
const LEAVES_TOGETHER_FROM = 3
const joinLane = 'fleet-join'
const beatLane = 'fleet-beat'

export class FleetGroup {
  readonly #options: FleetGroupOptions
  #memberId = ''
  #generation = -1
  #isStopped = false
  readonly #backoff: Backoff
  /** Ends the wait for the end of this generation. */
  #rejoin: (() => void) | undefined

  constructor(options: FleetGroupOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.runtime)
  }

  start(): void {
    void this.#run()
    void this.#beats()
  }

  /** Leaves the group, so that the others need not wait for the session's end. Never rejects. */
  async leave(): Promise<void> {
    this.#isStopped = true
    this.#rejoin?.()
    await this.#leaveAs(this.#memberId)
  }

  async #run(): Promise<void> {
    const { onLost, onProblem } = this.#options
    while (!this.#isStopped) {
      try {
        await this.#belong()
        this.#backoff.reset()
      } catch (error) {
        onProblem((error as Error).message)
        await this.#backoff.wait(error)
      }
      onLost()
    }
  }

  /** Joins, and belongs to the group until its next generation, or until it is put out. */
  async #belong(): Promise<void> {
    const joined = await this.#join()
    if (this.#isStopped) return this.#leaveAs(joined.memberId)
    if (!this.#accepted(joined.errorCode, 'JoinGroup', joined.memberId)) return
    this.#memberId = joined.memberId
    this.#generation = joined.generationId
    const synced = await this.#sync(joined)
    if (this.#isStopped || !this.#accepted(synced.errorCode, 'SyncGroup', joined.memberId)) return
    const assignment = decodeAssignment(synced.assignment)
    this.#options.onProblem(undefined)
    this.#options.onAssigned(assignment)
    void this.#beat()
    await new Promise<void>((resolve) => (this.#rejoin = resolve))
    this.#rejoin = undefined
  }

  #join(): Promise<JoinGroupResponse> {
    const { cluster, groupId, subscription, sessionMs, timeoutMs } = this.#options
    return cluster.askCoordinator(groupId, {
      codec: joinGroup,
      lane: joinLane,
      timeoutMs: sessionMs + timeoutMs + joinGraceMs,
      build: () => ({
        groupId,
        sessionTimeoutMs: sessionMs,
        rebalanceTimeoutMs: sessionMs,
        memberId: this.#memberId,
        groupInstanceId: null,
        protocolType,
        protocols: [{ name: protocolName, metadata: encodeSubscription(subscription) }],
      }),
      errorOf: ({ errorCode }) => errorCode,
    })
  }

  async #sync({ memberId, generationId, leader, members }: JoinGroupResponse) {
    const { cluster, groupId, sessionMs, timeoutMs } = this.#options
    const assignments = leader === memberId ? await this.#assignments(members) : []
    return cluster.askCoordinator(groupId, {
      codec: syncGroup,
      lane: joinLane,
      timeoutMs: sessionMs + timeoutMs,
      attempts: 1,
      build: () => ({
        groupId,
        generationId,
        memberId,
        groupInstanceId: null,
        protocolType,
        protocolName,
        assignments,
      }),
      errorOf: ({ errorCode }) => errorCode,
    })
  }

  /** Who is not understood is not led: another member may be new enough. */
  async #assignments(members: JoinGroupResponse['members']) {
    try {
      const subscriptions = members.map(({ metadata }) => decodeSubscription(metadata))
      const assignment = encodeAssignment(assign(this.#options.subscription.proxy, subscriptions))
      return members.map(({ memberId }) => ({ memberId, assignment }))
    } catch (error) {
      await this.#leaveAs(this.#memberId)
      this.#forget()
      throw error
    }
  }

  /** Whether to go on; false: join again, at once. @throws ClusterError where joining again would not help */
  #accepted(errorCode: number, api: string, memberId: string): boolean {
    switch (errorCode) {
      case errorCodes.NONE:
        return true
      case errorCodes.MEMBER_ID_REQUIRED:
        this.#memberId = memberId
        return false
      case errorCodes.REBALANCE_IN_PROGRESS:
      case errorCodes.ILLEGAL_GENERATION:
        return false
      case errorCodes.UNKNOWN_MEMBER_ID:
        this.#forget()
        return false
    }
    const { groupId, sessionMs } = this.#options
    const what = `${api} of the group ${groupId}`
    if (errorCode === errorCodes.INCONSISTENT_GROUP_PROTOCOL) {
      throw new StateError(
        'HG_STATE_FOREIGN',
        `${what} failed: members of another kind use this group: stop them, or update the proxies that differ`,
      )
    }
    if (errorCode === errorCodes.INVALID_SESSION_TIMEOUT) {
      throw new StateError(
        'HG_STATE_INVALID',
        `${what} failed: the broker does not allow a session time-out of ${sessionMs} ms: see its group.min.session.timeout.ms`,
      )
    }
    throw refusal(what, errorCode)
  }

  #forget(): void {
    this.#memberId = ''
    this.#generation = -1
  }

  async #beats(): Promise<void> {
    while (!this.#isStopped) {
      await this.#beat()
      await pause(this.#options.runtime, this.#options.heartbeatMs)
    }
  }

  /** One heartbeat of the newest generation that this member was given. */
  async #beat(): Promise<void> {
    const { runtime, cluster, groupId, timeoutMs, onHeartbeat, onProblem } = this.#options
    const memberId = this.#memberId
    const generationId = this.#generation
    if (generationId < 0 || this.#isStopped) return
    const sent = momentOf(runtime)
    try {
      const { errorCode } = await cluster.askCoordinator(groupId, {
        codec: heartbeat,
        lane: beatLane,
        timeoutMs,
        attempts: 2,
        build: () => ({ groupId, generationId, memberId, groupInstanceId: null }),
        errorOf: (answer) => answer.errorCode,
      })
      if (memberId !== this.#memberId || generationId !== this.#generation || this.#isStopped) return
      if (errorCode === errorCodes.NONE || errorCode === errorCodes.REBALANCE_IN_PROGRESS) onHeartbeat(sent)
      if (errorCode === errorCodes.NONE) return onProblem(undefined)
      this.#accepted(errorCode, 'Heartbeat', memberId)
      this.#rejoin?.()
    } catch (error) {
      if (!this.#isStopped) onProblem((error as Error).message)
    }
  }

  async #leaveAs(memberId: string): Promise<void> {
    const { cluster, groupId, timeoutMs } = this.#options
    if (memberId === '') return
    try {
      await cluster.askCoordinator(groupId, {
        codec: leaveGroup,
        lane: beatLane,
        timeoutMs,
        attempts: 1,
        build: (version) =>
          version < LEAVES_TOGETHER_FROM
            ? { groupId, memberId }
            : { groupId, members: [{ memberId, groupInstanceId: null, reason: 'the proxy stops' }] },
        errorOf: ({ errorCode }) => errorCode,
      })
    } catch {
      // the session's end does it, later
    }
  }
}
