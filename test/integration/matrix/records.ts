/** Scenarios about records: every codec, acks and key, many small ones, large ones, transactions. */
import assert from 'node:assert/strict'
import { assertDelivered, isEvent, rowsOf } from './observe.ts'
import type { Route } from './route.ts'

const timestamp = 1_700_000_000_000

/** Every codec; null keys; acks 1 and 0; three headers, one empty; timestamps given. */
export async function codecs(route: Route): Promise<unknown> {
  const topic = route.own('codecs')
  await route.createTopic(topic, 3)
  const sent = []
  for (const codec of route.abilities.codecs) {
    const fields = { codec, producer: codec, count: 60, partitions: 3, headers: 3, timestamp }
    sent.push(...(await route.produce(topic, fields)))
  }
  const small = { count: 9, partitions: 3, timestamp }
  sent.push(...(await route.produce(topic, { ...small, producer: 'null-keys', keys: 0 })))
  sent.push(...(await route.produce(topic, { ...small, producer: 'acks-1', acks: 1 })))
  sent.push(...(await route.produce(topic, { ...small, producer: 'acks-0', acks: 0 })))
  const rows = rowsOf(await route.consume(topic, { group: route.own('codecs'), count: sent.length }))
  assertDelivered(sent, rows)
  return rows
}

/** 20,000 small records, and records of 900 KB. */
export async function volume(route: Route): Promise<unknown> {
  const topic = route.own('volume')
  await route.createTopic(topic, 6)
  // Idempotent: else the retry of a first request, sent while the topic was still being made, may change the order.
  const few = { idempotent: true, partitions: 6, timestamp }
  const small = await route.produce(topic, { ...few, producer: 's', count: 20_000, size: 24, keys: 100 })
  const large = await route.produce(topic, { ...few, producer: 'l', count: 6, size: 900_000 })
  assert.deepEqual([small.length, large.length], [20_000, 6])
  const rows = rowsOf(await route.consume(topic, { group: route.own('volume'), count: 20_006 }))
  assertDelivered([...small, ...large], rows)
  return rows
}

/** An idempotent producer, then six transactions, some aborted, read with both isolation levels. */
export async function transactions(route: Route): Promise<unknown> {
  const topic = route.own('transactions')
  await route.createTopic(topic, 3)
  const abortEvery = route.abilities.oneAbort === true ? 4 : 3
  const common = { partitions: 3, timestamp }
  const plain = await route.produce(topic, { ...common, producer: 'idempotent', count: 60, idempotent: true })
  const events = await route.run({
    cmd: 'produce',
    topic,
    ...common,
    producer: 'tx',
    count: 90,
    perTransaction: 15,
    abortEvery,
    transactionalId: route.own('tx'),
  })
  assert.equal(events.at(-1)?.ok, true, JSON.stringify(events.filter(isEvent('error'))))
  const outcomes = events.filter(isEvent('transaction')).map((event) => event.outcome)
  const expected = Array.from({ length: 6 }, (_, i) => ((i + 1) % abortEvery === 0 ? 'aborted' : 'committed'))
  assert.deepEqual(outcomes, expected)
  const aborted = new Set(events.filter((event) => event.outcome === 'aborted').map((event) => event.transaction))
  const sent = events.filter(isEvent('acknowledged'))
  const committed = [...plain, ...sent.filter((event) => !aborted.has(event.transaction))]
  const read = async (isolation: string, count: number) =>
    rowsOf(await route.consume(topic, { group: route.own(isolation), isolation, count }))
  const [onlyCommitted, everything] = [
    await read('read_committed', committed.length),
    await read('read_uncommitted', 150),
  ]
  assertDelivered(committed, onlyCommitted)
  assertDelivered([...plain, ...sent], everything)
  return { onlyCommitted, everything }
}

/** A record that the broker (or the client in its name) refuses. */
export async function tooLarge(route: Route): Promise<unknown> {
  const topic = route.own('too-large')
  await route.createTopic(topic, 1)
  const events = await route.run({ cmd: 'produce', topic, size: 3_000_000, partitions: 1 })
  const refused = events.filter(({ event }) => event === 'failed' || event === 'error')
  assert.equal(refused.length, 1, JSON.stringify(events))
  return refused.map((event) => event.code)
}
