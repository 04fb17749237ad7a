/** One run put together: cluster, fleet, clients, and the faults that befall them. */
import { gateKindOf } from '../../src/features/layouts/keys-moving.ts'
import { defaultTimes, type LayoutTimes } from '../../src/features/layouts/times.ts'
import type { GateKind, Order } from '../../src/state/record.ts'
import type { TopicState } from '../../src/state/topic-state.ts'
import { Broker } from './broker.ts'
import { Group } from './consumer.ts'
import type { Mutation } from './mutations.ts'
import { Producer } from './producer.ts'
import { Proxy } from './proxy.ts'
import { Random } from './random.ts'
import { drawScenario, type Scenario, type Theme } from './scenario.ts'
import { FleetGroup, StateLog } from './state-log.ts'
import { World } from './world.ts'

export interface RunOptions {
  seed: number
  mutation?: Mutation | undefined
  /** Bends every scenario towards one danger. */
  theme?: Theme | undefined
  /** Numbers of faults to leave out. */
  skip?: ReadonlySet<number>
  isTracing?: boolean
}

/** One in so many proxies that are taken down is not killed but told to stop. */
const ORDERLY_EVERY = 3

export class Model {
  readonly world: World
  readonly scenario: Scenario
  readonly times: LayoutTimes
  readonly sessionMs = 6000
  readonly broker: Broker
  readonly stateLog: StateLog
  readonly group: FleetGroup
  readonly groups: Group[] = []
  readonly producers: Producer[] = []
  proxies: Proxy[] = []
  readonly heartbeatsLost = new Set<string>()
  /** Epoch → ends of all partitions when it was opened, for rules that are broken on purpose. */
  readonly endsAtOpen = new Map<number, Record<number, number>>()
  readonly fetchMax: number
  readonly readMax: number
  readonly #positions = new Map<string, number[]>()
  #proxiesMade = 0

  constructor({ seed, mutation, theme, skip, isTracing }: RunOptions) {
    this.world = new World(seed, mutation, isTracing ?? false)
    this.scenario = drawScenario(this.world.random, skip ?? new Set(), theme)
    this.times = {
      ...defaultTimes,
      goneAfterMs: 25_000,
      settleMs: this.scenario.settleMs,
      sealAfterMs: this.scenario.sealAfterMs,
      pruneMs: 1000,
      ...(mutation === 'cut-without-waiting' ? { cutBoundMs: 0 } : {}),
    }
    this.world.faultsUntil = this.scenario.faultsUntil
    this.broker = new Broker(this.world, this.firstCount)
    this.stateLog = new StateLog(this.world)
    this.group = new FleetGroup(this.world, this.sessionMs)
    this.fetchMax = this.world.random.pick([3, 10, 40])
    this.readMax = this.world.random.pick([3, 20, 1000])
    for (let i = 0; i < this.scenario.proxies; i++) this.addProxy()
    for (const plan of this.scenario.producers)
      this.world.at(plan.startMs, () => this.producers.push(new Producer(this, plan)))
    for (const plan of this.scenario.groups) this.groups.push(new Group(this, plan))
    this.#scheduleFaults()
    this.#scheduleChanges()
    if (this.scenario.hasRetention) this.#retain()
    if (theme === undefined && mutation === undefined) this.#scheduleLogCuts(seed)
  }

  /**
   * Unclean elections, drawn apart from the rest so that seeds keep their meaning. Kafka keeps no order then, so none is
   * judged; but no gate may wait for what is gone.
   */
  #scheduleLogCuts(seed: number): void {
    const random = new Random(seed ^ 0x5bd1e995)
    if (!random.chance(0.06)) return
    for (let left = random.int(1, 4); left > 0; left--) {
      this.world.at(random.int(4000, 30_000), () => {
        const partition = random.int(0, this.broker.partitions.length - 1)
        const end = this.broker.cutLog(partition, random.int(1, 12))
        this.world.count('fault log cut')
        this.world.log(() => `the log of ${partition} ends at ${end} now`)
        for (const group of this.groups) group.logCut(partition, end)
        this.world.hasLostLogs = true
      })
    }
  }

  get firstCount(): number {
    return this.scenario.counts[0] ?? 1
  }

  get order(): Order {
    return this.scenario.order
  }

  gatesFor(topic: TopicState, to: number): GateKind {
    return this.world.mutation === 'no-cuts' ? 'seal' : gateKindOf(topic, to, this.order)
  }

  addProxy(): void {
    this.proxies.push(new Proxy(this, `x${this.#proxiesMade++}`))
  }

  restart(proxy: Proxy): void {
    if (proxy.isDead) return
    proxy.kill()
    this.proxies = this.proxies.filter((other) => other !== proxy)
    this.world.after(this.world.random.int(20, 2000), () => this.addProxy())
  }

  /** A proxy to connect to; a client keeps the one it has. */
  pickProxy(last: Proxy | undefined): Proxy | undefined {
    if (last !== undefined && !last.isDead && !last.isStopping && !this.scenario.isSplit) return last
    const open = this.proxies.filter((proxy) => !proxy.isStopping)
    return open.length === 0 ? undefined : this.world.random.pick(open)
  }

  /** A request of a proxy to the cluster and its answer; both may be lost. */
  rpc<T>(serve: () => T, then: (answer: T) => void): void {
    const isLost = this.world.areFaultsOn && this.world.random.chance(0.02)
    if (isLost && this.world.random.chance(0.5)) return
    this.world.after(this.world.latency(), () => {
      const answer = serve()
      if (!isLost) this.world.after(this.world.latency(), () => then(answer))
    })
  }

  notePosition(group: string, partition: number, position: number): void {
    const positions = this.#positions.get(group) ?? []
    positions[partition] = Math.max(positions[partition] ?? 0, position)
    this.#positions.set(group, positions)
  }

  positionsOf(group: string): number[] {
    return this.#positions.get(group) ?? []
  }

  #scheduleFaults(): void {
    for (const fault of this.scenario.faults) {
      this.world.at(fault.atMs, () => {
        const proxy = this.proxies[fault.proxy % Math.max(1, this.proxies.length)]
        if (proxy === undefined || proxy.isDead) return
        this.world.count(`fault ${fault.kind}`)
        this.world.log(() => `fault ${fault.kind} ${proxy.id} ${fault.forMs}`)
        this.world.emit({ event: 'fault', at: this.world.now, kind: fault.kind, until: this.world.now + fault.forMs })
        this.#inflict(fault.kind, proxy, fault.forMs, fault.proxy)
      })
    }
  }

  #inflict(kind: string, proxy: Proxy, forMs: number, which: number): void {
    switch (kind) {
      case 'kill':
        // A part of them are told to stop, and go in good order.
        return which % ORDERLY_EVERY === 0 ? proxy.stop(() => this.restart(proxy)) : this.restart(proxy)
      case 'pause':
        return proxy.pause(forMs)
      case 'pause with its upstream': {
        // The whole machine hangs, and what it had sent arrives late.
        const stallMs = forMs * (0.5 + this.world.random.next() / 2)
        for (const connection of proxy.connections) connection.upstream.stall(this.world.now + stallMs)
        this.world.after(200, () => proxy.pause(forMs))
        return
      }
      case 'cut off from the state':
        proxy.replica.cutOff(forMs)
        return
      case 'heartbeats lost, then reads':
        this.heartbeatsLost.add(proxy.id)
        this.world.after(forMs, () => this.heartbeatsLost.delete(proxy.id))
        this.world.after(this.world.random.int(3000, 6500), () => proxy.replica.cutOff(2900))
        return
      case 'client away': {
        const producer = this.producers[which % Math.max(1, this.producers.length)]
        producer?.away(forMs)
        return
      }
      case 'heartbeats lost':
        this.heartbeatsLost.add(proxy.id)
        this.world.after(forMs, () => this.heartbeatsLost.delete(proxy.id))
        return
      case 'no leader':
      case 'leader blip':
        return this.broker.loseLeader(which % this.broker.partitions.length, forMs)
      case 'connection lost': {
        const open = [...proxy.connections]
        if (open.length > 0) open[which % open.length]?.close()
        return
      }
      case 'upstream stalls': {
        const open = [...proxy.connections]
        const connection = open[which % Math.max(1, open.length)]
        connection?.upstream.stall(this.world.now + forMs)
        if (this.world.random.chance(0.5)) connection?.downstream.stall(this.world.now + forMs)
        return
      }
      case 'compaction':
        return this.stateLog.compact()
      default: {
        const group = this.groups[which % Math.max(1, this.groups.length)]
        group?.crash(which)
      }
    }
  }

  /** An admin wants the counts of the scenario one after the other. */
  #scheduleChanges(): void {
    let next = 1
    let nextAt = this.scenario.changes[0] ?? 0
    const look = (): void => {
      this.world.after(250, look)
      for (const proxy of this.proxies) this.#noteOpen(proxy)
      const to = this.scenario.counts[next]
      if (to === undefined || this.world.now < nextAt) return
      if (this.proxies.some((proxy) => proxy.view?.topic.layouts.length === next + 1)) {
        nextAt = Math.max(this.world.now, this.scenario.changes[next] ?? 0)
        next += 1
        return
      }
      if (this.scenario.isExternal && to > this.broker.partitions.length) this.#createDirectly(to)
      else if (this.scenario.isExternal && to > widest(this.proxies)) return
      else for (const proxy of this.proxies) if (!proxy.isPaused) proxy.control.wish(to)
    }
    this.world.after(1, look)
  }

  /** Somebody creates partitions and writes to the last one before any proxy notices. */
  #createDirectly(to: number): void {
    this.broker.create(to)
    this.world.count('partitions created by somebody else')
    const hash = to - 1
    const records = [0, 1, 2].map((sequence) => ({ producer: 'direct', sequence, key: String(hash), hash }))
    const { world } = this
    world.emit({
      event: 'started',
      at: world.now,
      producer: 'direct',
      client: 'direct',
      idempotent: false,
      ordered: false,
    })
    for (const { sequence, key } of records)
      world.emit({ event: 'sent', at: world.now, producer: 'direct', sequence, key, topic: 'topic' })
    world.excuse('direct', [String(hash)])
    this.broker.writeDirectly(to - 1, records)
  }

  /** Deletes what every group has committed, once all have begun. */
  #retain(): void {
    this.world.after(1000, () => this.#retain())
    const began = Math.max(...this.scenario.groups.map((plan) => plan.startMs))
    if (this.world.now < began + 2000) return
    this.broker.partitions.forEach((_, partition) => {
      const done = Math.min(...this.groups.map((group) => this.broker.committedOf(group.name, partition)))
      if (done > this.broker.logStart(partition)) this.broker.starts.set(partition, done)
    })
  }

  #noteOpen(proxy: Proxy): void {
    const epoch = proxy.view?.topic.layouts.at(-1)?.epoch ?? 0
    if (this.endsAtOpen.has(epoch)) return
    this.endsAtOpen.set(epoch, Object.fromEntries(this.broker.partitions.map((log, p) => [p, log.length])))
  }
}

/** The highest count that any proxy knows the topic to have had. */
function widest(proxies: readonly Proxy[]): number {
  return Math.max(
    ...proxies.map((proxy) => Math.max(0, ...(proxy.view?.topic.layouts ?? []).map(({ count }) => count))),
  )
}
