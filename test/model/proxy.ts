/**
 * One proxy: the real reducers behind a thin shell, as the feature's shell will be. It can be killed, paused (it
 * handles nothing, then everything that waited) and cut off from the state.
 */
import {
  reduceCoordinator,
  newCoordinator,
  type CoordinatorEvent,
  type CoordinatorState,
} from '../../src/features/layouts/expansion.ts'
import { type ChangePlan, makePlan } from '../../src/features/layouts/control/change-plan.ts'
import { fateOf, proposalOf } from '../../src/features/layouts/control/wish.ts'
import { reduceGuard, type GuardEvent } from '../../src/features/layouts/guard.ts'
import { newGuard, type Batch, type CountReason, type GuardState } from '../../src/features/layouts/guard-state.ts'
import type { LayoutTimes } from '../../src/features/layouts/times.ts'
import { countShown } from '../../src/features/layouts/shrink.ts'
import { leaseHolds, newLease, reduceLease, type LeaseState } from '../../src/state/lease.ts'
import { applyEntry, emptyLog, fleetOf, topicOf, type LogState } from '../../src/state/log-reducer.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { keyOf } from '../../src/state/records.ts'
import { dueSnapshots, erasableKeys } from '../../src/state/snapshot.ts'
import { mayPropose } from '../../src/state/topic-reducer.ts'
import { currentLayout, type Proposal, widestCount } from '../../src/state/topic-state.ts'
import type { Rec, SentBatch } from './broker.ts'
import { Fetcher } from './fetcher.ts'
import { distort } from './mutations.ts'
import type { Model } from './model.ts'
import type { Connection, ProduceRequest } from './connection.ts'
import { Link } from './world.ts'
import type { View } from '../../src/state/view.ts'

export const topicId = 'T'

interface Flight {
  batch: SentBatch
  connection: Connection
  request: ProduceRequest
  index: number
}

export class Proxy {
  readonly model: Model
  readonly id: string
  readonly fetcher: Fetcher
  /** Everything read so far. */
  #log: LogState = emptyLog()
  /** The state at the last confirmed read of the log's end: the only one to act upon, half way to the end a view may miss what compaction took. */
  log: LogState = emptyLog()
  #fedPosition = -1
  guard: GuardState
  isDead = false
  isPaused = false
  readonly connections = new Set<Connection>()
  /** With those whose opening is still on its way. */
  readonly sockets = new Set<Connection>()
  readonly #times: LayoutTimes
  #lease: LeaseState
  #coordinator: CoordinatorState
  #cursor = 0
  #isCutOff = false
  #inbox: (() => void)[] = []
  #ids = 0
  #batches = new Map<string, Flight>()
  /** Came while the lease had lapsed. */
  #parked: { batch: Batch; sinceMs: number }[] = []
  #metadata: { instance: string | undefined; answer: (count: number | undefined) => void; sinceMs: number }[] = []
  readonly #keys = new Map<string, string[]>()
  readonly #appends: Link
  #wish: { plan: ChangePlan; id: string; seen: Proposal | undefined; sentMs: number } | undefined

  constructor(model: Model, id: string) {
    this.model = model
    this.id = id
    this.#times = model.times
    this.#lease = newLease(model.sessionMs)
    this.guard = newGuard(id, model.times)
    this.#coordinator = newCoordinator(id, model.times)
    this.#appends = new Link(model.world)
    this.fetcher = new Fetcher(this)
    this.#readLoop()
    this.#heartbeatLoop()
    this.#tickLoop()
    this.#append({ kind: 'register', proxy: id, host: id })
  }

  /** Handles a message now, or when the pause ends; a dead proxy handles none. */
  receive(run: () => void): void {
    if (this.isDead) return
    if (this.isPaused) this.#inbox.push(run)
    else run()
  }

  get view(): View | undefined {
    const topic = topicOf(this.log, topicId)
    return topic === undefined ? undefined : { topic, fleet: fleetOf(this.log), position: this.log.position }
  }

  get mayAct(): boolean {
    const now = { monotonicMs: this.model.world.now, wallMs: this.model.world.now }
    return this.view !== undefined && leaseHolds(this.#lease, now)
  }

  kill(): void {
    this.isDead = true
    for (const connection of [...this.sockets]) connection.close()
    this.model.world.log(() => `${this.id} dies`)
  }

  pause(forMs: number): void {
    this.isPaused = true
    this.model.world.log(() => `${this.id} is paused for ${forMs}`)
    this.model.world.after(forMs, () => {
      this.isPaused = false
      this.model.world.log(() => `${this.id} resumes`)
      const waiting = this.#inbox
      this.#inbox = []
      for (const run of waiting) this.receive(run)
    })
  }

  cutOffState(forMs: number): void {
    this.#isCutOff = true
    this.#appends.stall(this.model.world.now + forMs)
    this.model.world.log(() => `${this.id} is cut off from the state for ${forMs}`)
    this.model.world.after(forMs, () => {
      this.#isCutOff = false
    })
  }

  // --- clients

  opened(connection: Connection): void {
    this.connections.add(connection)
    if (connection.isProducer)
      this.#toGuard({ type: 'connected', instance: connection.client, connection: String(connection.broker) })
    if (connection.role === 'idempotent producer') {
      this.#toGuard({ type: 'writer', instance: connection.client, wrote: false })
      this.model.world.noteWriter(connection.client)
    }
  }

  /** The client's or the broker's side is gone: what was unanswered is lost with it. */
  closed(connection: Connection): void {
    if (!this.connections.delete(connection) || this.isDead) return
    for (const [id, flight] of this.#batches) {
      if (flight.connection !== connection) continue
      this.#batches.delete(id)
      if (this.model.world.mutation !== 'owed-forgotten') this.#toGuard({ type: 'failed', id })
      else this.#toGuard({ type: 'answered', id, end: 0, lapsed: false })
    }
    if (!connection.isProducer) return
    const hasOthers = [...this.connections].some((other) => other.client === connection.client)
    if (this.model.world.mutation === 'leaving-is-clean' && !hasOthers) {
      const ledgers = new Map(this.guard.ledgers)
      ledgers.delete(connection.client)
      this.guard = { ...this.guard, ledgers }
      return
    }
    this.#toGuard({ type: 'lost', instance: connection.client, connection: String(connection.broker) })
  }

  produce(connection: Connection, request: ProduceRequest): void {
    this.model.world.noteWriter(connection.client)
    request.batches.forEach((batch, index) => {
      const id = `${this.id}#${this.#ids++}`
      this.#batches.set(id, { batch, connection, request, index })
      this.#keys.set(id, [...new Set(batch.records.map((record) => record.key))])
      const first = batch.records[0] as Rec
      const mark =
        batch.pid === undefined
          ? `${first.producer}/${first.sequence}`
          : `${batch.pid}/${batch.partition}/${batch.sequence}`
      this.#admit({
        id,
        instance: connection.client,
        partition: batch.partition,
        mark,
        hashes: batch.records.map((record) => record.hash),
        // What a proxy can know: the most it saw in flight; five is where the pipelining families stop.
        hasRoom: connection.mostInFlight > 1 && connection.inFlight < 5,
        mayRefuse: batch.pid !== undefined || connection.mostInFlight <= 1,
        ...(batch.pid === undefined
          ? {}
          : { sequenced: { producerId: batch.pid, producerEpoch: 0, sequence: batch.sequence ?? 0 } }),
      })
    })
  }

  /** Of a producer by its name; consumers (undefined) see a partition until it is drained. */
  metadata(instance: string | undefined, answer: (count: number | undefined) => void): void {
    this.#metadata.push({ instance, answer, sinceMs: this.model.world.now })
    this.#answerMetadata()
  }

  #admit(batch: Batch): void {
    if (this.mayAct) this.#toGuard({ type: 'batch', batch })
    else this.#parked.push({ batch, sinceMs: this.model.world.now })
  }

  #answerMetadata(): void {
    const view = this.view
    const rest = this.#metadata.splice(0)
    for (const item of rest) {
      const isHeld = !this.mayAct || view === undefined || view.topic.proposal?.preparingAt !== undefined
      if (isHeld && this.model.world.now - item.sinceMs < 4000) {
        this.#metadata.push(item)
      } else if (isHeld || view === undefined) {
        item.answer(undefined)
      } else if (item.instance === undefined) {
        item.answer(widestCount(view.topic))
      } else {
        const layout = countShown(view.topic, this.guard.ledgers.get(item.instance))
        this.#toGuard({ type: 'shown', instance: item.instance, epoch: layout.epoch })
        item.answer(layout.count)
      }
    }
  }

  // --- guard

  #toGuard(event: GuardEvent): void {
    const [state, effects] = reduceGuard(this.guard, { ...event, atMs: this.model.world.now })
    this.guard = state
    for (const effect of effects) {
      switch (effect.type) {
        case 'append':
          this.#append(effect.record)
          break
        case 'read-ends': {
          this.#readEnds(effect.partitions, (ends) => this.#toGuard({ type: 'ends', round: effect.round, ends }))
          break
        }
        case 'forward':
          this.#forward(effect.batch)
          break
        case 'refuse':
          this.model.world.count(`refused: ${effect.reason}`)
          this.#finish(effect.batch.id, 'refused')
          break
        case 'count': {
          if (distort.isSilent(this.model, effect.reason)) break
          this.model.world.count(`counted: ${effect.reason}`)
          const { batch, instance } = effect
          this.model.world.log(
            () => `${this.id} counts ${effect.reason} ${instance} ${batch?.mark} in ${batch?.partition}`,
          )
          this.model.world.excuse(instance, batch === undefined ? ['*'] : (this.#keys.get(batch.id) ?? ['*']))
          if (batch !== undefined) this.#askForCause(effect.reason, batch)
          break
        }
      }
    }
  }

  /** A seal that was waited for as the rules say leaves nothing to count: only giving somebody up does, or a producer that no proxy could tell from another client before its first Produce. */
  #askForCause(reason: CountReason, batch: Batch): void {
    if (reason !== 'late after the seal' && reason !== 'late above the boundary') return
    const { world } = this.model
    const seals = this.view?.topic.layouts.flatMap((layout) => (layout.seal === undefined ? [] : [layout.seal])) ?? []
    const knownMs = world.writers.get(batch.instance) ?? Infinity
    const isExpected = seals.some((seal) => seal.forced || seal.gaveUp.length > 0 || seal.atMs < knownMs)
    if (!isExpected)
      world.needless.push(`${this.id} at ${world.now.toFixed(0)}: ${reason}: ${batch.mark} in ${batch.partition}`)
  }

  #forward(batch: Batch): void {
    const flight = this.#batches.get(batch.id)
    if (flight === undefined) return
    flight.connection.upstream.send(() => {
      const result = this.model.broker.produce(flight.batch)
      this.model.world.log(
        () =>
          `broker ${flight.batch.partition} ${JSON.stringify(result)} ${flight.batch.records.map((r) => `${r.producer}.${r.sequence}k${r.key}`).join(' ')}`,
      )
      flight.connection.downstream.send(() => this.receive(() => this.#answered(batch.id, result)))
    }, flight.connection.lastGetThrough)
  }

  #answered(id: string, result: ReturnType<Model['broker']['produce']>): void {
    if (!this.#batches.has(id)) return
    const lapsed = !this.mayAct && this.model.world.mutation !== 'lease-not-checked-again'
    if (result.ok) this.#toGuard({ type: 'answered', id, end: result.end, lapsed })
    else if (this.model.world.mutation === 'owed-forgotten') this.#toGuard({ type: 'answered', id, end: 0, lapsed })
    else this.#toGuard({ type: 'failed', id })
    this.#finish(id, result)
  }

  #finish(id: string, result: ReturnType<Model['broker']['produce']> | 'refused'): void {
    const flight = this.#batches.get(id)
    if (flight === undefined) return
    this.#batches.delete(id)
    flight.request.results[flight.index] = result
    flight.request.open -= 1
    if (flight.request.open === 0) flight.connection.answer(flight.request)
  }

  // --- loops

  #tickLoop(): void {
    const tick = (): void => {
      if (this.isDead) return
      if (!this.isPaused) this.#tick()
      this.model.world.after(100, tick)
    }
    this.model.world.after(this.model.world.random.int(1, 100), tick)
  }

  #tick(): void {
    const view = this.view
    const now = this.model.world.now
    for (const item of this.#parked.splice(0)) {
      if (this.mayAct) this.#toGuard({ type: 'batch', batch: item.batch })
      else if (now - item.sinceMs >= this.#times.holdBoundMs) this.#finish(item.batch.id, 'refused')
      else this.#parked.push(item)
    }
    this.#noteLeaders()
    this.#answerMetadata()
    this.fetcher.tick()
    if (!this.mayAct || view === undefined) return
    this.#feedView(view)
    this.#followWish(view)
    this.#toGuard({ type: 'tick' })
    this.#toCoordinator({ type: 'tick' })
    if (this.#coordinator.isLeader && this.model.world.random.chance(0.02)) this.#tidy()
  }

  /** Which partitions have no leader is known from Metadata, a little late. */
  #noteLeaders(): void {
    const known = new Set(this.guard.stops)
    for (const partition of this.model.broker.leaderless) {
      if (!known.delete(`leader ${partition}`)) this.#toGuard({ type: 'stopped', reason: `leader ${partition}` })
    }
    for (const reason of known) this.#toGuard({ type: 'resumed', reason })
  }

  #tidy(): void {
    const tail = this.model.world.random.int(4, 25)
    const forgetBefore = this.model.world.now - 2 * this.#times.goneAfterMs
    for (const record of dueSnapshots(this.log, this.id, tail, forgetBefore)) this.#append(record)
    if (this.model.world.random.chance(0.7)) for (const key of erasableKeys(this.log)) this.#appendRaw(key, undefined)
  }

  /** An admin asks this proxy for a count: its proposal goes to the log, the leader goes on with it. */
  wish(to: number): void {
    const { view } = this
    if (view === undefined || !this.mayAct || this.#wish !== undefined) return
    const plan = makePlan(view.topic, this.model.order, to > currentLayout(view.topic).count ? 'expand' : 'shrink', to)
    const gates = this.model.gatesFor(view.topic, to)
    if (!mayPropose(view.topic, to, gates)) return
    this.#wish = { plan: { ...plan, gates }, id: `${this.id}/${this.#ids++}`, seen: undefined, sentMs: -Infinity }
    this.#followWish(view)
  }

  #followWish(view: View): void {
    const wish = this.#wish
    if (wish === undefined) return
    const outcome = fateOf(wish.plan, wish.id, wish.seen, view.topic)
    if (outcome !== undefined) {
      this.#wish = undefined
      return this.model.world.count(`wish ${outcome.kind}`)
    }
    wish.seen = view.topic.proposal ?? wish.seen
    if (wish.seen !== undefined || this.model.world.now - wish.sentMs < this.#times.retryMs) return
    wish.sentMs = this.model.world.now
    this.#append(proposalOf(wish.plan, wish.id, this.id, topicId, false))
  }

  #toCoordinator(event: CoordinatorEvent): void {
    const [state, effects] = reduceCoordinator(this.#coordinator, { ...event, atMs: this.model.world.now })
    this.#coordinator = state
    const { broker } = this.model
    for (const effect of effects) {
      switch (effect.type) {
        case 'append':
          if (this.mayAct) this.#append(effect.record)
          break
        case 'create':
          this.#rpc(
            () => broker.create(effect.count),
            () => undefined,
          )
          break
        case 'observe':
          this.#rpc(
            () => ({ count: broker.partitions.length, isLed: broker.leaderless.size === 0 }),
            (seen) => this.#toCoordinator({ type: 'observed', ...seen, leaderEpochs: {} }),
          )
          break
        case 'read-starts':
          this.#rpc(
            () => Object.fromEntries(effect.partitions.map((p) => [p, broker.logStart(p)])),
            (starts) => this.#toCoordinator({ type: 'starts', starts }),
          )
          break
        case 'read-ends': {
          const { what } = effect
          const early = distort.earlyEnds(this.model, what)
          if (early !== undefined) this.#toCoordinator({ type: 'ends', what, ends: early })
          else this.#readEnds(effect.partitions, (ends) => this.#toCoordinator({ type: 'ends', what, ends }))
          break
        }
      }
    }
  }

  // --- the log and the fleet

  #append(wanted: StateRecord): void {
    const record = distort.record(this.model, wanted)
    this.#appendRaw(distort.key(this.model, record, keyOf(record, `${this.id}:${this.#ids++}`)), record)
  }

  #appendRaw(key: string, record: StateRecord | undefined): void {
    const { world, stateLog } = this.model
    if (world.areFaultsOn && world.random.chance(0.03)) return world.count('append lost')
    this.#appends.send(() => stateLog.append(key, record))
  }

  #readLoop(): void {
    const read = (): void => {
      if (this.isDead) return
      this.model.world.after(this.model.world.random.int(60, 160), read)
      if (this.isPaused) return
      const sent = { monotonicMs: this.model.world.now, wallMs: this.model.world.now }
      this.#stateRpc(
        () => this.model.stateLog.read(this.#cursor, this.model.readMax),
        (answer) => {
          for (const entry of answer.entries) this.#log = applyEntry(this.#log, entry)
          this.#cursor = Math.max(this.#cursor, answer.next)
          if (this.#cursor >= answer.end) this.#caughtUp(sent)
        },
      )
    }
    this.model.world.after(1, read)
  }

  #caughtUp(sent: { monotonicMs: number; wallMs: number }): void {
    this.log = this.#log
    this.#lease = reduceLease(this.#lease, { type: 'read', sent })
    const member = fleetOf(this.log).members[this.id]
    if (member?.expelledAt !== undefined) {
      this.model.world.count('proxy saw its own expulsion')
      this.model.restart(this)
      return
    }
    this.#lease = reduceLease(this.#lease, { type: 'member', member: member !== undefined })
    if (member === undefined && this.model.world.random.chance(0.1))
      this.#append({ kind: 'register', proxy: this.id, host: this.id })
    const view = this.view
    if (view === undefined) {
      if (member !== undefined && this.model.world.random.chance(0.3)) {
        this.#append({ kind: 'topic', proxy: this.id, topicId, name: 'topic', count: this.model.firstCount })
      }
      return
    }
    this.#feedView(view)
  }

  #feedView(view: View): void {
    if (!this.mayAct || this.#fedPosition === view.position) return
    this.#fedPosition = view.position
    this.#toGuard({ type: 'view', view: distort.guardView(this.model, view) })
    this.#toCoordinator({ type: 'view', view })
    this.#answerMetadata()
  }

  #heartbeatLoop(): void {
    const beat = (): void => {
      if (this.isDead) return
      this.model.world.after(this.model.sessionMs / 12, beat)
      if (this.isPaused) return
      const sent = { monotonicMs: this.model.world.now, wallMs: this.model.world.now }
      this.#stateRpc(
        () => this.model.group.heartbeat(this.id),
        (answer) => {
          if (this.model.world.mutation !== 'lease-without-heartbeat')
            this.#lease = reduceLease(this.#lease, { type: 'heartbeat', sent })
          this.#toCoordinator({ type: 'leader', isLeader: answer.leader === this.id })
          if (answer.leader === this.id && this.mayAct) this.#expelMissing(answer.members)
        },
        'heartbeat',
      )
      if (this.model.world.mutation === 'lease-without-heartbeat')
        this.#lease = reduceLease(this.#lease, { type: 'heartbeat', sent })
    }
    beat()
  }

  #expelMissing(members: readonly string[]): void {
    for (const [proxy, member] of Object.entries(fleetOf(this.log).members)) {
      const isThere = members.includes(proxy) || member.expelledAt !== undefined
      if (!isThere && this.model.world.random.chance(0.5))
        this.#append({ kind: 'expel', proxy: this.id, expelled: proxy })
    }
  }

  #readEnds(partitions: readonly number[], then: (ends: Record<number, number>) => void): void {
    this.#rpc(() => Object.fromEntries(partitions.map((p) => [p, this.model.broker.highWatermark(p)])), then)
  }

  /** A request of our own to the cluster: either way it may be lost, and the reducers ask again. */
  #rpc<T>(serve: () => T, then: (answer: T) => void): void {
    this.model.rpc(serve, (answer) => this.receive(() => then(answer)))
  }

  #stateRpc<T>(serve: () => T, then: (answer: T) => void, what = 'read'): void {
    if (this.#isCutOff || (what === 'heartbeat' && this.model.heartbeatsLost.has(this.id))) return
    this.#rpc(serve, (answer) => {
      if (!this.#isCutOff) then(answer)
    })
  }
}
