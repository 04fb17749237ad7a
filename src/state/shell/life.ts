/**
 * One life of this proxy in the fleet, under one proxy id: registered in the log, a member of the group, holder of a
 * lease, until it is expelled or stops. The reducers decide (membership.ts, lease.ts); this feeds them and carries out.
 */
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { fleetOf, type LogState } from '../log-reducer.ts'
import { type LeaseState, leaseHolds, type Moment, newLease, reduceLease } from '../lease.ts'
import { isLeader, type MembershipEvent, type MembershipState, newMembership, reduceMembership } from '../membership.ts'
import type { ProxyId, StateRecord } from '../record.ts'
import { encodeRecord, keyOf } from '../records.ts'
import type { Departure } from '../state.ts'
import type { Appender } from './appender.ts'
import { FleetGroup } from './fleet-group.ts'
import { momentOf } from './moment.ts'
import type { Tidier } from './tidier.ts'

export interface LifeOptions {
  readonly runtime: Runtime
  readonly cluster: ClusterClient
  readonly appender: Appender
  readonly proxy: ProxyId
  /** Where its admin port answers, for people. */
  readonly host: string
  readonly rules: string | undefined
  readonly groupId: string
  readonly sessionMs: number
  readonly heartbeatMs: number
  readonly timeoutMs: number
  /** How often a registration or expulsion that is not seen in the log is appended again. */
  readonly retryMs: number
  readonly tidier: Tidier
  /** Lease, leadership or registration may have changed. */
  readonly onChange: () => void
  /** Expelled: this life is over. */
  readonly onExpelled: () => void
  readonly onProblem: (problem: string | undefined) => void
}

export class Life {
  readonly #options: LifeOptions
  readonly #group: FleetGroup
  #lease: LeaseState
  #membership: MembershipState
  #appended = 0
  #wasMember = false
  #isOver = false

  constructor(options: LifeOptions) {
    const { runtime, cluster, proxy, host, groupId, sessionMs, heartbeatMs, timeoutMs, retryMs, onProblem } = options
    this.#options = options
    this.#lease = newLease(sessionMs)
    this.#membership = newMembership({ proxy, host, rules: options.rules }, sessionMs, retryMs)
    this.#group = new FleetGroup({
      runtime,
      cluster,
      groupId,
      subscription: { proxy, host },
      sessionMs,
      heartbeatMs,
      timeoutMs,
      onHeartbeat: (sent) => this.#heartbeat(sent),
      onAssigned: (assignment) => this.#tell({ type: 'assigned', assignment }),
      onLost: () => this.#tell({ type: 'lost' }),
      onProblem: (problem) => {
        if (!this.#isOver) onProblem(problem)
      },
    })
  }

  get proxy(): ProxyId {
    return this.#options.proxy
  }

  /** Whoever the group made leader, as far as this proxy knows. */
  get leader(): ProxyId | undefined {
    return this.#membership.assignment?.leader
  }

  start(): void {
    this.#group.start()
  }

  mayAct(): boolean {
    return !this.#isOver && leaseHolds(this.#lease, momentOf(this.#options.runtime))
  }

  isLeader(): boolean {
    return isLeader(this.#membership) && this.mayAct()
  }

  /** A confirmed read of the log's end, sent then. */
  read(log: LogState, sent: Moment): void {
    const member = fleetOf(log).members[this.proxy]
    this.#lease = reduceLease(this.#lease, { type: 'read', sent })
    const isMember = member !== undefined && member.expelledAt === undefined
    // asleep for so long that even its expulsion was forgotten: an id lives once
    if (this.#wasMember && member === undefined) return this.#options.onExpelled()
    this.#wasMember ||= isMember
    this.#lease = reduceLease(this.#lease, { type: 'member', member: isMember })
    this.#tell({ type: 'fleet', fleet: fleetOf(log) })
    if (this.isLeader()) this.#options.tidier.tidy(log, this)
  }

  tick(): void {
    this.#tell({ type: 'tick' })
  }

  append(record: StateRecord): void {
    if (this.#isOver) return
    this.#options.appender.append(keyOf(record, `${this.proxy}:${this.#appended++}`), encodeRecord(record))
  }

  /** Says that the record of this key is not needed any more. */
  erase(key: string): void {
    if (!this.#isOver) this.#options.appender.append(key, null)
  }

  /** Ends this life without a word: it was expelled, or its log is void. */
  end(): void {
    this.#isOver = true
    void this.#group.leave()
  }

  /**
   * Ends this life in good order: from here on it does not act, so its expulsion may be written at once, and nobody has
   * to wait for the end of its session. What it says of its writers goes first; without, they are waited for as those of
   * any dead proxy. A lapsed lease says nothing: it may be out already, and what was answered since is not vouched for.
   */
  async leave(departure?: Departure): Promise<void> {
    const { proxy } = this
    const said = this.mayAct() ? departure : undefined
    for (const record of said?.records ?? []) this.append(record)
    const wroteTo = said === undefined ? {} : { wroteTo: [...said.wroteTo] }
    if (this.#lease.member) this.append({ kind: 'expel', proxy, expelled: proxy, ...wroteTo })
    this.#isOver = true
    await Promise.all([this.#options.appender.flushed(), this.#group.leave()])
  }

  #heartbeat(sent: Moment): void {
    if (this.#isOver) return
    this.#lease = reduceLease(this.#lease, { type: 'heartbeat', sent })
    this.#options.onChange()
  }

  #tell(event: MembershipEvent): void {
    if (this.#isOver) return
    const [next, effects] = reduceMembership(this.#membership, { ...event, atMs: this.#options.runtime.now() })
    this.#membership = next
    for (const effect of effects) {
      if (effect.type === 'restart') return this.#options.onExpelled()
      // an assignment that is not backed by the lease may be an old one: whom it misses may have come back
      if (effect.record.kind === 'register' || this.mayAct()) this.append(effect.record)
    }
    this.#options.onChange()
  }
}
