/**
 * A model producer: batches per partition, a bounded number of requests in flight per broker, retries to the same
 * partition (or not), idempotence with epochs, and what the application is told. Invariant: the batches of a partition
 * are sent in order, and a retried one keeps the later ones of its partition back when the producer is idempotent.
 */
import { errorCodes, isRetriable } from '../../../src/protocol/error-codes.ts'
import { produce } from '../../../src/protocol/generated/00-produce.ts'
import { initProducerId } from '../../../src/protocol/generated/22-init-producer-id.ts'
import { buildBatch } from '../../../src/records/build.ts'
import { partitioners } from '../../../src/records/hashes/partitioners.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import { ClusterView } from './cluster-view.ts'
import type { ProducerFamily } from './families.ts'
import { ConnectionLost, type Wire } from './wire.ts'

export interface ProducerOptions {
  name: string
  family: ProducerFamily
  bootstrap: readonly string[]
  topic: string
  /** Asks for metadata in time although there is nothing to send, as all real ones do. */
  refreshesIdle?: boolean
  record(event: HistoryEvent): void
  /** The model met something that no client should. */
  fail: (error: unknown) => void
}

interface Message {
  key: string
  sequence: number
  bornMs: number
  /** Its timestamp, which it keeps however often it is sent. */
  wallMs: number
}

interface Batch {
  partition: number
  messages: Message[]
  baseSequence: number
  producerId: number
  producerEpoch: number
  state: 'queued' | 'in flight'
  notBeforeMs: number
  attempts: number
}

export class ModelProducer {
  readonly #view: ClusterView
  readonly #options: ProducerOptions
  readonly #family: ProducerFamily
  #waiting: Message[] = []
  #batches: Batch[] = []
  #inFlight = new Map<number, number>()
  #sequence = 0
  #producerId = -1
  #producerEpoch = -1
  #nextSequence = new Map<number, number>()
  #identifying = false
  #refreshedMs = Number.NEGATIVE_INFINITY
  #stale = true
  #pumping = false
  #closed = false

  constructor(runtime: Runtime, options: ProducerOptions) {
    this.#options = options
    this.#family = options.family
    const { versions, requestTimeoutMs, retryBackoffMs } = this.#family
    const { bootstrap } = options
    this.#view = new ClusterView(runtime, {
      clientId: options.name,
      versions,
      requestTimeoutMs,
      bootstrap,
      retryBackoffMs,
    })
    const ordered = this.#family.idempotent || this.#family.inFlight === 1
    this.#record({
      event: 'started',
      producer: options.name,
      idempotent: this.#family.idempotent,
      ordered,
      client: this.#family.name,
    })
    if (options.refreshesIdle === true) this.#refreshIdle()
  }

  #refreshIdle(): void {
    this.#view.runtime.timer(this.#family.metadataMaxAgeMs + 1, () => {
      if (this.#closed) return
      this.#pumpSoon()
      this.#refreshIdle()
    })
  }

  /** Records handed over and not settled. */
  get open(): number {
    return this.#waiting.length + this.#batches.reduce((sum, { messages }) => sum + messages.length, 0)
  }

  /** Hands a record over. */
  send(key: string): void {
    if (this.#closed) return
    const message = {
      key,
      sequence: this.#sequence++,
      bornMs: this.#view.runtime.now(),
      wallMs: this.#view.runtime.wallNow(),
    }
    this.#record({ event: 'sent', ...this.#origin(message), topic: this.#options.topic })
    this.#waiting.push(message)
    this.#pumpSoon()
  }

  close(): void {
    this.#closed = true
    this.#view.close()
  }

  #pumpSoon(): void {
    if (this.#pumping || this.#closed) return
    this.#pumping = true
    this.#view.runtime.soon(() => {
      this.#pumping = false
      this.#pump()
    })
  }

  #pumpAt(ms: number): void {
    this.#view.runtime.timer(Math.max(1, ms - this.#view.runtime.now()), () => this.#pumpSoon())
  }

  #pump(): void {
    if (this.#closed) return
    this.#expire()
    const now = this.#view.runtime.now()
    if (this.#stale || now - this.#refreshedMs > this.#family.metadataMaxAgeMs) return this.#refresh()
    if (this.#family.idempotent && this.#producerId < 0) return this.#identify()
    this.#makeBatches()
    const byNode = new Map<number, Batch[]>()
    for (const batch of this.#sendable(now)) {
      const nodeId = this.#view.leader(this.#options.topic, batch.partition)?.nodeId ?? -1
      byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), batch])
    }
    for (const [nodeId, batches] of byNode) {
      if (nodeId < 0) {
        this.#retry(batches)
        continue
      }
      if ((this.#inFlight.get(nodeId) ?? 0) >= this.#family.inFlight) continue
      this.#sendTo(nodeId, batches).catch(this.#options.fail)
    }
  }

  /** The first batch of each partition that may go now. */
  #sendable(now: number): Batch[] {
    const seen = new Set<number>()
    const sendable: Batch[] = []
    for (const batch of this.#batches) {
      const { partition } = batch
      if (seen.has(partition)) continue
      if (batch.state === 'in flight') {
        // What is behind a batch in flight may go too, unless one behind it is already being retried.
        if (this.#family.inFlight === 1 || this.#isRetrying(partition)) seen.add(partition)
        continue
      }
      seen.add(partition)
      if (batch.notBeforeMs > now) this.#pumpAt(batch.notBeforeMs)
      else sendable.push(batch)
    }
    return sendable
  }

  #isRetrying(partition: number): boolean {
    return this.#family.idempotent && this.#batches.some((b) => b.partition === partition && b.attempts > 0)
  }

  #makeBatches(): void {
    const count = this.#view.count(this.#options.topic)
    if (count === 0) return
    for (const message of this.#waiting) {
      const key = Buffer.from(message.key)
      const partition = partitioners['murmur2-mask'](key, 0, key.length, count)
      const last = this.#batches.findLast((b) => b.partition === partition)
      if (last?.state === 'queued' && last.attempts === 0 && last.messages.length < this.#family.maxBatch) {
        last.messages.push(message)
        continue
      }
      this.#batches.push({
        partition,
        messages: [message],
        baseSequence: -1,
        producerId: -1,
        producerEpoch: -1,
        state: 'queued',
        notBeforeMs: 0,
        attempts: 0,
      })
    }
    this.#waiting = []
  }

  async #sendTo(nodeId: number, batches: Batch[]): Promise<void> {
    this.#inFlight.set(nodeId, (this.#inFlight.get(nodeId) ?? 0) + 1)
    for (const batch of batches) this.#stamp(batch)
    let codes = new Map<number, { errorCode: number; baseOffset: number }>()
    try {
      const wire = this.#view.wire(nodeId)
      await wire.ready
      const { acks } = this.#family
      const answer = await wire.ask(produce, { acks, timeoutMs: 3_000, topicData: this.#topicData(wire, batches) })
      codes = new Map(answer.responses.flatMap((t) => t.partitionResponses).map((p) => [p.index, p]))
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      this.#stale = true
    }
    this.#inFlight.set(nodeId, (this.#inFlight.get(nodeId) ?? 1) - 1)
    for (const batch of batches) this.#settle(batch, codes.get(batch.partition))
    this.#pumpSoon()
  }

  #topicData(wire: Wire, batches: Batch[]) {
    const { topic } = this.#options
    const partitionData = batches.map((batch) => ({ index: batch.partition, records: this.#encode(batch) }))
    const topicId = wire.versionOf(produce) >= 13 ? this.#view.topics.get(topic)?.id : undefined
    return [{ name: topic, topicId, partitionData }]
  }

  #stamp(batch: Batch): void {
    batch.state = 'in flight'
    if (!this.#family.idempotent || batch.producerId >= 0) return
    batch.producerId = this.#producerId
    batch.producerEpoch = this.#producerEpoch
    batch.baseSequence = this.#nextSequence.get(batch.partition) ?? 0
    this.#nextSequence.set(batch.partition, batch.baseSequence + batch.messages.length)
  }

  #encode({ messages, producerId, producerEpoch, baseSequence }: Batch): Buffer {
    const baseTimestamp = messages[0]?.wallMs ?? 0
    const records = messages.map(({ key, sequence, wallMs }) => ({
      key: Buffer.from(key),
      value: Buffer.from(`${this.#options.name}:${sequence}`),
      timestamp: wallMs,
    }))
    return buildBatch({ records, producerId, producerEpoch, baseSequence, baseTimestamp })
  }

  #settle(batch: Batch, answer: { errorCode: number; baseOffset: number } | undefined): void {
    if (!this.#batches.includes(batch)) return
    if (answer === undefined) return this.#retry([batch])
    const { errorCode, baseOffset } = answer
    if (errorCode === 0 || errorCode === errorCodes.DUPLICATE_SEQUENCE_NUMBER) {
      this.#remove(batch)
      for (const [at, message] of batch.messages.entries()) {
        const offset = baseOffset + at
        if (baseOffset < 0) this.#fail(message, 'duplicate of an unknown offset')
        else
          this.#record({
            event: 'acknowledged',
            ...this.#origin(message),
            topic: this.#options.topic,
            partition: batch.partition,
            offset,
          })
      }
      return
    }
    const retriable =
      isRetriable(errorCode) ||
      (errorCode === errorCodes.OUT_OF_ORDER_SEQUENCE_NUMBER && batch !== this.#firstOf(batch.partition))
    if (
      errorCode === errorCodes.NOT_LEADER_OR_FOLLOWER ||
      errorCode === errorCodes.UNKNOWN_TOPIC_OR_PARTITION ||
      errorCode === errorCodes.UNKNOWN_TOPIC_ID
    )
      this.#stale = true
    if (retriable || errorCode === errorCodes.UNKNOWN_TOPIC_ID) return this.#retry([batch])
    this.#remove(batch)
    for (const message of batch.messages) this.#fail(message, `error ${errorCode}`)
    this.#startOver()
  }

  #firstOf(partition: number): Batch | undefined {
    return this.#batches.find((b) => b.partition === partition)
  }

  #retry(batches: Batch[]): void {
    const now = this.#view.runtime.now()
    const minAge = Math.max(0, this.#refreshedMs + this.#family.metadataMinAgeMs - now)
    for (const batch of batches) {
      batch.state = 'queued'
      batch.attempts++
      batch.notBeforeMs = now + Math.max(this.#family.retryBackoffMs, Math.min(minAge, this.#family.metadataMinAgeMs))
      this.#pumpAt(batch.notBeforeMs)
    }
    if (this.#family.replacesOnRetry) this.#placeAnew()
  }

  /** Everything that is not in flight goes back to where it was before it had a partition, in the order it was sent. */
  #placeAnew(): void {
    const queued = this.#batches.filter((b) => b.state === 'queued')
    this.#batches = this.#batches.filter((b) => b.state !== 'queued')
    this.#waiting = [...queued.flatMap((b) => b.messages), ...this.#waiting]
    this.#waiting.sort((a, b) => a.sequence - b.sequence)
  }

  /** A batch is gone for good, so its sequence numbers are a gap: everything not in flight gets a new identity. */
  #startOver(): void {
    if (!this.#family.idempotent) return
    this.#producerId = -1
    this.#nextSequence = new Map()
  }

  #expire(): void {
    const bornBefore = this.#view.runtime.now() - this.#family.deliveryTimeoutMs
    this.#waiting = this.#waiting.filter((message) => {
      if (message.bornMs >= bornBefore) return true
      this.#fail(message, 'delivery timeout')
      return false
    })
    for (const batch of Array.from(this.#batches)) {
      if (batch.state === 'in flight' || (batch.messages[0]?.bornMs ?? 0) >= bornBefore) continue
      this.#remove(batch)
      for (const message of batch.messages) this.#fail(message, 'delivery timeout')
      if (batch.producerId >= 0) this.#startOver()
    }
  }

  #refresh(): void {
    this.#stale = false
    this.#view
      .refresh([this.#options.topic])
      .then(() => {
        this.#refreshedMs = this.#view.runtime.now()
        this.#pumpSoon()
      })
      .catch(this.#options.fail)
    this.#refreshedMs = this.#view.runtime.now()
  }

  #identify(): void {
    const inFlight = this.#batches.some((b) => b.state === 'in flight')
    if (this.#identifying || inFlight) return
    this.#identifying = true
    for (const batch of Array.from(this.#batches)) {
      if (batch.producerId >= 0 && batch.attempts > 0) {
        // It may be in the log already, and a new identity would write it again.
        this.#remove(batch)
        for (const message of batch.messages) this.#fail(message, 'producer started over')
      }
      batch.producerId = -1
    }
    this.#askIdentity()
      .then(() => {
        this.#identifying = false
        this.#pumpSoon()
      })
      .catch(this.#options.fail)
  }

  async #askIdentity(): Promise<void> {
    for (;;) {
      try {
        const nodeId = this.#view.leader(this.#options.topic, 0)?.nodeId ?? -1
        const answer = await this.#view
          .wire(nodeId)
          .ask(initProducerId, { transactionalId: null, transactionTimeoutMs: 60_000 })
        if (answer.errorCode === 0) {
          this.#producerId = answer.producerId
          this.#producerEpoch = answer.producerEpoch
          this.#nextSequence = new Map()
          return
        }
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
        await this.#view.refresh([this.#options.topic])
      }
      await this.#view.sleep(this.#family.retryBackoffMs)
    }
  }

  #remove(batch: Batch): void {
    this.#batches = this.#batches.filter((b) => b !== batch)
  }

  #fail(message: Message, error: string): void {
    this.#record({ event: 'failed', ...this.#origin(message), topic: this.#options.topic, error })
  }

  #origin({ key, sequence }: Message): { producer: string; key: string; sequence: number } {
    return { producer: this.#options.name, key, sequence }
  }

  #record(event: WithoutTime): void {
    this.#options.record({ at: this.#view.runtime.now(), ...event })
  }
}

type WithoutTime = HistoryEvent extends infer E ? (E extends HistoryEvent ? Omit<E, 'at'> : never) : never
