/**
 * Producers as the families behave: records are placed when they are handed over, wait in a queue per partition, and
 * come back after a failure in the family's own way.
 */
import { brokers, type ProduceResult, type Rec, type SentBatch } from './broker.ts'
import { Connection, type ProduceRequest } from './connection.ts'
import type { Model } from './model.ts'
import type { Proxy } from './proxy.ts'
import type { ProducerPlan } from './scenario.ts'

interface Item extends Rec {
  firstPartition: number
  attempts: number
}

interface Outgoing {
  partition: number
  records: Item[]
  sequence?: number
  attempts: number
}

/** What is known of a record for judging. */
export interface Fate {
  firstPartition: number
  wasRetried: boolean
}

export class Producer {
  readonly plan: ProducerPlan
  readonly name: string
  readonly fates = new Map<number, Fate>()
  isDone = false
  #isClosed = false
  readonly #model: Model
  #count = 0
  #handed = 0
  readonly #queues = new Map<number, Item[]>()
  /** Batches to send again as they are, per partition, in order. */
  readonly #again = new Map<number, Outgoing[]>()
  readonly #inFlight = new Map<number, ProduceRequest[]>()
  readonly #sequences = new Map<number, number>()
  readonly #connections = new Map<number, Connection>()
  readonly #blockedUntil = new Map<number, number>()
  readonly #reconnectAt = new Map<number, number>()
  #proxy: Proxy | undefined
  #isAsking = false
  #refreshedMs = -1e9
  #unacknowledged = 0
  #awayUntil = 0

  constructor(model: Model, plan: ProducerPlan) {
    this.#model = model
    this.plan = plan
    this.name = plan.name
    const idempotent = plan.family.idempotent
    model.world.emit({
      event: 'started',
      at: model.world.now,
      producer: this.name,
      client: plan.family.name,
      idempotent,
      ordered: false,
    })
    this.#refresh()
    this.#produceLoop()
    if (plan.family.refreshMs !== undefined) this.#refreshLoop(plan.family.refreshMs)
    if (plan.crashMs !== undefined) model.world.at(plan.crashMs, () => this.#end('crashed'))
  }

  #produceLoop(): void {
    const { world } = this.#model
    if (this.#isClosed) return
    if (this.#handed >= this.plan.records) {
      if (this.#unacknowledged === 0) return this.#end('closed')
      world.after(200, () => this.#produceLoop())
      return
    }
    world.after(world.random.int(1, this.plan.gapMs * 2), () => this.#produceLoop())
    const [quietFrom, quietTo] = this.plan.quietMs ?? [0, 0]
    if (this.#count === 0 || this.#unacknowledged > 60 || (world.now >= quietFrom && world.now < quietTo)) return
    const burst = world.random.chance(0.1) ? 6 : 1
    for (let i = 0; i < burst && this.#handed < this.plan.records; i++) this.#hand()
    this.#pump()
  }

  #hand(): void {
    const { world } = this.#model
    const hash = world.random.int(0, this.plan.keys - 1)
    const partition = hash % this.#count
    const record: Item = {
      producer: this.name,
      sequence: this.#handed++,
      key: String(hash),
      hash,
      firstPartition: partition,
      attempts: 0,
    }
    this.#unacknowledged += 1
    this.fates.set(record.sequence, { firstPartition: partition, wasRetried: false })
    world.emit({
      event: 'sent',
      at: world.now,
      producer: this.name,
      sequence: record.sequence,
      key: record.key,
      topic: 'topic',
    })
    this.#queue(partition).push(record)
  }

  #queue(partition: number): Item[] {
    const queue = this.#queues.get(partition) ?? []
    this.#queues.set(partition, queue)
    return queue
  }

  #pump(): void {
    for (let broker = 0; broker < brokers; broker++) while (this.#sendOne(broker));
  }

  #sendOne(broker: number): boolean {
    const { world } = this.#model
    const flying = this.#inFlight.get(broker) ?? []
    const total = [...this.#inFlight.values()].reduce((sum, list) => sum + list.length, 0)
    if (this.#isClosed || flying.length >= this.plan.family.inFlight || (this.plan.family.awaits && total > 0))
      return false
    const partitions = new Set([...this.#queues.keys(), ...this.#again.keys()])
    const sendable = [...partitions].filter((p) => p % brokers === broker && this.#hasSendable(p, flying))
    if (sendable.length === 0) return false
    const connection = this.#connect(broker)
    if (connection === undefined) return false
    const taken = world.random.chance(0.4) ? sendable : [world.random.pick(sendable)]
    const outgoing = taken.map((partition) => this.#take(partition))
    const request: ProduceRequest & { outgoing: Outgoing[] } = {
      batches: outgoing.map((batch) => this.#toSent(batch)),
      outgoing,
      results: [],
      open: outgoing.length,
      onAnswer: () => this.#answered(broker, request),
    }
    connection.produce(request)
    if (this.plan.family.hasNoAcks !== true) this.#inFlight.set(broker, [...flying, request])
    else for (const batch of outgoing) this.#unacknowledged -= batch.records.length
    return true
  }

  #hasSendable(partition: number, flying: ProduceRequest[]): boolean {
    if ((this.#blockedUntil.get(partition) ?? 0) > this.#model.world.now) return false
    const isFlying = flying.some((request) => request.batches.some((batch) => batch.partition === partition))
    const again = this.#again.get(partition) ?? []
    // An idempotent producer brings what failed back alone and in order before it goes on.
    if (again.length > 0) return !(this.plan.family.idempotent && isFlying)
    return (this.#queues.get(partition) ?? []).length > 0
  }

  #take(partition: number): Outgoing {
    const again = this.#again.get(partition) ?? []
    const first = again.shift()
    if (again.length === 0) this.#again.delete(partition)
    if (first !== undefined) return { ...first, attempts: first.attempts + 1 }
    const records = this.#queue(partition).splice(0, this.#model.world.random.int(1, 4))
    const batch: Outgoing = { partition, records, attempts: 1 }
    if (this.plan.family.idempotent) {
      batch.sequence = this.#sequences.get(partition) ?? 0
      this.#sequences.set(partition, batch.sequence + records.length)
    }
    return batch
  }

  #toSent(batch: Outgoing): SentBatch {
    const { partition, records, sequence } = batch
    const hasNoAcks = this.plan.family.hasNoAcks === true
    return { partition, records, hasNoAcks, ...(sequence === undefined ? {} : { pid: this.name, sequence }) }
  }

  #answered(broker: number, request: ProduceRequest & { outgoing: Outgoing[] }): void {
    if (this.#isClosed) return
    const left = (this.#inFlight.get(broker) ?? []).filter((other) => other !== request)
    this.#inFlight.set(broker, left)
    request.outgoing.forEach((batch, index) => this.#outcome(batch, request.results[index] ?? 'refused'))
    this.#pump()
  }

  #outcome(batch: Outgoing, result: ProduceResult | 'refused'): void {
    const { world } = this.#model
    if (result !== 'refused' && result.ok) {
      batch.records.forEach((record, index) => {
        this.#unacknowledged -= 1
        const place = { topic: 'topic', partition: batch.partition, offset: result.base + index }
        world.emit({
          event: 'acknowledged',
          at: world.now,
          producer: this.name,
          sequence: record.sequence,
          key: record.key,
          ...place,
        })
      })
      return
    }
    world.count(`retry ${this.plan.family.name}`)
    this.#bringBack([batch])
  }

  #bringBack(batches: Outgoing[]): void {
    const { world } = this.#model
    const { family } = this.plan
    const wait = family.franz
      ? Math.max(0, this.#refreshedMs + 5000 - world.now)
      : world.random.int(20, family.backoffMs)
    for (const batch of batches) {
      for (const record of batch.records)
        this.fates.set(record.sequence, { firstPartition: record.firstPartition, wasRetried: true })
      this.#blockedUntil.set(
        batch.partition,
        Math.max(this.#blockedUntil.get(batch.partition) ?? 0, family.idempotent ? world.now + wait : 0),
      )
    }
    if (family.idempotent) this.#insert(batches)
    world.after(family.franz ? Math.max(1, wait - 50) : world.random.int(1, 30), () => this.#refresh())
    world.after(wait + 1, () => {
      if (this.#isClosed) return
      if (!family.idempotent) this.#insert(batches)
      this.#pump()
    })
  }

  #insert(batches: Outgoing[]): void {
    const { retry } = this.plan.family
    for (const batch of batches) {
      if (retry === 'same') {
        const again = [...(this.#again.get(batch.partition) ?? []), batch]
        again.sort((a, b) => (a.records[0]?.sequence ?? 0) - (b.records[0]?.sequence ?? 0))
        this.#again.set(batch.partition, again)
      } else if (retry === 're-batch') {
        this.#queue(batch.partition).unshift(...batch.records)
      } else {
        for (const record of [...batch.records].reverse()) this.#queue(record.hash % this.#count).unshift(record)
      }
    }
  }

  #connect(broker: number): Connection | undefined {
    const { world } = this.#model
    const known = this.#connections.get(broker)
    if (known?.isOpen === true) return known
    if (Math.max(this.#awayUntil, this.#reconnectAt.get(broker) ?? 0) > world.now) return undefined
    this.#proxy = this.#model.pickProxy(this.#proxy)
    if (this.#proxy === undefined) return undefined
    const role = this.plan.family.idempotent ? 'idempotent producer' : 'producer'
    const connection = new Connection(world, this.#proxy, this.name, broker, role, () => this.#lost(broker))
    this.#connections.set(broker, connection)
    return connection
  }

  /** Its network is gone for a while. */
  away(forMs: number): void {
    this.#awayUntil = this.#model.world.now + forMs
    this.#model.world.log(() => `${this.name} is away for ${forMs}`)
    for (const connection of this.#connections.values()) connection.close()
  }

  #lost(broker: number): void {
    if (this.#isClosed) return
    const { world } = this.#model
    const flying = (this.#inFlight.get(broker) ?? []) as (ProduceRequest & { outgoing: Outgoing[] })[]
    this.#inFlight.set(broker, [])
    const wait = Math.max(this.#awayUntil - world.now, 0) + world.random.int(20, world.random.pick([100, 1000, 3000]))
    this.#reconnectAt.set(broker, world.now + wait)
    world.after(wait + 1, () => this.#pump())
    if (flying.length > 0) this.#bringBack(flying.flatMap((request) => request.outgoing))
    else world.after(30, () => this.#refresh())
  }

  #refreshLoop(everyMs: number): void {
    if (this.#isClosed) return
    this.#model.world.after(everyMs, () => {
      this.#refresh()
      this.#refreshLoop(everyMs)
    })
  }

  #refresh(): void {
    if (this.#isClosed || this.#isAsking || (this.plan.family.refreshMs === undefined && this.#count > 0)) return
    const { world } = this.#model
    const connection = this.#connect(world.random.int(0, brokers - 1))
    if (connection === undefined) {
      world.after(150, () => this.#refresh())
      return
    }
    this.#isAsking = true
    const giveUp = (): void => {
      if (!this.#isAsking || this.#isClosed) return
      this.#isAsking = false
      world.after(200, () => this.#refresh())
    }
    const asked = world.now
    world.after(6000, () => {
      if (this.#isAsking && world.now - asked >= 6000) giveUp()
    })
    connection.send(() => {
      connection.proxy.producing.metadata(this.name, (count) => {
        connection.reply(() => {
          if (count === undefined) return giveUp()
          this.#isAsking = false
          this.#refreshedMs = world.now
          if (count !== this.#count) world.log(() => `${this.name} uses ${count}`)
          // Two families never take a smaller count while they live.
          if (count > this.#count || this.plan.family.shrinks) this.#count = count
          this.#pump()
        })
      })
    })
  }

  #end(event: 'closed' | 'crashed'): void {
    if (this.#isClosed) return
    const { world } = this.#model
    world.count(`producer ${event}`)
    this.#isClosed = true
    this.isDone = true
    world.emit({ event, at: world.now, producer: this.name })
    for (const connection of this.#connections.values()) connection.close()
  }
}
