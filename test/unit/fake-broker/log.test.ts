/** Partition logs, idempotent producers, transactions and committed offsets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupOffsets } from '../../../src/fake-broker/group-offsets.ts'
import { PartitionLog } from '../../../src/fake-broker/partition-log.ts'
import { Transactions } from '../../../src/fake-broker/transactions.ts'
import { buildBatch, type BatchToWrite } from '../../../src/records/build.ts'
import { readRecords } from '../../../src/records/read.ts'

const OUT_OF_ORDER = 45
const OLD_EPOCH = 47

function batch(keys: string, more: Partial<BatchToWrite> = {}): Buffer {
  return buildBatch({ records: [...keys].map((key) => ({ key: Buffer.from(key), value: Buffer.from(key) })), ...more })
}

function idempotent(keys: string, baseSequence: number, producerEpoch = 0, more: Partial<BatchToWrite> = {}): Buffer {
  return batch(keys, { producerId: 7, producerEpoch, baseSequence, ...more })
}

function offsets(log: PartitionLog): string {
  const { records } = log.read(0, log.end, 1e9, true)
  return readRecords(records, 1e6)
    .map((r) => `${r.offset}${r.control ? '!' : (r.key?.toString() ?? '')}`)
    .join(' ')
}

test('batches get the log’s offsets, and a read begins with the whole batch that holds the offset', () => {
  const log = new PartitionLog()
  log.append(Buffer.concat([batch('ab'), batch('cde')]))
  assert.equal(offsets(log), '0a 1b 2c 3d 4e')
  const fromMiddle = log.read(3, log.end, 1, true)
  assert.equal(readRecords(fromMiddle.records, 1e6)[0]?.offset, 2)
  assert.equal(log.read(0, log.end, 100, false).records.length, 100)
})

test('sequences: a repeated batch is answered with its offset, a gap is refused, an old epoch too', () => {
  const log = new PartitionLog()
  log.append(idempotent('ab', 0))
  log.append(idempotent('c', 2))
  const again = log.append(idempotent('ab', 0))
  assert.ok('baseOffset' in again && again.duplicate && again.baseOffset === 0)
  assert.equal(log.append(idempotent('x', 9)).errorCode, OUT_OF_ORDER)
  assert.equal(log.append(idempotent('d', 0, 1)).errorCode, 0)
  assert.equal(log.append(idempotent('e', 3, 0)).errorCode, OLD_EPOCH)
  assert.equal(log.append(idempotent('e', 5, 2)).errorCode, OUT_OF_ORDER)
  assert.equal(log.end, 4)
})

test('sequences go on after 2³¹−1 at 0', () => {
  const log = new PartitionLog()
  assert.equal(log.append(idempotent('ab', 2 ** 31 - 1)).errorCode, 0)
  assert.equal(log.append(idempotent('c', 1)).errorCode, 0)
})

test('an open transaction holds the last stable offset; an aborted one is named to readers', () => {
  const log = new PartitionLog()
  log.append(batch('a'))
  log.append(idempotent('bc', 0, 0, { transactional: true }))
  log.append(batch('d'))
  assert.deepEqual([log.lastStable, log.highWatermark], [1, 4])
  log.endTransaction(7, 0, false, 0)
  assert.equal(log.lastStable, 5)
  assert.deepEqual(log.read(0, 5, 1e9, true).aborted, [{ producerId: 7, firstOffset: 1, markerOffset: 4 }])
  assert.deepEqual(log.read(0, 1, 1e9, true).aborted, [])
})

test('a new leader begins at what was replicated, in a new epoch', () => {
  const log = new PartitionLog()
  log.append(batch('a'))
  assert.equal(log.highWatermark, 1)
  log.replicating = false
  log.append(idempotent('bc', 0))
  assert.deepEqual([log.highWatermark, log.end], [1, 3])
  assert.equal(log.elect(), 1)
  assert.equal(log.append(idempotent('bc', 0)).errorCode, 0)
  assert.deepEqual(log.endOfEpoch(0), { epoch: 0, endOffset: 1 })
  assert.deepEqual(log.endOfEpoch(1), { epoch: 1, endOffset: 3 })
  assert.deepEqual(log.endOfEpoch(9), { epoch: -1, endOffset: -1 })
})

test('a marker that was lost with a leader is written again', () => {
  const log = new PartitionLog()
  log.append(idempotent('a', 0, 0, { transactional: true }))
  assert.equal(log.highWatermark, 1)
  log.replicating = false
  log.append(batch('b'))
  log.endTransaction(7, 0, false, 0)
  assert.equal(log.elect(), 1)
  assert.equal(offsets(log), '0a 1!')
  assert.deepEqual(log.read(0, 2, 1e9, true).aborted, [{ producerId: 7, firstOffset: 0, markerOffset: 1 }])
  assert.equal(log.lastStable, 2)
})

test('compaction keeps the last record of each key and the offsets, and an empty last batch of a producer', () => {
  const log = new PartitionLog()
  log.append(batch('ab'))
  log.append(batch('a'))
  log.append(idempotent('b', 0))
  log.append(batch('b'))
  log.compact()
  assert.equal(offsets(log), '2a 4b')
  assert.deepEqual(
    log.batches.map((b) => [b.base, b.last]),
    [
      [2, 2],
      [3, 3],
      [4, 4],
    ],
  )
})

test('retention moves the start of the log', () => {
  const log = new PartitionLog()
  log.append(batch('ab'))
  log.append(batch('cd'))
  log.trim(3)
  assert.equal(log.start, 3)
  assert.equal(offsets(log), '2c 3d')
})

test('offsets: the order of appends decides between a plain commit and a transaction that ends later', () => {
  const rows = new GroupOffsets()
  const row = (offset: number) => ({ topic: 't', partition: 0, offset, leaderEpoch: 0, metadata: '', committedAtMs: 0 })
  rows.commitPending(1, row(100))
  rows.commit(row(90))
  assert.equal(rows.isPending('t', 0), true)
  rows.end(1, true)
  assert.equal(rows.get('t', 0)?.offset, 90)
  rows.commit(row(95))
  rows.commitPending(1, row(80))
  rows.end(1, true)
  assert.equal(rows.get('t', 0)?.offset, 80)
  rows.commitPending(1, row(99))
  rows.end(1, false)
  assert.equal(rows.get('t', 0)?.offset, 80)
  rows.commitPending(1, row(99))
  rows.delete('t', 0)
  rows.end(1, true)
  assert.equal(rows.get('t', 0), undefined)
})

test('offsets expire row by row while the group is active, all at once when it has been empty', () => {
  const rows = new GroupOffsets()
  const row = (topic: string, committedAtMs: number) => ({
    topic,
    partition: 0,
    offset: 1,
    leaderEpoch: 0,
    metadata: '',
    committedAtMs,
  })
  rows.commit(row('subscribed', 0))
  rows.commit(row('old', 0))
  rows.commit(row('new', 500))
  rows.expire(1000, 1000, undefined, new Set(['subscribed']))
  assert.deepEqual(
    rows.all().map((r) => r.topic),
    ['subscribed', 'new'],
  )
  rows.expire(1900, 1000, 1000, new Set())
  assert.equal(rows.size, 2)
  rows.expire(2000, 1000, 1000, new Set())
  assert.equal(rows.size, 0)
})

test('transactions: a new holder fences the old one and aborts what it left open', () => {
  const transactions = new Transactions()
  const ask = { transactionalId: 'x', timeoutMs: 1000, producerId: -1, producerEpoch: -1 }
  const { identity } = transactions.init(ask, 0)
  assert.equal(transactions.addPartitions('x', identity.producerId, 0, [{ topic: 't', partition: 0 }], 0), 0)
  const second = transactions.init(ask, 1)
  assert.equal(second.identity.producerEpoch, 1)
  assert.deepEqual([second.ended?.commit, second.ended?.transaction.partitions.length], [false, 1])
  assert.equal(transactions.end('x', identity.producerId, 0, true, false).identity.errorCode, 90)
})

test('transactions: what is open too long is aborted and its producer fenced', () => {
  const transactions = new Transactions()
  const { identity } = transactions.init(
    { transactionalId: 'x', timeoutMs: 1000, producerId: -1, producerEpoch: -1 },
    0,
  )
  transactions.addGroup('x', identity.producerId, 0, 'g', 500)
  assert.equal(transactions.nextDeadline(), 1500)
  assert.deepEqual(transactions.expire(1499), [])
  assert.equal(transactions.expire(1500)[0]?.commit, false)
  assert.equal(transactions.addGroup('x', identity.producerId, 0, 'g', 1600), 90)
})

test('transactions, version 2: the end raises the epoch, and a repeated end is answered as the first', () => {
  const transactions = new Transactions()
  const { identity } = transactions.init(
    { transactionalId: 'x', timeoutMs: 1000, producerId: -1, producerEpoch: -1 },
    0,
  )
  transactions.addGroup('x', identity.producerId, 0, 'g', 0)
  assert.equal(transactions.end('x', identity.producerId, 0, true, true).identity.producerEpoch, 1)
  assert.equal(transactions.end('x', identity.producerId, 0, true, true).identity.producerEpoch, 1)
  assert.equal(transactions.end('x', identity.producerId, 0, false, true).identity.errorCode, 90)
})
