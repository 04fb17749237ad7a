/**
 * A model of an application that writes in transactions: a few records, all acknowledged, then commit or abort. One
 * request at a time. What it cannot know it reports as unknown, and begins anew with a new epoch.
 */
import { errorCodes } from '../../../src/protocol/error-codes.ts'
import { produce } from '../../../src/protocol/generated/00-produce.ts'
import { initProducerId } from '../../../src/protocol/generated/22-init-producer-id.ts'
import { addPartitionsToTxn } from '../../../src/protocol/generated/24-add-partitions-to-txn.ts'
import { endTxn } from '../../../src/protocol/generated/26-end-txn.ts'
import { buildBatch } from '../../../src/records/build.ts'
import { partitioners } from '../../../src/records/hashes/partitioners.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'
import { ClusterView } from './cluster-view.ts'
import type { ProducerOptions } from './producer.ts'
import { ConnectionLost } from './wire.ts'

const TRANSACTION_TIMEOUT_MS = 8_000
const REQUEST_TRIES = 20

export interface TransactorOptions extends ProducerOptions {
  keys: number
  records: number
  gapMs: number
  /** Probability that a transaction is aborted. */
  abortChance: number
}

/** The transaction cannot go on: it is to be given up. */
class TransactionLost extends Error {}

export class ModelTransactor {
  done = false
  readonly #view: ClusterView
  readonly #options: TransactorOptions
  #producerId = -1
  #epoch = -1
  #sequences = new Map<number, number>()
  #sequence = 0
  #transactions = 0
  /** −1: to be found (again). */
  #coordinatorId = -1

  constructor(runtime: Runtime, options: TransactorOptions) {
    this.#options = options
    const { versions, requestTimeoutMs, retryBackoffMs } = options.family
    const { bootstrap, name: clientId } = options
    this.#view = new ClusterView(runtime, { clientId, versions, requestTimeoutMs, bootstrap, retryBackoffMs })
    this.#record({ event: 'started', producer: options.name, idempotent: true, client: options.family.name })
  }

  async run(): Promise<void> {
    await this.#view.refresh([this.#options.topic])
    while (this.#sequence < this.#options.records) {
      if (this.#producerId < 0) await this.#identify()
      await this.#transact()
    }
    this.done = true
    this.#view.close()
  }

  async #transact(): Promise<void> {
    const { name: producer, records, gapMs, abortChance } = this.#options
    const transaction = `${producer}-${this.#transactions++}`
    const commit = this.#view.runtime.random(1000) >= abortChance * 1000
    const count = Math.min(1 + this.#view.runtime.random(5), records - this.#sequence)
    let ending = false
    try {
      for (let i = 0; i < count; i++) {
        await this.#view.sleep(gapMs)
        await this.#write(transaction)
      }
      ending = true
      await this.#end(commit)
      this.#record({ event: 'transaction', producer, transaction, outcome: commit ? 'committed' : 'aborted' })
    } catch (error) {
      if (!(error instanceof TransactionLost)) throw error
      // A new epoch aborts whatever was open; only an end that was asked for may have taken place before.
      await this.#identify()
      this.#record({ event: 'transaction', producer, transaction, outcome: ending ? 'unknown' : 'aborted' })
    }
  }

  async #write(transaction: string): Promise<void> {
    const { name: producer, topic, keys } = this.#options
    const key = `k${this.#view.runtime.random(keys)}`
    const bytes = Buffer.from(key)
    const partition = partitioners['murmur2-mask'](bytes, 0, bytes.length, this.#view.count(topic))
    const origin = { producer, key, sequence: this.#sequence++ }
    this.#record({ event: 'sent', ...origin, topic, transaction })
    await this.#addPartition(partition)
    const baseSequence = this.#sequences.get(partition) ?? 0
    const records = buildBatch({
      records: [{ key: bytes, value: Buffer.from(`${producer}:${origin.sequence}`) }],
      transactional: true,
      producerId: this.#producerId,
      producerEpoch: this.#epoch,
      baseSequence,
      baseTimestamp: this.#view.runtime.wallNow(),
    })
    const answer = await this.#ask(async () => {
      const wire = this.#view.wire(this.#view.leader(topic, partition)?.nodeId ?? -1)
      await wire.ready
      const topicId = wire.versionOf(produce) >= 13 ? this.#view.topics.get(topic)?.id : undefined
      const topicData = [{ name: topic, topicId, partitionData: [{ index: partition, records }] }]
      const response = await wire.ask(produce, { transactionalId: this.#id, acks: -1, timeoutMs: 3_000, topicData })
      return response.responses[0]?.partitionResponses[0]
    })
    this.#sequences.set(partition, baseSequence + 1)
    this.#record({ event: 'acknowledged', ...origin, topic, partition, offset: answer.baseOffset })
  }

  async #addPartition(partition: number): Promise<void> {
    const { topic, family } = this.#options
    if ((family.versions[0] ?? 13) >= 12) return
    await this.#ask(async () => {
      const wire = await this.#coordinator()
      const response = await wire.ask(addPartitionsToTxn, {
        v3AndBelowTransactionalId: this.#id,
        v3AndBelowProducerId: this.#producerId,
        v3AndBelowProducerEpoch: this.#epoch,
        v3AndBelowTopics: [{ name: topic, partitions: [partition] }],
      })
      return { errorCode: response.resultsByTopicV3AndBelow[0]?.resultsByPartition[0]?.partitionErrorCode ?? -1 }
    })
  }

  async #end(committed: boolean): Promise<void> {
    const version2 = (this.#options.family.versions[0] ?? 13) >= 12
    const answer = await this.#ask(async () => {
      const wire = await this.#coordinator()
      const identity = { producerId: this.#producerId, producerEpoch: this.#epoch }
      return wire.ask(endTxn, { transactionalId: this.#id, ...identity, committed })
    })
    if (!version2 || answer.producerEpoch < 0) return
    if (answer.producerEpoch !== this.#epoch) this.#sequences = new Map()
    this.#producerId = answer.producerId
    this.#epoch = answer.producerEpoch
  }

  async #identify(): Promise<void> {
    for (;;) {
      try {
        const wire = await this.#coordinator()
        const answer = await wire.ask(initProducerId, {
          transactionalId: this.#id,
          transactionTimeoutMs: TRANSACTION_TIMEOUT_MS,
        })
        if (answer.errorCode === 0) {
          this.#producerId = answer.producerId
          this.#epoch = answer.producerEpoch
          this.#sequences = new Map()
          return
        }
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
      this.#coordinatorId = -1
      await this.#view.sleep(this.#options.family.retryBackoffMs)
    }
  }

  /** Asks until it is answered without error, or with one that ends the transaction. */
  async #ask<T extends { errorCode: number }>(ask: () => Promise<T | undefined>): Promise<T> {
    for (let i = 0; i < REQUEST_TRIES; i++) {
      try {
        const answer = await ask()
        if (answer?.errorCode === 0) return answer
        if (answer !== undefined && isFatal(answer.errorCode)) throw new TransactionLost(`error ${answer.errorCode}`)
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
      this.#coordinatorId = -1
      await this.#view.sleep(this.#options.family.retryBackoffMs)
      await this.#view.refresh([this.#options.topic])
    }
    throw new TransactionLost('no answer')
  }

  async #coordinator() {
    if (this.#coordinatorId < 0) this.#coordinatorId = await this.#view.coordinator(this.#id, 1)
    return this.#view.wire(this.#coordinatorId)
  }

  get #id(): string {
    return `tx-${this.#options.name}`
  }

  #record(
    event: Parameters<ProducerOptions['record']>[0] extends infer E
      ? E extends { at: number }
        ? Omit<E, 'at'>
        : never
      : never,
  ): void {
    this.#options.record({ at: this.#view.runtime.now(), ...event })
  }
}

function isFatal(errorCode: number): boolean {
  const fatal: readonly number[] = [
    errorCodes.INVALID_PRODUCER_EPOCH,
    errorCodes.PRODUCER_FENCED,
    errorCodes.INVALID_TXN_STATE,
    errorCodes.INVALID_PRODUCER_ID_MAPPING,
    errorCodes.OUT_OF_ORDER_SEQUENCE_NUMBER,
  ]
  return fatal.includes(errorCode)
}
