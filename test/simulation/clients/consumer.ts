/**
 * A model consumer: fetches from the leaders of what it owns, buffers as deep as its family does, and lets an application
 * work through the records one at a time. How it comes to own partitions is the membership's business (`member.ts`), or
 * it owns all of them from the start. Invariant: an answer that was asked for at another position is thrown away.
 */
import { errorCodes } from '../../../src/protocol/error-codes.ts'
import { listOffsets } from '../../../src/protocol/generated/02-list-offsets.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import { ClusterView } from './cluster-view.ts'
import type { ConsumerFamily } from './families.ts'
import { Fetcher } from './fetcher.ts'
import { ConnectionLost } from './wire.ts'

export interface ConsumerOptions {
  name: string
  /** The group in the history; also the group id unless `alone`. */
  group: string
  /** Commits again what a lost commit or a rebalance has left, also where nothing new comes to be committed with. */
  recommits?: boolean
  /** Without membership: owns all partitions, commits nothing. */
  alone: boolean
  family: ConsumerFamily
  bootstrap: readonly string[]
  topic: string
  /** How long the application works on a record. */
  minWorkMs: number
  maxWorkMs: number
  record(event: HistoryEvent): void
  /** The model met something that no client should. */
  fail: (error: unknown) => void
}

export interface BufferedRecord {
  partition: number
  offset: number
  key: string | null
  value: string
  /** Last of its fetched batch of records. */
  last: boolean
}

export interface Owned {
  partition: number
  /** Next offset to fetch; −1 until it is known. */
  position: number
  /** Where the group stands was read, so that a position not known is to be asked of the log. */
  begun: boolean
  epoch: number
  /** Raised whenever an answer that is under way must not count. */
  version: number
  /** How often the application sought. */
  moves: number
  buffered: number
  /** About to be given up: nothing more is fetched or handed to the application. */
  frozen: boolean
  /** Behind the last record that the application finished; −1 for none yet. */
  done: number
  /** The position, whenever everything before it was finished; −1 for never yet. */
  consumed: number
  committed: number
  /** What the last commit asked for, answered or not. */
  asked: number
}

export class ModelConsumer {
  readonly view: ClusterView
  readonly options: ConsumerOptions
  readonly owned = new Map<number, Owned>()
  readonly queue: BufferedRecord[] = []
  generation = -1
  /** Called between two records, and after the last of a batch. */
  onRecordDone: (record: BufferedRecord) => Promise<void> = async () => undefined
  closed = false
  #working: Promise<void> | undefined
  readonly #fetcher: Fetcher

  constructor(runtime: Runtime, options: ConsumerOptions) {
    this.options = options
    const { versions, requestTimeoutMs, retryBackoffMs, isolation, name: client } = options.family
    const { name, bootstrap, group } = options
    this.view = new ClusterView(runtime, { clientId: name, versions, requestTimeoutMs, bootstrap, retryBackoffMs })
    this.#fetcher = new Fetcher(this)
    const level = isolation === 1 ? 'read_committed' : 'read_uncommitted'
    this.record({ event: 'started', member: name, group, client, isolation: level })
  }

  async start(): Promise<void> {
    await this.view.refresh([this.options.topic])
    if (!this.options.alone) return
    for (let p = 0; p < this.view.count(this.options.topic); p++) this.own(p, true)
    this.sayHands('assigned', Array.from(this.owned.keys()))
    await this.findStarts()
  }

  /** Takes a partition over; not `begun`: to be read from where the group stands, once that is known. */
  own(partition: number, begun: boolean): void {
    this.owned.set(partition, {
      partition,
      position: -1,
      begun,
      epoch: -1,
      version: 0,
      buffered: 0,
      moves: 0,
      frozen: false,
      done: -1,
      consumed: -1,
      committed: -1,
      asked: -1,
    })
  }

  /** What is buffered of these partitions is dropped, and nothing more comes. */
  freeze(partitions: readonly number[]): void {
    for (const partition of partitions) {
      const owned = this.owned.get(partition)
      if (owned === undefined) continue
      owned.frozen = true
      owned.version++
    }
    this.#dropBuffered(partitions)
  }

  /** Lets partitions go; what is buffered of them is dropped. */
  disown(partitions: readonly number[]): void {
    for (const partition of partitions) this.owned.delete(partition)
    this.#dropBuffered(partitions)
  }

  /** Moves the position of an owned partition, as an application may. */
  seek(partition: number, offset: number): void {
    const owned = this.owned.get(partition)
    if (owned === undefined) return
    this.record({ event: 'sought', ...this.who(), topic: this.options.topic, partition, offset })
    owned.position = offset
    owned.done = -1
    owned.consumed = -1
    owned.moves++
    owned.version++
    this.#dropBuffered([partition])
    this.pump()
  }

  /** Asks for the beginning of every begun partition whose position is not known, until all have one. */
  async findStarts(): Promise<void> {
    for (;;) {
      const missing = Array.from(this.owned.values()).filter((o) => o.begun && o.position < 0)
      if (missing.length === 0 || this.closed) break
      for (const owned of missing) {
        const start = await this.#startOf(owned.partition)
        if (start >= 0 && owned.position < 0) owned.position = start
      }
      if (missing.some((o) => o.position < 0)) {
        await this.view.sleep(this.options.family.retryBackoffMs)
        await this.view.refresh([this.options.topic])
      }
    }
    this.pump()
  }

  /** Fetches and works, as far as both can go now. */
  pump(): void {
    if (this.closed) return
    this.#fetcher.pump()
    this.#working ??= this.queue.length === 0 ? undefined : this.#work().catch(this.options.fail)
  }

  /** Resolves when the application is not in the middle of a record. */
  async atRest(): Promise<void> {
    while (this.#hand !== undefined) await this.#hand
  }

  get busy(): boolean {
    return this.#hand !== undefined || this.queue.length > 0
  }

  close(): void {
    this.closed = true
    this.view.close()
  }

  who(): { member: string; group: string } {
    return { member: this.options.name, group: this.options.group }
  }

  sayHands(event: 'assigned' | 'revoked' | 'lost', partitions: number[]): void {
    if (partitions.length === 0) return
    const places = partitions.map((p): [string, number] => [this.options.topic, p])
    this.record({ event, ...this.who(), partitions: places, generation: this.generation })
  }

  record(event: WithoutTime): void {
    this.options.record({ at: this.view.runtime.now(), ...event })
  }

  #hand: Promise<void> | undefined

  async #work(): Promise<void> {
    for (;;) {
      const record = this.queue.shift()
      if (record === undefined || this.closed) break
      const owned = this.owned.get(record.partition)
      if (owned === undefined) continue
      const { moves } = owned
      this.#hand = this.#process(record)
      await this.#hand
      this.#hand = undefined
      if (this.owned.get(record.partition) === owned && owned.moves === moves) this.#finished(owned, record)
      await this.onRecordDone(record)
      this.#fetcher.pump()
    }
    this.#working = undefined
    this.pump()
  }

  #finished(owned: Owned, { offset }: BufferedRecord): void {
    owned.done = offset + 1
    owned.buffered = Math.max(0, owned.buffered - 1)
    if (owned.buffered === 0 && !owned.frozen) owned.consumed = owned.position
  }

  async #process({ partition, offset, key, value }: BufferedRecord): Promise<void> {
    const [producer = '', sequence = '-1'] = value.split(':')
    const place = { topic: this.options.topic, partition, offset }
    const { generation } = this
    this.record({ event: 'delivered', ...this.who(), ...place, producer, sequence: Number(sequence), key, generation })
    const { minWorkMs, maxWorkMs } = this.options
    await this.view.sleep(minWorkMs + this.view.runtime.random(maxWorkMs - minWorkMs + 1))
    this.record({ event: 'done', ...this.who(), ...place })
  }

  async #startOf(partition: number): Promise<number> {
    const { topic } = this.options
    const leader = this.view.leader(topic, partition)
    try {
      const wire = this.view.wire(leader?.nodeId ?? -1)
      const partitions = [{ partitionIndex: partition, timestamp: -2 }]
      const answer = await wire.ask(listOffsets, { replicaId: -1, topics: [{ name: topic, partitions }] })
      const found = answer.topics[0]?.partitions[0]
      return found?.errorCode === errorCodes.NONE ? found.offset : -1
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      return -1
    }
  }

  #dropBuffered(partitions: readonly number[]): void {
    for (const partition of partitions) {
      const owned = this.owned.get(partition)
      if (owned !== undefined) owned.buffered = 0
    }
    const kept = this.queue.filter((record) => !partitions.includes(record.partition))
    this.queue.splice(0, this.queue.length, ...kept)
  }
}

export type WithoutTime = HistoryEvent extends infer E ? (E extends HistoryEvent ? Omit<E, 'at'> : never) : never
