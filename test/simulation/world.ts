/** Everything that lives in one simulated run: brokers, proxies, clients, each a process of its own on one network. */
import { configSchema } from '../../src/config/schema.ts'
import type { FetchPolicy, FetchView } from '../../src/editors/fetch/policy.ts'
import { FakeBroker } from '../../src/fake-broker/fake-broker.ts'
import { type RunningProxy, startProxy } from '../../src/lifecycle/proxy.ts'
import { type Bucketed, bucketOf } from '../../src/records/hashes/buckets.ts'
import type { Log } from '../../src/telemetry/log.ts'
import type { Meter, Meters } from '../../src/telemetry/meter.ts'
import { ModelConsumer } from './clients/consumer.ts'
import { type ConsumerFamily, consumerFamilies, type ProducerFamily, producerFamilies } from './clients/families.ts'
import { Membership } from './clients/member.ts'
import { ModelProducer } from './clients/producer.ts'
import { ModelTransactor } from './clients/transactor.ts'
import { Clock } from './kernel/clock.ts'
import { Network } from './kernel/network.ts'
import type { Process } from './kernel/process.ts'
import { Random } from './kernel/random.ts'
import { layoutsConfig, layoutsTimes } from './layouts.ts'
import { Ledger } from './ledger.ts'
import type { ConsumerPlan, Plan, ProducerPlan } from './plan.ts'
import { Statistics } from './statistics.ts'

export const TOPIC = 't'
export const GROUP = 'g'
const BROKER_PORT = 9092
const PROXY_BASE_PORT = 19_093
const KEPT_LOG_LINES = 60

export interface LiveConsumer {
  plan: ConsumerPlan
  process: Process
  consumer: ModelConsumer
  membership: Membership | undefined
  /** How many lives it has had. */
  life: number
  gone: boolean
}

export class World {
  readonly plan: Plan
  readonly clock = new Clock()
  readonly network: Network
  readonly ledger = new Ledger()
  readonly statistics = new Statistics()
  readonly random: Random
  readonly logLines: string[] = []
  readonly consumers: LiveConsumer[] = []
  readonly producers: (ModelProducer | ModelTransactor)[] = []
  readonly proxies: Process[] = []
  /** By number; those that died too, until they are back. */
  readonly running: { proxy: RunningProxy; process: Process }[] = []
  broker!: FakeBroker
  /** Whether the topic's layout is being changed. */
  isChanging: () => boolean = () => false
  /** Records delivered from behind a gate that was shut. */
  leaks = 0
  /** What a model met that no client should; the run ends. */
  failure: unknown
  readonly fail = (error: unknown): void => {
    this.failure ??= error
  }
  readonly #runningProducers = new Set<ModelProducer>()

  constructor(plan: Plan) {
    this.plan = plan
    this.random = Random.forked(plan.seed, 'world')
    const options = { minDelayMs: 0.2, maxDelayMs: plan.maxDelayMs, splitChance: plan.splitChance }
    this.network = new Network(this.clock, Random.forked(plan.seed, 'network'), options)
  }

  async open(): Promise<void> {
    const { plan, network } = this
    const nodes = Array.from({ length: plan.nodes }, (_, i) => network.spawn(`broker-${i + 1}`, plan.seed))
    const cluster = network.spawn('cluster', plan.seed)
    this.broker = await FakeBroker.start(cluster, {
      nodeIds: nodes.map((_, i) => i + 1),
      runtimeOf: (nodeId) => nodes[nodeId - 1] ?? cluster,
      host: (nodeId) => `broker-${nodeId}`,
      port: () => BROKER_PORT,
      autoCreatePartitions: 0,
      coordinatorLoadMs: 200,
      onGroupState: (state) => this.statistics.count(`group.${state}`),
      onMemberGivenUp: (group, member, generation) => {
        if (group === GROUP) this.#givenUp(member.clientId, generation)
      },
    })
    this.broker.cluster.createTopic(TOPIC, plan.partitions)
    for (let i = 0; i < plan.proxies; i++) await this.startProxy(i)
    for (const producer of plan.producers) this.#startProducer(producer)
    for (const consumer of plan.consumers) {
      this.clock.schedule(consumer.startMs, () => void this.startConsumer(consumer, 0).catch(this.fail))
    }
  }

  async startProxy(index: number): Promise<void> {
    const process = this.network.spawn(`proxy-${index}`, this.plan.seed)
    this.proxies[index] = process
    const bootstrap = this.broker.cluster.nodes.map(({ id }) => `broker-${id}:${BROKER_PORT}`)
    const { layouts } = this.plan
    const config = configSchema.parse({
      ...(layouts === undefined ? {} : { topics: layoutsConfig(layouts) }),
      upstream: { bootstrap, metadataRefresh: '5s', dialTimeout: '3s' },
      listeners: [{ bind: '0.0.0.0', advertise: process.name, basePort: PROXY_BASE_PORT, nodeIds: '0-3' }],
    })
    const proxy = await startProxy(config, {
      runtime: process,
      log: this.#log(process.name),
      meters: this.#meters(),
      ...(layouts === undefined ? { fetchPolicies: this.#policies() } : { layouts: layoutsTimes }),
    })
    this.running[index] = { proxy, process }
  }

  /** Starts a consumer, or its next life. */
  async startConsumer(plan: ConsumerPlan, life: number): Promise<void> {
    const name = life === 0 ? plan.name : `${plan.name}.${life}`
    const process = this.network.spawn(name, this.plan.seed)
    const own = named(consumerFamilies, plan.family)
    const family: ConsumerFamily = {
      ...own,
      assignor: plan.assignor ?? own.assignor,
      metadataMaxAgeMs: this.plan.metadataMaxAgeMs,
      partitionMaxBytes: this.plan.partitionMaxBytes,
    }
    const alone = plan.range !== undefined
    const consumer = new ModelConsumer(process, {
      name,
      group: GROUP,
      alone,
      family,
      bootstrap: this.#bootstrap(),
      topic: TOPIC,
      minWorkMs: 0,
      maxWorkMs: plan.maxWorkMs,
      recommits: this.plan.layouts !== undefined,
      record: (event) => {
        if (event.event === 'delivered' && event.offset >= this.limit(event.partition)) this.leaks++
        this.ledger.record(event)
      },
      fail: this.fail,
    })
    const membership = alone ? undefined : new Membership(consumer)
    const live = { plan, process, consumer, membership, life, gone: false }
    const at = this.consumers.findIndex((c) => c.plan === plan)
    if (at < 0) this.consumers.push(live)
    else this.consumers[at] = live
    await consumer.start()
    await membership?.run()
  }

  /** Producers have settled everything that they were given. */
  get producersDone(): boolean {
    return (
      this.#runningProducers.size === 0 &&
      this.producers.every((p) => (p instanceof ModelProducer ? p.open === 0 : p.done))
    )
  }

  #startProducer(plan: ProducerPlan): void {
    const process = this.network.spawn(plan.name, this.plan.seed)
    const { metadataMaxAgeMs, layouts } = this.plan
    // Real families stand the 9 s for which a batch is held.
    const patience = layouts === undefined ? {} : { requestTimeoutMs: 12_000, deliveryTimeoutMs: 25_000 }
    const family = { ...named(producerFamilies, plan.family), metadataMaxAgeMs, ...patience }
    const record = this.ledger.record.bind(this.ledger)
    const refreshesIdle = layouts !== undefined
    const base = {
      name: plan.name,
      refreshesIdle,
      family,
      bootstrap: this.#bootstrap(),
      topic: TOPIC,
      record,
      fail: this.fail,
    }
    if (plan.transactional) {
      const { keys, records, gapMs } = plan
      const transactor = new ModelTransactor(process, { ...base, keys, records, gapMs, abortChance: 0.3 })
      this.producers.push(transactor)
      transactor.run().catch(this.fail)
      return
    }
    const producer = new ModelProducer(process, base)
    this.producers.push(producer)
    this.#runningProducers.add(producer)
    this.#load(process, producer, plan).catch(this.fail)
  }

  async #load(process: Process, producer: ModelProducer, plan: ProducerPlan): Promise<void> {
    for (let i = 0; i < plan.records; i++) {
      const waitMs = i % plan.burst === 0 ? process.random(plan.gapMs * plan.burst) : 0
      const [from, to] = plan.quietMs ?? [Infinity, Infinity]
      const at = this.clock.nowMs + waitMs
      const pauseMs = at >= from && at < to ? waitMs + to - at : waitMs
      if (pauseMs > 0) await new Promise<void>((resolve) => void process.timer(pauseMs, resolve))
      producer.send(`k${process.random(plan.keys)}`)
    }
    this.#runningProducers.delete(producer)
  }

  #bootstrap(): string[] {
    const { proxies, nodes } = this.plan
    if (proxies === 0) return Array.from({ length: nodes }, (_, i) => `broker-${i + 1}:${BROKER_PORT}`)
    // Each client instance keeps to one proxy, as behind client-IP affinity.
    return [`proxy-${this.random.below(proxies)}:${PROXY_BASE_PORT - 1}`]
  }

  /** Each consumer sees its range of the keys, or, in a group, everything; and of a gated partition what is open. */
  #policies(): FetchPolicy[] {
    const { consumers, editFromMs } = this.plan
    const count = (given: number, kept: number): void => this.#countFiltered(given, kept)
    const views = new Map<string, FetchView>()
    for (const { name, range } of consumers) {
      const [from, to] = range ?? [0, Number.POSITIVE_INFINITY]
      const keep = (record: Bucketed): boolean => {
        const bucket = bucketOf(record)
        return bucket >= from && bucket < to
      }
      const filter = range === undefined ? {} : { keep }
      views.set(name, { partition: (_, __, partition) => ({ ...filter, count, limit: () => this.limit(partition) }) })
    }
    const isOn = (): boolean =>
      consumers.some((c) => c.range !== undefined) || this.clock.nowMs >= (editFromMs ?? Number.POSITIVE_INFINITY)
    return [{ view: ({ instance }) => (isOn() ? views.get(instance?.clientId?.split('.')[0] ?? '') : undefined) }]
  }

  /** Where the partition's lowest shut gate stands. */
  limit(partition: number): number {
    const shut = this.plan.gates.filter((gate) => gate.partition === partition && gate.openMs > this.clock.nowMs)
    return Math.min(...shut.map((gate) => gate.offset))
  }

  #countFiltered(delivered: number, withheld: number): void {
    this.statistics.count('filter.delivered', delivered)
    this.statistics.count('filter.withheld', withheld)
    if (delivered === 0 && withheld > 0) this.statistics.count('filter.answers with nothing left')
  }

  /** The broker gave a member up: it may not know, but it is no live member any more. */
  #givenUp(clientId: string, generation: number): void {
    this.statistics.count('group.member given up')
    const widest = this.broker.cluster.topics.named(TOPIC)?.partitions.length ?? this.plan.partitions
    const partitions = Array.from({ length: widest }, (_, p): [string, number] => [TOPIC, p])
    this.ledger.record({ event: 'lost', at: this.clock.nowMs, member: clientId, group: GROUP, partitions, generation })
  }

  #log(name: string): Log {
    const write = (fields: object, message: string): void => {
      if (this.plan.layouts !== undefined) this.statistics.count(`log.${message.split(/[:.]/)[0] ?? ''}`)
      this.logLines.push(`${this.clock.nowMs.toFixed(1)} ${name} ${message} ${JSON.stringify(fields)}`)
      if (this.logLines.length > KEPT_LOG_LINES) this.logLines.shift()
    }
    const error = (fields: object, message: string): void => {
      write(fields, message)
      this.statistics.count('proxy.log errors')
    }
    return { debug: () => undefined, info: write, warn: write, error }
  }

  #meters(): Meters {
    const nothing = (): void => undefined
    const meter: Meter = {
      opened: () => this.statistics.count('proxy.connections'),
      closed: (reason) => this.statistics.count(`closed.${reason}`),
      request: (apiKey) => this.statistics.count(`requests.${apiKey}`),
      response: nothing,
      latency: nothing,
      error: (_, code) => this.statistics.count(`errors.${code}`),
      inFlight: nothing,
      paused: nothing,
      undecodable: () => this.statistics.count('proxy.undecodable'),
    }
    return { meter: () => meter, publish: nothing }
  }
}

function named<T extends ProducerFamily | ConsumerFamily>(families: readonly T[], name: string): T {
  const family = families.find((f) => f.name === name)
  if (family === undefined) throw new Error(`no family ${name}`)
  return family
}
