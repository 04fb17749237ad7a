/**
 * The transaction coordinator: transactional ids, their producer ids and epochs, and what each open transaction
 * touches. A pure state machine (KIP-98; epochs raised at the end of a transaction as in KIP-890, `version2`).
 */
import { errorCodes } from '../protocol/error-codes.ts'

const LAST_EPOCH = 32_767

export interface TopicPartition {
  topic: string
  partition: number
}

export interface Transaction {
  transactionalId: string
  producerId: number
  producerEpoch: number
  timeoutMs: number
  state: 'Empty' | 'Ongoing' | 'CompleteCommit' | 'CompleteAbort'
  startedAtMs: number
  partitions: TopicPartition[]
  groups: Set<string>
}

export interface ProducerIdentity {
  errorCode: number
  producerId: number
  producerEpoch: number
}

/** A transaction that has just ended: the caller writes the markers and applies the offsets. */
export interface Ended {
  transaction: Pick<Transaction, 'producerId' | 'producerEpoch' | 'partitions' | 'groups'>
  commit: boolean
}

export class Transactions {
  readonly #byId = new Map<string, Transaction>()
  #nextProducerId: number

  constructor(firstProducerId = 1000) {
    this.#nextProducerId = firstProducerId
  }

  get all(): Iterable<Transaction> {
    return this.#byId.values()
  }

  /** InitProducerId. Without a transactional id: a new producer. With one: fences the former holder. */
  init(
    request: { transactionalId: string | null; timeoutMs: number; producerId: number; producerEpoch: number },
    nowMs: number,
  ): { identity: ProducerIdentity; ended: Ended | undefined } {
    if (request.transactionalId === null) return { identity: this.#newIdentity(request), ended: undefined }
    let transaction = this.#byId.get(request.transactionalId)
    if (transaction === undefined) {
      transaction = this.#create(request.transactionalId, request.timeoutMs, nowMs)
      return { identity: identityOf(transaction), ended: undefined }
    }
    const claimed = request.producerId >= 0
    if (
      claimed &&
      (request.producerId !== transaction.producerId || request.producerEpoch !== transaction.producerEpoch)
    ) {
      return { identity: refused(errorCodes.PRODUCER_FENCED), ended: undefined }
    }
    const open = transaction.state === 'Ongoing'
    this.#bump(transaction)
    const ended = open ? this.#end(transaction, false) : undefined
    transaction.timeoutMs = request.timeoutMs
    transaction.state = 'Empty'
    return { identity: identityOf(transaction), ended }
  }

  addPartitions(id: string, producerId: number, epoch: number, partitions: TopicPartition[], nowMs: number): number {
    const transaction = this.#byId.get(id)
    const errorCode = check(transaction, producerId, epoch)
    if (errorCode !== 0 || transaction === undefined) return errorCode
    this.#open(transaction, nowMs)
    for (const added of partitions) {
      const known = transaction.partitions.some((p) => p.topic === added.topic && p.partition === added.partition)
      if (!known) transaction.partitions.push(added)
    }
    return 0
  }

  addGroup(id: string, producerId: number, epoch: number, group: string, nowMs: number): number {
    const transaction = this.#byId.get(id)
    const errorCode = check(transaction, producerId, epoch)
    if (errorCode !== 0 || transaction === undefined) return errorCode
    this.#open(transaction, nowMs)
    transaction.groups.add(group)
    return 0
  }

  /** Whether offsets of `group` (or records of a partition) may be written in this transaction now. */
  verify(id: string, producerId: number, epoch: number, part: { group: string } | TopicPartition): number {
    const transaction = this.#byId.get(id)
    const errorCode = check(transaction, producerId, epoch)
    if (errorCode !== 0 || transaction === undefined) return errorCode
    if (transaction.state !== 'Ongoing') return errorCodes.INVALID_TXN_STATE
    const added =
      'group' in part
        ? transaction.groups.has(part.group)
        : transaction.partitions.some((p) => p.topic === part.topic && p.partition === part.partition)
    return added ? 0 : errorCodes.INVALID_TXN_STATE
  }

  /** EndTxn. A repeated end of the same outcome is answered as the first. `version2` raises the epoch. */
  end(
    id: string,
    producerId: number,
    epoch: number,
    commit: boolean,
    version2: boolean,
  ): { identity: ProducerIdentity; ended: Ended | undefined } {
    const transaction = this.#byId.get(id)
    const errorCode = check(transaction, producerId, epoch)
    const repeated = version2 && transaction !== undefined && epoch === transaction.producerEpoch - 1
    if (repeated && transaction.state === (commit ? 'CompleteCommit' : 'CompleteAbort')) {
      return { identity: identityOf(transaction), ended: undefined }
    }
    if (errorCode !== 0 || transaction === undefined) return { identity: refused(errorCode), ended: undefined }
    const complete = commit ? 'CompleteCommit' : 'CompleteAbort'
    if (transaction.state !== 'Ongoing') {
      const answer = transaction.state === complete || (version2 && !commit) ? identityOf(transaction) : undefined
      return { identity: answer ?? refused(errorCodes.INVALID_TXN_STATE), ended: undefined }
    }
    const ended = this.#end(transaction, commit)
    if (version2) this.#bump(transaction)
    transaction.state = complete
    return { identity: identityOf(transaction), ended }
  }

  /** Aborts what has been open for longer than its timeout, fencing its producer. */
  expire(nowMs: number): Ended[] {
    const expired: Ended[] = []
    for (const transaction of this.#byId.values()) {
      if (transaction.state !== 'Ongoing' || nowMs < transaction.startedAtMs + transaction.timeoutMs) continue
      this.#bump(transaction)
      expired.push(this.#end(transaction, false))
      transaction.state = 'CompleteAbort'
    }
    return expired
  }

  nextDeadline(): number {
    let next = Number.POSITIVE_INFINITY
    for (const { state, startedAtMs, timeoutMs } of this.#byId.values()) {
      if (state === 'Ongoing') next = Math.min(next, startedAtMs + timeoutMs)
    }
    return next
  }

  #newIdentity(request: { producerId: number; producerEpoch: number }): ProducerIdentity {
    if (request.producerId >= 0 && request.producerEpoch < LAST_EPOCH - 1) {
      return { errorCode: 0, producerId: request.producerId, producerEpoch: request.producerEpoch + 1 }
    }
    return { errorCode: 0, producerId: this.#nextProducerId++, producerEpoch: 0 }
  }

  #create(transactionalId: string, timeoutMs: number, nowMs: number): Transaction {
    const transaction: Transaction = {
      transactionalId,
      producerId: this.#nextProducerId++,
      producerEpoch: 0,
      timeoutMs,
      state: 'Empty',
      startedAtMs: nowMs,
      partitions: [],
      groups: new Set(),
    }
    this.#byId.set(transactionalId, transaction)
    return transaction
  }

  #open(transaction: Transaction, nowMs: number): void {
    if (transaction.state === 'Ongoing') return
    transaction.state = 'Ongoing'
    transaction.startedAtMs = nowMs
  }

  #end(transaction: Transaction, commit: boolean): Ended {
    const { producerId, producerEpoch, partitions, groups } = transaction
    transaction.partitions = []
    transaction.groups = new Set()
    return { transaction: { producerId, producerEpoch, partitions, groups }, commit }
  }

  #bump(transaction: Transaction): void {
    if (transaction.producerEpoch < LAST_EPOCH - 1) {
      transaction.producerEpoch++
      return
    }
    transaction.producerId = this.#nextProducerId++
    transaction.producerEpoch = 0
  }
}

function check(transaction: Transaction | undefined, producerId: number, epoch: number): number {
  if (transaction?.producerId !== producerId) return errorCodes.INVALID_PRODUCER_ID_MAPPING
  return epoch === transaction.producerEpoch ? 0 : errorCodes.PRODUCER_FENCED
}

function identityOf({ producerId, producerEpoch }: Transaction): ProducerIdentity {
  return { errorCode: 0, producerId, producerEpoch }
}

function refused(errorCode: number): ProducerIdentity {
  return { errorCode, producerId: -1, producerEpoch: -1 }
}
