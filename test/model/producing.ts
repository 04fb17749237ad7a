/**
 * The guard of the topic at one proxy: batches of producers in, Metadata out. What the reducer counts is written down, so
 * that the judge can tell counted disorder from a bug.
 */
import { departure, mayWrite } from '../../src/features/layouts/departure.ts'
import { forgetGone } from '../../src/features/layouts/forgetting.ts'
import { type GuardEvent, reduceGuard } from '../../src/features/layouts/guard.ts'
import { type Batch, type CountReason, type GuardState, newGuard } from '../../src/features/layouts/guard-state.ts'
import { pushWhenIdle } from '../../src/features/layouts/push.ts'
import { countShown } from '../../src/features/layouts/shrink.ts'
import { isSettled, widestCount } from '../../src/state/topic-state.ts'
import type { View } from '../../src/state/view.ts'
import type { Rec, SentBatch } from './broker.ts'
import type { Connection, ProduceRequest } from './connection.ts'
import type { Model } from './model.ts'
import { distort } from './mutations.ts'
import { type Proxy, topicId } from './proxy.ts'

interface Flight {
  batch: SentBatch
  connection: Connection
  request: ProduceRequest
  index: number
}

interface Question {
  instance: string | undefined
  answer: (count: number | undefined) => void
  sinceMs: number
}

export class Producing {
  guard: GuardState
  readonly #proxy: Proxy
  readonly #model: Model
  readonly #batches = new Map<string, Flight>()
  /** Came while the lease had lapsed. */
  #parked: { batch: Batch; sinceMs: number }[] = []
  #metadata: Question[] = []
  readonly #keys = new Map<string, string[]>()
  readonly #pushed = new Set<string>()

  constructor(proxy: Proxy) {
    this.#proxy = proxy
    this.#model = proxy.model
    this.guard = newGuard(proxy.id, proxy.model.times)
  }

  feed(view: View): void {
    this.#toGuard({ type: 'view', view: distort.guardView(this.#model, view) })
    this.#answerMetadata()
  }

  tick(): void {
    this.#toGuard({ type: 'tick' })
  }

  /** Forgets who left long ago, as the shell does now and then. */
  tidy(): void {
    const { view } = this.#proxy
    if (view === undefined) return
    const { now } = this.#model.world
    const isSettledNow = view.topic.layouts.every((layout) => isSettled(layout, now, this.#model.times.settleMs))
    this.guard = forgetGone(this.guard, now, isSettledNow).state
  }

  /** What does not wait for the lease. */
  look(): void {
    const { now } = this.#model.world
    for (const item of this.#parked.splice(0)) {
      if (this.#proxy.mayAct) this.#toGuard({ type: 'batch', batch: item.batch })
      else if (now - item.sinceMs >= this.#model.times.holdBoundMs) this.#finish(item.batch.id, 'refused')
      else this.#parked.push(item)
    }
    this.#noteLeaders()
    this.#answerMetadata()
    for (const connection of this.#proxy.connections) this.#pushIdle(connection)
  }

  /** Closing an idle connection makes its client refresh. */
  #pushIdle(connection: Connection): void {
    const { view, mayAct } = this.#proxy
    const ledger = this.guard.ledgers.get(connection.client)
    const layout = view?.topic.layouts.at(-1)
    if (!connection.isProducer || !mayAct || layout === undefined || layout.seal !== undefined) return
    if (ledger?.wrote !== true || connection.inFlight > 0) return
    const name = `${connection.client}/${layout.epoch}`
    const facts = {
      isIdempotent: connection.role === 'idempotent producer',
      pipelines: connection.mostInFlight > 1,
      wasPushed: this.#pushed.has(name),
      isShown: layout.change === 'met' || ledger.shown.some((showing) => showing.epoch >= layout.epoch),
      hasAcks: true,
    }
    if (pushWhenIdle(facts, this.#model.world.now - connection.lastProduceMs) !== 'close') return
    this.#pushed.add(name)
    this.#model.world.count('pushed by closing')
    connection.close()
  }

  opened(connection: Connection): void {
    this.#toGuard({ type: 'connected', instance: connection.client, connection: String(connection.broker) })
    if (connection.role !== 'idempotent producer') return
    this.#toGuard({ type: 'writer', instance: connection.client, wrote: false })
    this.#model.world.noteWriter(connection.client)
  }

  closed(connection: Connection): void {
    const isForgotten = this.#model.world.mutation === 'owed-forgotten'
    for (const [id, flight] of this.#batches) {
      if (flight.connection !== connection) continue
      this.#batches.delete(id)
      if (!isForgotten) this.#toGuard({ type: 'dropped', id })
      this.#toGuard(isForgotten ? { type: 'answered', id, end: 0, lapsed: false } : { type: 'failed', id })
    }
    if (!connection.isProducer) return
    const hasOthers = [...this.#proxy.connections].some((other) => other.client === connection.client)
    if (this.#model.world.mutation === 'leaving-is-clean' && !hasOthers) {
      const ledgers = new Map(this.guard.ledgers)
      ledgers.delete(connection.client)
      this.guard = { ...this.guard, ledgers }
      return
    }
    this.#toGuard({ type: 'lost', instance: connection.client, connection: String(connection.broker) })
  }

  /** Says what it knows of its writers, in good order, and that this proxy is out. */
  leave(sinceMs: number): void {
    const { world, times } = this.#model
    const proxy = this.#proxy.id
    const isUnsure = this.#parked.length > 0 || this.#batches.size > 0
    const isWritten = [...this.guard.ledgers.values()].some((ledger) => mayWrite(ledger, world.now, times))
    const record = isUnsure ? undefined : departure(this.guard, sinceMs, { atMs: world.now, wallMs: world.now })
    world.count(!isWritten ? 'left without writers' : record === undefined ? 'left unsure' : 'left in order')
    if (isWritten && record !== undefined) this.#proxy.replica.append(record)
    const wroteTo = distort.wroteTo(this.#model, isUnsure || isWritten ? [topicId] : [])
    this.#proxy.replica.append({ kind: 'expel', proxy, expelled: proxy, wroteTo })
  }

  produce(connection: Connection, request: ProduceRequest): void {
    this.#model.world.noteWriter(connection.client)
    request.batches.forEach((batch, index) => {
      const id = this.#proxy.nextId()
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
        connection: String(connection.broker),
        mark,
        ...(batch.pid === undefined ? { others: new Set(batch.records.slice(1).map(markOf)) } : {}),
        hashes: batch.records.map((record) => record.hash),
        // What a proxy can know: the most it saw in flight; five is where the pipelining families stop.
        hasRoom: batch.hasNoAcks === true || (connection.mostInFlight > 1 && connection.inFlight < 5),
        mayRefuse: batch.hasNoAcks !== true && (batch.pid !== undefined || connection.mostInFlight <= 1),
        ...(batch.pid === undefined
          ? {}
          : { sequenced: { producerId: batch.pid, producerEpoch: 0, sequence: batch.sequence ?? 0 } }),
      })
    })
  }

  /** Of a producer by its name; consumers (undefined) see a partition until it is drained. */
  metadata(instance: string | undefined, answer: (count: number | undefined) => void): void {
    this.#metadata.push({ instance, answer, sinceMs: this.#model.world.now })
    this.#answerMetadata()
  }

  #admit(batch: Batch): void {
    if (this.#proxy.mayAct) this.#toGuard({ type: 'batch', batch })
    else this.#parked.push({ batch, sinceMs: this.#model.world.now })
  }

  #answerMetadata(): void {
    const { view } = this.#proxy
    const rest = this.#metadata.splice(0)
    for (const item of rest) {
      const isHeld = !this.#proxy.mayAct || view === undefined || view.topic.proposal?.preparingAt !== undefined
      if (isHeld && this.#model.world.now - item.sinceMs < 4000) {
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

  #toGuard(event: GuardEvent): void {
    const [state, effects] = reduceGuard(this.guard, { ...event, atMs: this.#model.world.now })
    this.guard = state
    for (const effect of effects) {
      switch (effect.type) {
        case 'append':
          this.#proxy.replica.append(effect.record)
          break
        case 'read-ends': {
          this.#proxy.readEnds(effect.partitions, (ends) => this.#toGuard({ type: 'ends', round: effect.round, ends }))
          break
        }
        case 'forward':
          this.#forward(effect.batch)
          break
        case 'refuse':
          this.#model.world.count(`refused: ${effect.reason}`)
          this.#finish(effect.batch.id, 'refused')
          break
        case 'cut':
          break
        case 'count': {
          if (distort.isSilent(this.#model, effect.reason)) break
          this.#model.world.count(`counted: ${effect.reason}`)
          const { batch, instance } = effect
          this.#model.world.log(
            () => `${this.#proxy.id} counts ${effect.reason} ${instance} ${batch?.mark} in ${batch?.partition}`,
          )
          this.#model.world.excuse(instance, batch === undefined ? ['*'] : (this.#keys.get(batch.id) ?? ['*']))
          if (batch !== undefined) this.#askForCause(effect.reason, batch)
          break
        }
      }
    }
  }

  /** A seal that was waited for as the rules say leaves nothing to count: only giving somebody up does, or a producer that no proxy could tell from another client before its first Produce. */
  #askForCause(reason: CountReason, batch: Batch): void {
    if (reason !== 'late after the seal' && reason !== 'late above the boundary') return
    const { world } = this.#model
    const seals =
      this.#proxy.view?.topic.layouts.flatMap((layout) => (layout.seal === undefined ? [] : [layout.seal])) ?? []
    const knownMs = world.writers.get(batch.instance) ?? Infinity
    const isExpected = seals.some((seal) => seal.forced || seal.gaveUp.length > 0 || seal.atMs < knownMs)
    if (!isExpected)
      world.needless.push(
        `${this.#proxy.id} at ${world.now.toFixed(0)}: ${reason}: ${batch.mark} in ${batch.partition}`,
      )
  }

  #forward(batch: Batch): void {
    const flight = this.#batches.get(batch.id)
    if (flight === undefined) return
    flight.connection.upstream.send(() => {
      const result = this.#model.broker.produce(flight.batch)
      this.#model.world.log(
        () =>
          `broker ${flight.batch.partition} ${JSON.stringify(result)} ${flight.batch.records.map((r) => `${r.producer}.${r.sequence}k${r.key}`).join(' ')}`,
      )
      flight.connection.downstream.send(() => this.#proxy.receive(() => this.#answered(batch.id, result)))
    }, flight.connection.lastGetThrough)
  }

  #answered(id: string, result: ReturnType<Model['broker']['produce']>): void {
    if (!this.#batches.has(id)) return
    const lapsed = !this.#proxy.mayAct && this.#model.world.mutation !== 'lease-not-checked-again'
    const end = this.#batches.get(id)?.batch.hasNoAcks === true || !result.ok ? -1 : result.end
    if (result.ok) this.#toGuard({ type: 'answered', id, end, lapsed })
    else if (this.#model.world.mutation === 'owed-forgotten') this.#toGuard({ type: 'answered', id, end: 0, lapsed })
    else this.#toGuard({ type: 'failed', id })
    this.#finish(id, result)
  }

  #finish(id: string, result: ReturnType<Model['broker']['produce']> | 'refused'): void {
    const flight = this.#batches.get(id)
    if (flight === undefined) return
    this.#batches.delete(id)
    // The only way to say no where no answer is expected.
    if (flight.batch.hasNoAcks === true && (result === 'refused' || !result.ok)) return flight.connection.close()
    flight.request.results[flight.index] = result
    flight.request.open -= 1
    if (flight.request.open === 0) flight.connection.answer(flight.request)
  }

  /** Which partitions have no leader is known from Metadata, a little late. */
  #noteLeaders(): void {
    const known = new Set(this.guard.stops)
    for (const partition of this.#model.broker.leaderless) {
      if (!known.delete(`leader ${partition}`)) this.#toGuard({ type: 'stopped', reason: `leader ${partition}` })
    }
    for (const reason of known) this.#toGuard({ type: 'resumed', reason })
  }
}

function markOf({ producer, sequence }: Rec): string {
  return `${producer}/${sequence}`
}
