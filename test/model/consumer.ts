/**
 * Consumer groups: eager rebalances, prefetch, one record at a time per member, commits by record, by batch or on a
 * timer; members crash and come back, and what they had not committed is delivered again.
 */
import { brokers, type Entry } from './broker.ts'
import { Connection } from './connection.ts'
import type { Model } from './model.ts'
import type { Proxy } from './proxy.ts'
import type { GroupPlan } from './scenario.ts'

export class Group {
  readonly model: Model
  readonly plan: GroupPlan
  readonly name: string
  members: Member[] = []
  generation = 0
  count = 0
  readonly delivered = new Set<string>()
  #isPending = false
  #made = 0

  constructor(model: Model, plan: GroupPlan) {
    this.model = model
    this.plan = plan
    this.name = plan.name
    for (let i = 0; i < plan.members; i++) model.world.at(plan.startMs + i * 50, () => this.#join())
    this.#watch()
  }

  #join(): void {
    this.members.push(new Member(this, `${this.name}-m${this.#made++}`))
    this.rebalance()
  }

  crash(which: number): void {
    const member = this.members[which % Math.max(1, this.members.length)]
    if (member === undefined) return
    member.die()
    this.members = this.members.filter((other) => other !== member)
    const { world } = this.model
    world.after(world.random.int(500, 3000), () => this.rebalance())
    world.after(world.random.int(300, 6000), () => this.#join())
  }

  /** The leader looks at Metadata now and then: new partitions make it rebalance. */
  #watch(): void {
    const { world } = this.model
    world.after(world.random.int(300, 1500), () => this.#watch())
    const leader = this.members[0]
    leader?.ask((count) => {
      if (count <= this.count) return
      this.count = count
      this.rebalance()
    })
  }

  /** The log of a partition was cut: what lay behind is gone, and its offsets are used again. */
  logCut(partition: number, end: number): void {
    for (const place of this.delivered) {
      const [p, offset] = place.split('/').map(Number)
      if (p === partition && (offset ?? 0) >= end) this.delivered.delete(place)
    }
    for (const member of this.members) member.logCut(partition, end)
  }

  rebalance(): void {
    if (this.#isPending) return
    this.#isPending = true
    const { world } = this.model
    world.after(world.random.int(5, 80), () => {
      for (const member of this.members) member.revoke()
      world.after(world.random.int(20, 150), () => {
        this.#isPending = false
        this.generation += 1
        world.count('rebalance')
        this.members.forEach((member, index) => {
          const all = Array.from({ length: this.count }, (_, p) => p)
          member.assign(all.filter((p) => p % this.members.length === index))
        })
      })
    })
  }
}

interface Owned {
  position: number
  /** After the last record that was processed. */
  processed: number
  buffer: Entry[]
  isFetching: boolean
}

export class Member {
  readonly #group: Group
  readonly #name: string
  readonly #owned = new Map<number, Owned>()
  #connection: Connection | undefined
  #proxy: Proxy | undefined
  #isDead = false
  #isBusy = false
  #epoch = 0

  constructor(group: Group, name: string) {
    this.#group = group
    this.#name = name
    this.#emitLife('started')
    if (group.plan.commits === 'timer') this.#commitLoop()
    this.#fetchLoop()
  }

  get #world() {
    return this.#group.model.world
  }

  #emitLife(event: 'started' | 'crashed'): void {
    this.#world.emit({ event, at: this.#world.now, member: this.#name, group: this.#group.name })
  }

  ask(then: (count: number) => void): void {
    const connection = this.#connect()
    connection?.send(() => {
      connection.proxy.producing.metadata(undefined, (count) => {
        connection.reply(() => {
          if (!this.#isDead && count !== undefined) then(count)
        })
      })
    })
  }

  die(): void {
    this.#isDead = true
    this.#epoch += 1
    this.#owned.clear()
    this.#connection?.close()
    this.#emitLife('crashed')
    this.#world.count('member crashed')
  }

  revoke(): void {
    if (this.#owned.size > 0) {
      if (this.#world.random.chance(0.8)) for (const partition of this.#owned.keys()) this.#commit(partition)
      const partitions = [...this.#owned.keys()].map((p): [string, number] => ['topic', p])
      this.#world.emit({
        event: 'revoked',
        at: this.#world.now,
        member: this.#name,
        group: this.#group.name,
        partitions,
      })
    }
    this.#owned.clear()
    this.#epoch += 1
    this.#isBusy = false
  }

  assign(partitions: number[]): void {
    if (this.#isDead) return
    const named = partitions.map((p): [string, number] => ['topic', p])
    this.#world.emit({
      event: 'assigned',
      at: this.#world.now,
      member: this.#name,
      group: this.#group.name,
      partitions: named,
    })
    for (const partition of partitions) {
      const { broker } = this.#group.model
      const position = Math.max(broker.logStart(partition), broker.committedOf(this.#group.name, partition))
      this.#owned.set(partition, { position, processed: position, buffer: [], isFetching: false })
    }
  }

  logCut(partition: number, end: number): void {
    const owned = this.#owned.get(partition)
    if (owned === undefined) return
    const buffer = owned.buffer.filter((entry) => entry.offset < end)
    const [position, processed] = [Math.min(owned.position, end), Math.min(owned.processed, end)]
    this.#owned.set(partition, { position, processed, buffer, isFetching: false })
    // The batch that it works on has no end any more at which it would commit.
    if (this.#group.plan.commits === 'batch' && buffer.length === 0) this.#commit(partition)
  }

  #connect(): Connection | undefined {
    if (this.#connection?.isOpen === true) return this.#connection
    if (this.#isDead) return undefined
    this.#proxy = this.#group.model.pickProxy(this.#proxy)
    if (this.#proxy === undefined) return undefined
    const onClose = (): void => {
      for (const owned of this.#owned.values()) owned.isFetching = false
    }
    this.#connection = new Connection(
      this.#world,
      this.#proxy,
      this.#name,
      this.#world.random.int(0, brokers - 1),
      'consumer',
      onClose,
    )
    return this.#connection
  }

  #fetchLoop(): void {
    if (this.#isDead) return
    this.#world.after(this.#world.random.int(20, 60), () => this.#fetchLoop())
    for (const [partition, owned] of this.#owned) {
      if (owned.isFetching || owned.buffer.length > this.#group.plan.prefetch) continue
      const connection = this.#connect()
      if (connection === undefined) return
      owned.isFetching = true
      const epoch = this.#epoch
      const request = {
        group: this.#group.name,
        partition,
        position: owned.position,
        answer: (records: Entry[]) => this.#arrived(epoch, partition, owned, records),
      }
      connection.send(() => connection.proxy.fetcher.fetch(connection, request))
    }
  }

  #arrived(epoch: number, partition: number, owned: Owned, records: Entry[]): void {
    if (owned !== this.#owned.get(partition) || epoch !== this.#epoch) return
    owned.isFetching = false
    const last = records.at(-1)
    if (last === undefined) return
    owned.position = last.offset + 1
    owned.buffer.push(...records)
    this.#work()
  }

  #work(): void {
    if (this.#isBusy) return
    const full = [...this.#owned].filter(([, owned]) => owned.buffer.length > 0)
    if (full.length === 0) return
    const [partition, owned] = this.#world.random.pick(full)
    const entry = owned.buffer.shift()
    if (entry === undefined) return
    const { record, offset } = entry
    if (record === undefined) {
      if (this.#group.plan.commitsControl) owned.processed = Math.max(owned.processed, offset + 1)
      return this.#work()
    }
    this.#isBusy = true
    const epoch = this.#epoch
    const by = { member: this.#name, group: this.#group.name, topic: 'topic', partition, offset }
    const { producer, sequence, key } = record
    this.#world.emit({ event: 'delivered', at: this.#world.now, ...by, producer, sequence, key })
    this.#world.log(() => `${this.#name} is given ${producer}.${sequence}k${key} at ${partition}/${offset}`)
    this.#group.delivered.add(`${partition}/${offset}`)
    const { slowMs } = this.#group.plan
    this.#world.after(this.#world.random.int(1, slowMs), () => {
      if (epoch !== this.#epoch) return
      this.#isBusy = false
      this.#world.emit({ event: 'done', at: this.#world.now, ...by })
      owned.processed = offset + 1
      const { commits } = this.#group.plan
      if (commits === 'record' || (commits === 'batch' && owned.buffer.every((left) => left.record === undefined)))
        this.#commit(partition)
      this.#work()
    })
  }

  #commitLoop(): void {
    if (this.#isDead) return
    this.#world.after(this.#world.random.int(300, 900), () => this.#commitLoop())
    for (const partition of this.#owned.keys()) this.#commit(partition)
  }

  #commit(partition: number): void {
    const owned = this.#owned.get(partition)
    if (owned === undefined) return
    const offset = owned.processed
    const { broker } = this.#group.model
    if (offset <= broker.committedOf(this.#group.name, partition)) return
    const { generation } = this.#group
    // The broker refuses commits of older generations; clients repeat one that is lost.
    this.#world.after(this.#world.random.int(1, 10), () => {
      if (generation !== this.#group.generation || offset > (broker.partitions[partition]?.length ?? 0)) return
      if (this.#world.areFaultsOn && this.#world.random.chance(0.05)) {
        this.#world.count('commit lost')
        this.#world.after(this.#world.random.int(100, 400), () => this.#commit(partition))
        return
      }
      // One connection: commits arrive in the order they were sent.
      if (offset > broker.committedOf(this.#group.name, partition)) broker.commit(this.#group.name, partition, offset)
    })
  }
}
