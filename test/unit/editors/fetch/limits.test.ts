import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FetchPolicy, PartitionPolicy } from '../../../../src/editors/fetch/policy.ts'
import { SkipPointers } from '../../../../src/editors/fetch/skip-pointers.ts'
import { readRecords } from '../../../../src/records/read.ts'
import { fetchFrame, read, records, start, startUnder } from './editing.ts'
import { answered, batch, reading, step } from './reading.ts'

const offsetsIn = (bytes: Buffer | null | undefined): number[] =>
  readRecords(bytes ?? Buffer.alloc(0), 1 << 20).map(({ offset }) => offset)

/** A limit that a test moves, and Fetches that wait behind it are told. */
class Gate implements FetchPolicy {
  limit = 0
  looks = 0
  isInteresting = true
  isStandby = false
  private readonly listeners: (() => void)[] = []

  view() {
    if (!this.isInteresting) return undefined
    const policy: PartitionPolicy = {
      limit: () => (this.looks++, this.limit),
      ...(this.isStandby ? { standby: true } : {}),
    }
    return { partition: () => policy }
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  open(limit: number): void {
    this.limit = limit
    for (const listener of this.listeners) listener()
  }
}

void test('batches below a limit pass as the bytes they are, and the cut is at a batch', () => {
  const bytes = Buffer.concat([batch(0, 'ab', { codec: 1 }), batch(2, 'cd'), batch(4, 'ef')])
  for (const [limit, expected] of [
    [4, [0, 1, 2, 3]],
    [5, [0, 1, 2, 3]], // inside a batch: it waits as a whole
    [Infinity, [0, 1, 2, 3, 4, 5]],
  ] as const) {
    const found = reading({ offset: 0 }, { limit: () => limit }, new SkipPointers())
    const aborted = [{ producerId: 7, firstOffset: 1 }]
    step(found, { records: bytes, abortedTransactions: aborted })
    const { records: given, abortedTransactions } = answered(found)
    assert.deepEqual(offsetsIn(given), expected)
    assert.deepEqual(given, bytes.subarray(0, given?.length))
    assert.equal(abortedTransactions?.length, 1, 'batches that were not opened keep their list')
  }
})

void test('a batch that straddles its limit and stands first is cut inside, and reading never goes on above the limit', () => {
  const pointers = new SkipPointers()
  const found = reading({ offset: 4 }, { limit: () => 5 }, pointers)
  step(found, { records: batch(4, 'ef') })
  found.remember(pointers)
  assert.deepEqual(offsetsIn(answered(found).records), [4])
  assert.equal(
    reading({ offset: 5 }, { limit: () => 5 }, pointers).request(0)?.topics[0]?.partitions[0]?.fetchOffset,
    5,
  )
})

void test('what was found is taken back when the limit has fallen below its end, and nothing is remembered of it', () => {
  for (const fallen of [-1, 3]) {
    let limit = Infinity
    const pointers = new SkipPointers()
    const found = reading({ offset: 0, minBytes: 1000 }, { limit: () => limit }, pointers)
    step(found, { records: Buffer.concat([batch(0, 'ab'), batch(2, 'cd')]), highWatermark: 9 })
    found.recheck()
    assert.equal(found.complete, true)
    limit = fallen
    found.recheck()
    assert.equal(found.complete, false)
    assert.deepEqual(offsetsIn(answered(found).records), [])
    assert.equal(answered(found).highWatermark, 9)
    found.remember(pointers)
    assert.equal(pointers.find('t/0/0', 0), undefined)
  }
})

void test('a Fetch behind a shut limit is answered empty with the true high watermark after its wait, and at once when it opens', async () => {
  const gate = new Gate()
  const { rig, client } = await startUnder(gate, () => records(batch(0, 'ab')))
  const began = rig.runtime.now()
  client.send(fetchFrame({ maxWaitMs: 800 }))
  await rig.run(() => client.frames.length === 1)
  const shut = read(client.frames[0]).responses[0]?.partitions[0]
  assert.deepEqual([shut?.records?.length, shut?.highWatermark, shut?.errorCode], [0, 50, 0])
  assert.ok(rig.runtime.now() - began >= 800)
  client.send(fetchFrame({ maxWaitMs: 60_000 }))
  await rig.run(() => false, 10_000)
  const openedAt = rig.runtime.now()
  gate.open(2)
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(offsetsIn(read(client.frames[1]).responses[0]?.partitions[0]?.records), [0, 1])
  assert.ok(rig.runtime.now() - openedAt < 50, 'no poll in between')
})

void test('records read under a limit that falls while the broker is asked do not go to the client', async () => {
  const gate = new Gate()
  gate.limit = Infinity
  const { rig, client, broker } = await startUnder(gate, () => {
    gate.limit = -1
    return records(batch(0, 'ab'))
  })
  client.send(fetchFrame({ maxWaitMs: 500 }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(broker.fetches.length, 1)
  assert.deepEqual(offsetsIn(read(client.frames[0]).responses[0]?.partitions[0]?.records), [])
})

void test('records that wait for more of them are not given after the limit has fallen', async () => {
  let limit = Infinity
  const { rig, client } = await start({ keep: () => true, limit: () => limit }, (_, at) => {
    if (at > 1) limit = -1
    return records(at === 1 ? batch(0, 'ab') : undefined)
  })
  client.send(fetchFrame({ maxWaitMs: 1000, minBytes: 5000 }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(offsetsIn(read(client.frames[0]).responses[0]?.partitions[0]?.records), [])
})

void test('a Fetch that passed unopened is answered empty if a limit stands when its answer arrives, long or short', async () => {
  for (const size of [10, 400_000]) {
    for (const mode of ['unopened', 'standby'] as const) {
      const gate = new Gate()
      gate.limit = Infinity
      gate.isInteresting = mode === 'standby'
      gate.isStandby = true
      const answer = records(batch(0, 'ab', { value: Buffer.alloc(size) }))
      const { rig, client } = await startUnder(gate, (_, at) => {
        gate.isInteresting = true
        gate.limit = at === 1 ? -1 : Infinity
        return answer
      })
      client.send(fetchFrame())
      await rig.run(() => client.frames.length === 1)
      const first = read(client.frames[0]).responses[0]?.partitions[0]
      assert.deepEqual([offsetsIn(first?.records), first?.errorCode], [[], 0])
      assert.equal(first?.highWatermark, size === 10 ? 50 : -1)
      client.send(fetchFrame({ session: [0, -1] }))
      await rig.run(() => client.frames.length === 2)
      assert.deepEqual(offsetsIn(read(client.frames[1]).responses[0]?.partitions[0]?.records), [0, 1])
    }
  }
})

void test('on standby a Fetch passes as it is, and in a session unnamed partitions count as shut', async () => {
  const gate = new Gate()
  gate.limit = Infinity
  gate.isStandby = true
  const { rig, client, broker } = await startUnder(gate, () => records(batch(0, 'ab')))
  client.send(fetchFrame({ session: [0, -1] }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(offsetsIn(read(client.frames[0]).responses[0]?.partitions[0]?.records), [0, 1])
  assert.equal(broker.fetches[0]?.maxWaitMs, 5000, 'the very request of the client')
  gate.isInteresting = false
  client.send(fetchFrame({ session: [7, 1] }))
  await rig.run(() => broker.fetches.length === 2)
  gate.isInteresting = true
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(offsetsIn(read(client.frames[1]).responses[0]?.partitions[0]?.records), [])
})

void test('a partition with every record kept and no limit is delivered as the broker gave it', async () => {
  const bytes = batch(0, 'ab', { codec: 4 })
  const { rig, client } = await start({ limit: () => Infinity }, () => records(bytes))
  client.send(fetchFrame())
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(read(client.frames[0]).responses[0]?.partitions[0]?.records, bytes)
})
