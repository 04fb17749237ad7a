/** The state log and the fleet as one proxy knows them: reads, appends, heartbeats, the lease. */
import { leaseHolds, type LeaseState, newLease, reduceLease } from '../../src/state/lease.ts'
import { applyEntry, emptyLog, fleetOf, type LogState, topicOf } from '../../src/state/log-reducer.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { keyOf } from '../../src/state/records.ts'
import { dueSnapshots, erasableKeys } from '../../src/state/snapshot.ts'
import type { View } from '../../src/state/view.ts'
import type { Model } from './model.ts'
import { distort } from './mutations.ts'
import { type Proxy, topicId } from './proxy.ts'
import { Link } from './world.ts'

export class Replica {
  readonly #proxy: Proxy
  readonly #model: Model
  readonly #id: string
  /** Everything read so far. */
  #log: LogState = emptyLog()
  /** The state at the last confirmed read of the log's end: the only one to act upon, half way to the end a view may miss what compaction took. */
  log: LogState = emptyLog()
  #lease: LeaseState
  #cursor = 0
  #fedPosition = -1
  #isCutOff = false
  readonly #appends: Link

  constructor(proxy: Proxy) {
    this.#proxy = proxy
    this.#model = proxy.model
    this.#id = proxy.id
    this.#lease = newLease(proxy.model.sessionMs)
    this.#appends = new Link(proxy.model.world)
  }

  start(): void {
    this.#readLoop()
    this.#heartbeatLoop()
    this.append({ kind: 'register', proxy: this.#id, host: this.#id })
  }

  get view(): View | undefined {
    const topic = topicOf(this.log, topicId)
    return topic === undefined ? undefined : { topic, fleet: fleetOf(this.log), position: this.log.position }
  }

  get mayAct(): boolean {
    const now = { monotonicMs: this.#model.world.now, wallMs: this.#model.world.now }
    return this.view !== undefined && leaseHolds(this.#lease, now)
  }

  cutOff(forMs: number): void {
    this.#isCutOff = true
    this.#appends.stall(this.#model.world.now + forMs)
    this.#model.world.log(() => `${this.#id} is cut off from the state for ${forMs}`)
    this.#model.world.after(forMs, () => {
      this.#isCutOff = false
    })
  }

  append(wanted: StateRecord): void {
    const record = distort.record(this.#model, wanted)
    this.#appendRaw(distort.key(this.#model, record, keyOf(record, this.#proxy.nextId())), record)
  }

  #appendRaw(key: string, record: StateRecord | undefined): void {
    const { world, stateLog } = this.#model
    if (world.areFaultsOn && world.random.chance(0.03)) return world.count('append lost')
    this.#appends.send(() => stateLog.append(key, record))
  }

  #readLoop(): void {
    const read = (): void => {
      if (this.#proxy.isDead) return
      this.#model.world.after(this.#model.world.random.int(60, 160), read)
      if (this.#proxy.isPaused) return
      const sent = { monotonicMs: this.#model.world.now, wallMs: this.#model.world.now }
      this.#stateRpc(
        () => this.#model.stateLog.read(this.#cursor, this.#model.readMax),
        (answer) => {
          for (const entry of answer.entries) this.#log = applyEntry(this.#log, entry)
          this.#cursor = Math.max(this.#cursor, answer.next)
          if (this.#cursor >= answer.end) this.#caughtUp(sent)
        },
      )
    }
    this.#model.world.after(1, read)
  }

  #caughtUp(sent: { monotonicMs: number; wallMs: number }): void {
    this.log = this.#log
    this.#lease = reduceLease(this.#lease, { type: 'read', sent })
    const member = fleetOf(this.log).members[this.#id]
    if (member?.expelledAt !== undefined) {
      this.#model.world.count('proxy saw its own expulsion')
      this.#model.restart(this.#proxy)
      return
    }
    this.#lease = reduceLease(this.#lease, { type: 'member', member: member !== undefined })
    if (member === undefined && this.#model.world.random.chance(0.1))
      this.append({ kind: 'register', proxy: this.#id, host: this.#id })
    const view = this.view
    if (view === undefined) {
      if (member !== undefined && this.#model.world.random.chance(0.3)) {
        this.append({ kind: 'topic', proxy: this.#id, topicId, name: 'topic', count: this.#model.firstCount })
      }
      return
    }
    this.feed()
  }

  feed(): void {
    const { view } = this
    if (view === undefined || !this.mayAct || this.#fedPosition === view.position) return
    this.#fedPosition = view.position
    this.#proxy.feed(view)
  }

  tidy(): void {
    const tail = this.#model.world.random.int(4, 25)
    const forgetBefore = this.#model.world.now - 2 * this.#model.times.goneAfterMs
    for (const record of dueSnapshots(this.log, this.#id, tail, forgetBefore)) this.append(record)
    if (this.#model.world.random.chance(0.7)) for (const key of erasableKeys(this.log)) this.#appendRaw(key, undefined)
  }

  #heartbeatLoop(): void {
    const beat = (): void => {
      if (this.#proxy.isDead) return
      this.#model.world.after(this.#model.sessionMs / 12, beat)
      if (this.#proxy.isPaused) return
      const sent = { monotonicMs: this.#model.world.now, wallMs: this.#model.world.now }
      this.#stateRpc(
        () => this.#model.group.heartbeat(this.#id),
        (answer) => {
          if (this.#model.world.mutation !== 'lease-without-heartbeat')
            this.#lease = reduceLease(this.#lease, { type: 'heartbeat', sent })
          this.#proxy.control.setLeader(answer.leader === this.#id)
          if (answer.leader === this.#id && this.mayAct) this.#expelMissing(answer.members)
        },
        'heartbeat',
      )
      if (this.#model.world.mutation === 'lease-without-heartbeat')
        this.#lease = reduceLease(this.#lease, { type: 'heartbeat', sent })
    }
    beat()
  }

  #expelMissing(members: readonly string[]): void {
    for (const [proxy, member] of Object.entries(fleetOf(this.log).members)) {
      const isThere = members.includes(proxy) || member.expelledAt !== undefined
      if (!isThere && this.#model.world.random.chance(0.5))
        this.append({ kind: 'expel', proxy: this.#id, expelled: proxy })
    }
  }

  #stateRpc<T>(serve: () => T, then: (answer: T) => void, what = 'read'): void {
    if (this.#isCutOff || (what === 'heartbeat' && this.#model.heartbeatsLost.has(this.#id))) return
    this.#proxy.rpc(serve, (answer) => {
      if (!this.#isCutOff) then(answer)
    })
  }
}
