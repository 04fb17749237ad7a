/** A partition as a broker keeps it, naively: entries, transactions, and what a Fetch of it answers. */
import {
  isControl,
  isTransactional,
  lastOffsetOf,
  magicOf,
  producerIdOf,
  walkEntries,
} from '../../../src/records/batch.ts'
import { controlTypeOf, controlTypes } from '../../../src/records/control.ts'
import { type ReadRecord, readRecords } from '../../../src/records/read.ts'
import type { FetchRequestPartition, FetchResponsePartition } from '../../../src/protocol/generated/01-fetch.ts'

const OFFSET_OUT_OF_RANGE = 1
export const READ_COMMITTED = 1

interface Entry {
  readonly bytes: Buffer
  readonly lastOffset: number
}

interface Transaction {
  readonly producerId: number
  readonly firstOffset: number
  /** Of the marker; beyond every offset while the transaction is open. */
  endOffset: number
  aborted: boolean
}

export interface DataRecord extends ReadRecord {
  readonly aborted: boolean
}

export class Log {
  readonly entries: readonly Entry[]
  readonly startOffset: number
  readonly endOffset: number
  readonly lastStableOffset: number
  readonly records: readonly DataRecord[]
  private readonly transactions: readonly Transaction[]

  constructor(bytes: Buffer, startOffset: number, endOffset: number) {
    this.startOffset = startOffset
    this.endOffset = endOffset
    const entries: Entry[] = []
    const transactions: Transaction[] = []
    walkEntries(bytes, (at, end) => {
      const entry = bytes.subarray(at, end)
      follow(transactions, entry)
      entries.push({ bytes: entry, lastOffset: lastOffsetOf(bytes, at) })
    })
    this.entries = entries
    this.transactions = transactions
    const open = transactions.filter((one) => one.endOffset === Number.POSITIVE_INFINITY)
    this.lastStableOffset = Math.min(endOffset, ...open.map((one) => one.firstOffset))
    this.records = readRecords(bytes, 1 << 20)
      .filter((record) => !record.control)
      .map((record) => ({ ...record, aborted: this.isAborted(record) }))
  }

  private isAborted({ transactional, producerId, offset }: ReadRecord): boolean {
    return (
      transactional &&
      this.transactions.some(
        (one) => one.aborted && one.producerId === producerId && one.firstOffset <= offset && offset < one.endOffset,
      )
    )
  }

  /** What a leader answers; at least one entry if there is any, and possibly the first bytes of one more. */
  fetch(request: FetchRequestPartition, isolationLevel: number, torn: boolean): FetchResponsePartition {
    const committed = isolationLevel === READ_COMMITTED
    const { fetchOffset, partition } = request
    const upper = committed ? this.lastStableOffset : this.endOffset
    const empty = response(partition, this, committed)
    if (fetchOffset < this.startOffset || fetchOffset > this.endOffset)
      return { ...empty, errorCode: OFFSET_OUT_OF_RANGE, highWatermark: -1 }
    const parts: Buffer[] = []
    let size = 0
    for (const { bytes, lastOffset } of this.entries) {
      if (lastOffset < fetchOffset || lastOffset >= upper) continue
      if (size > 0 && size + bytes.length > request.partitionMaxBytes) {
        if (torn) parts.push(bytes.subarray(0, request.partitionMaxBytes - size))
        break
      }
      parts.push(bytes)
      size += bytes.length
    }
    const abortedTransactions = committed
      ? this.transactions.filter((one) => one.aborted && one.endOffset >= fetchOffset)
      : null
    return { ...empty, abortedTransactions, records: Buffer.concat(parts) }
  }
}

/** Keeps account of transactions as a broker does: they begin with a producer's first batch and end with a marker. */
function follow(transactions: Transaction[], entry: Buffer): void {
  if (magicOf(entry, 0) < 2 || !isTransactional(entry, 0)) return
  const producerId = producerIdOf(entry, 0)
  const open = transactions.find((one) => one.producerId === producerId && one.endOffset === Number.POSITIVE_INFINITY)
  const lastOffset = lastOffsetOf(entry, 0)
  if (isControl(entry, 0)) {
    if (open === undefined) return
    open.endOffset = lastOffset
    open.aborted = controlTypeOf(entry, 0, entry.length) === controlTypes.abort
  } else if (open === undefined) {
    const firstOffset = Number(entry.readBigInt64BE(0))
    transactions.push({ producerId, firstOffset, endOffset: Number.POSITIVE_INFINITY, aborted: false })
  }
}

function response(partitionIndex: number, log: Log, committed: boolean): FetchResponsePartition {
  return {
    partitionIndex,
    errorCode: 0,
    highWatermark: log.endOffset,
    lastStableOffset: log.lastStableOffset,
    logStartOffset: log.startOffset,
    divergingEpoch: null,
    currentLeader: null,
    snapshotId: null,
    abortedTransactions: committed ? [] : null,
    preferredReadReplica: -1,
    records: Buffer.alloc(0),
  }
}
