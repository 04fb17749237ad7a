/**
 * Proxies with layouts in front of a fake broker, everything real but time and sockets: the state log, our own client,
 * the guard, the coordinator. Clients are scripted frame by frame.
 */
import { configSchema } from '../../src/config/schema.ts'
import { FakeBroker } from '../../src/fake-broker/fake-broker.ts'
import type { LayoutTimes } from '../../src/features/layouts/times.ts'
import { type RunningProxy, startProxy } from '../../src/lifecycle/proxy.ts'
import { apiKeys } from '../../src/protocol/api-table.ts'
import type { MetadataResponse } from '../../src/protocol/generated/03-metadata.ts'
import type { ProduceResponse } from '../../src/protocol/generated/00-produce.ts'
import { buildBatch } from '../../src/records/build.ts'
import { readRecords } from '../../src/records/read.ts'
import { type PartitionerName, partitioners } from '../../src/records/hashes/partitioners.ts'
import type { TopicState } from '../../src/state/topic-state.ts'
import type { State } from '../../src/state/state.ts'
import { codecRequest, openResponse } from './codec-frames.ts'
import { Peer } from './rig.ts'
import { RecordingLog, RecordingMeters } from './telemetry.ts'
import { ProcessRuntime } from './state-rig.ts'
import { VirtualRuntime } from './virtual-runtime.ts'

export const TOPIC = 'orders'

export interface LayoutsRigOptions {
  readonly proxies?: number
  readonly count?: number
  readonly rule?: Record<string, unknown>
  /** Which topics the rule is for; left out: the one. */
  readonly matches?: string
  readonly times?: Partial<LayoutTimes>
  readonly seed?: number
  /** In place of the real one, per proxy. */
  readonly state?: (runtime: VirtualRuntime, proxy: number) => State
}

export interface RigProxy {
  readonly proxy: RunningProxy
  readonly log: RecordingLog
  /** Kills the proxy, or takes its network to the cluster away. */
  readonly process: ProcessRuntime
  /** Port of the only node. */
  readonly port: number
}

export class LayoutsRig {
  readonly runtime: VirtualRuntime
  readonly broker: FakeBroker
  readonly proxies: RigProxy[] = []
  private readonly options: LayoutsRigOptions

  private constructor(runtime: VirtualRuntime, broker: FakeBroker, options: LayoutsRigOptions) {
    this.runtime = runtime
    this.broker = broker
    this.options = options
  }

  /** Ready when every proxy knows the topic and may act. */
  static async start(options: LayoutsRigOptions = {}): Promise<LayoutsRig> {
    const runtime = new VirtualRuntime(options.seed ?? 1)
    const broker = await FakeBroker.start(runtime)
    broker.cluster.createTopic(TOPIC, options.count ?? 3)
    const rig = new LayoutsRig(runtime, broker, options)
    for (let i = 0; i < (options.proxies ?? 1); i++) await rig.startProxy()
    await rig.until(() => rig.proxies.every((_, i) => rig.topic(i) !== undefined), 'every proxy knows the topic')
    return rig
  }

  async startProxy(): Promise<RigProxy> {
    const index = this.proxies.length
    const basePort = 20_001 + 100 * index
    const log = new RecordingLog()
    const config = configSchema.parse({
      upstream: { bootstrap: this.broker.bootstrap },
      listeners: [{ name: `l${index}`, nodeIds: '0-3', basePort }],
      topics: { [this.options.matches ?? TOPIC]: { layouts: this.options.rule ?? {} } },
    })
    const { times, state } = this.options
    const layouts = {
      ...(times === undefined ? {} : { times }),
      ...(state === undefined ? {} : { state: state(this.runtime, index) }),
    }
    const process = new ProcessRuntime(this.runtime)
    const proxy = await startProxy(config, { runtime: process, log, meters: new RecordingMeters(), layouts })
    const started = { proxy, log, process, port: basePort + 1 }
    this.proxies.push(started)
    return started
  }

  /** The topic as a proxy sees it, while it may act. */
  topic(proxy = 0): TopicState | undefined {
    const feature = this.proxies[proxy]?.proxy.layoutParts?.feature
    return feature?.topics.find(TOPIC, '')?.view()?.topic
  }

  guard(proxy = 0) {
    const feature = this.proxies[proxy]?.proxy.layoutParts?.feature
    const topic = feature?.topics.find(TOPIC, '')
    const guard = topic === undefined ? undefined : feature?.guards.of(topic.topicId)
    if (guard === undefined) throw new Error('the topic is not known')
    return guard
  }

  /** Asks a proxy to change the count; resolves with what became of it. */
  expand(to: number, proxy = 0) {
    const coordinator = this.proxies[proxy]?.proxy.layoutParts?.feature.control.find(TOPIC)
    if (coordinator === undefined) throw new Error('the topic is not known')
    const outcome = coordinator.change({ change: 'expand', to, any: true })
    this.proxies[proxy]?.proxy.layoutParts?.feature.control.wake()
    return outcome
  }

  async until(done: () => boolean, what: string, forMs = 60_000): Promise<void> {
    if (await this.runtime.run(done, forMs)) return
    throw new Error(
      `not within ${forMs} ms: ${what}\n${this.proxies.map(({ log }) => JSON.stringify(log.lines.slice(-8))).join('\n')}`,
    )
  }

  /** Runs time until the promise has settled. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const mark = (): void => void (isSettled = true)
    promise.then(mark, mark)
    await this.until(() => isSettled, 'a promise settles')
    return promise
  }

  pause(ms: number): Promise<boolean> {
    return this.runtime.run(() => false, ms)
  }

  /** The values in a partition, in order. */
  values(partition: number): string[] {
    const log = this.broker.cluster.topics.partition(TOPIC, partition)?.log
    if (log === undefined) return []
    const { records } = log.read(0, log.end, 1 << 24, true)
    return readRecords(records, 1 << 20).flatMap(({ value, control }) => (control ? [] : [value?.toString() ?? '']))
  }

  end(partition: number): number {
    return this.broker.cluster.topics.partition(TOPIC, partition)?.log.end ?? -1
  }

  async client(proxy = 0, clientId: string | null = 'client'): Promise<Client> {
    const port = this.proxies[proxy]?.port ?? 0
    const client = new Client(this, port, clientId)
    await this.until(() => client.peer.connected, 'the client is connected')
    return client
  }

  async stop(): Promise<void> {
    let isStopped = false
    void Promise.all(this.proxies.map(({ proxy }) => proxy.close())).then(() => (isStopped = true))
    await this.runtime.run(() => isStopped)
  }
}

/** A producer without idempotence, or with: it sends what a test says, to the partition of its own layout. */
export class Client {
  readonly peer = new Peer()
  readonly clientId: string | null
  private readonly rig: LayoutsRig
  private lastId = 0
  private readonly answers = new Map<number, Buffer>()

  constructor(rig: LayoutsRig, port: number, clientId: string | null) {
    this.rig = rig
    this.clientId = clientId
    this.peer.onFrame = (frame) => this.answers.set(frame.readInt32BE(4), frame)
    this.peer.socket = rig.runtime.dial({ host: '127.0.0.1', port, timeoutMs: 1000 }, this.peer)
  }

  /** Sends a request; the promise resolves with its answer while time runs. */
  send(apiKey: number, version: number, body: object): Sent {
    const id = ++this.lastId
    this.peer.send(codecRequest(apiKey, version, id, body, this.clientId))
    return {
      answer: () => {
        const frame = this.answers.get(id)
        return frame === undefined ? undefined : openResponse(apiKey, version, frame)
      },
    }
  }

  async ask(apiKey: number, version: number, body: object): Promise<object> {
    const sent = this.send(apiKey, version, body)
    await this.rig.until(() => sent.answer() !== undefined || this.peer.closed, `an answer to api ${apiKey}`)
    const answer = sent.answer()
    if (answer === undefined) throw new Error('the connection was closed')
    return answer
  }

  /** The topic's partition count as Metadata shows it; undefined with an error. */
  async count(version = 9): Promise<number | undefined> {
    const answer = (await this.ask(apiKeys.Metadata, version, { topics: [{ name: TOPIC }] })) as MetadataResponse
    const topic = answer.topics.find(({ name }) => name === TOPIC)
    return topic === undefined || topic.errorCode !== 0 ? undefined : topic.partitions.length
  }

  /** As `count`, without waiting: `none` where the topic has an error. */
  askCount(): { answer(): number | 'none' | undefined } {
    const sent = this.send(apiKeys.Metadata, 9, { topics: [{ name: TOPIC }] })
    return {
      answer: () => {
        const topic = (sent.answer() as MetadataResponse | undefined)?.topics[0]
        if (topic === undefined) return undefined
        return topic.errorCode !== 0 ? 'none' : topic.partitions.length
      },
    }
  }

  /** Sends one batch of these keys, all in `partition`; values are `key:value`. */
  produce(partition: number, keys: readonly string[], value: string, more: ProduceMore = {}): SentBatch {
    const { acks = -1, transactionalId = null, producerId = -1, sequence = -1, version = 9 } = more
    const records = buildBatch({
      records: keys.map((key) => ({ key: Buffer.from(key), value: Buffer.from(`${key}:${value}`) })),
      producerId,
      producerEpoch: producerId < 0 ? -1 : 0,
      baseSequence: sequence,
    })
    const topicData = [{ name: TOPIC, partitionData: [{ index: partition, records }] }]
    const sent = this.send(apiKeys.Produce, version, { transactionalId, acks, timeoutMs: 1000, topicData })
    return {
      result: () => {
        const answer = sent.answer() as ProduceResponse | undefined
        const result = answer?.responses[0]?.partitionResponses[0]
        return result === undefined ? undefined : { errorCode: result.errorCode, baseOffset: result.baseOffset }
      },
    }
  }

  close(): void {
    this.peer.socket.destroy(true)
  }
}

export interface Sent {
  answer(): object | undefined
}

export interface SentBatch {
  result(): { errorCode: number; baseOffset: number } | undefined
}

export interface ProduceMore {
  readonly acks?: number
  readonly transactionalId?: string | null
  readonly producerId?: number
  readonly sequence?: number
  readonly version?: number
}

/** Keys that lie in `from` under one count and in `to` under another. */
export function keysIn(
  places: readonly (readonly [count: number, partition: number])[],
  many = 1,
  name: PartitionerName = 'murmur2-mask',
) {
  const keys: string[] = []
  for (let i = 0; keys.length < many; i++) {
    const bytes = Buffer.from(`k${i}`)
    if (places.every(([count, partition]) => partitioners[name](bytes, 0, bytes.length, count) === partition))
      keys.push(`k${i}`)
  }
  return keys
}

/** Teaches the proxies a client's partitioner: so many keyed records, each where the client puts it. */
export async function teach(rig: LayoutsRig, client: Client, count: number): Promise<void> {
  for (let partition = 0; partition < count; partition++) {
    const sent = client.produce(partition, keysIn([[count, partition]], Math.ceil(40 / count)), 'lesson')
    await rig.until(() => sent.result() !== undefined, 'the lesson is acknowledged')
  }
}
