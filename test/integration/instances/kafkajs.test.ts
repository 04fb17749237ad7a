/**
 * Who is calling, with real clients: two consumers of one process in one group with the same client id. In ports mode
 * they cannot be told apart, and that is said; in loopback mode each is its own instance, whatever it opens.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Consumer, Kafka, logLevel } from 'kafkajs'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import type { ClientView } from '../../../src/lifecycle/proxy.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { type Running, run } from '../../support/running.ts'
import { until } from '../../support/until.ts'

const timeout = 200_000
let broker: FakeBroker

before(async () => {
  broker = await FakeBroker.start(await nodeRuntime(), { nodeIds: [1, 2], autoCreatePartitions: 4 })
})
after(() => broker.stop())

/** Two consumers of one Kafka object, until each has joined and received records. */
async function twoConsumers(
  running: Running,
  topic: string,
): Promise<{ consumers: Consumer[]; received: string[][]; stop: () => Promise<void> }> {
  const kafka = new Kafka({ clientId: 'twins', brokers: [running.bootstrap], logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 4 }] })
  await admin.disconnect()
  const received: string[][] = [[], []]
  const consumers = [0, 1].map(() =>
    kafka.consumer({ groupId: `group-${topic}`, heartbeatInterval: 200, maxWaitTimeInMs: 200 }),
  )
  for (const [i, consumer] of consumers.entries()) {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void received[i]?.push(message.value?.toString() ?? '') })
  }
  const producer = kafka.producer()
  await producer.connect()
  let sent = 0
  await until(async () => {
    const messages = [0, 1, 2, 3].map((partition) => ({ partition, value: `v${sent++}` }))
    await producer.send({ topic, messages })
    return received.every((values) => values.length > 0)
  })
  await producer.disconnect()
  const stop = async () => {
    await Promise.all(consumers.map((consumer) => consumer.disconnect()))
  }
  return { consumers, received, stop }
}

function members(clients: readonly ClientView[], group: string): string[] {
  return clients.flatMap((client) => client.groups.filter((one) => one.group === group).map((one) => one.member))
}

test('loopback: each consumer is its own instance, exactly', { timeout }, async () => {
  const running = await run({ upstream: broker.bootstrap, listeners: [{ mode: 'loopback' }] })
  const { stop } = await twoConsumers(running, 'loop')
  const clients = running.proxy.clients().filter((client) => client.groups.some(({ group }) => group === 'group-loop'))
  assert.equal(clients.length, 2, JSON.stringify(clients, null, 1))
  assert.equal(new Set(members(clients, 'group-loop')).size, 2)
  for (const client of clients) {
    assert.equal(client.recognisedBy, 'address')
    assert.equal(client.ambiguous, false)
    assert.equal(client.clientId, 'twins')
    assert.ok(client.groups[0] !== undefined && client.groups[0].generation >= 1)
    assert.ok(client.connections >= 1)
  }
  await stop()
  await until(() => running.proxy.connections === 0)
  assert.equal(members(running.proxy.clients(), 'group-loop').length, 0, 'they left the group')
  await running.proxy.close()
})

test('loopback: a restarted proxy adopts the addresses that its clients hold', { timeout }, async () => {
  const first = await run({ upstream: broker.bootstrap, listeners: [{ mode: 'loopback' }] })
  const { received, stop } = await twoConsumers(first, 'again')
  await first.proxy.close()
  const second = await run({ upstream: broker.bootstrap, basePort: first.basePort, listeners: [{ mode: 'loopback' }] })
  await until(() => new Set(members(second.proxy.clients(), 'group-again')).size === 2)
  const clients = second.proxy.clients().filter((client) => client.groups.length > 0)
  assert.ok(clients.every(({ ambiguous, recognisedBy }) => !ambiguous && recognisedBy === 'address'))
  assert.ok(received.every((values) => values.length > 0))
  await stop()
  await second.proxy.close()
})

test('ports: they are one instance, marked ambiguous', { timeout }, async () => {
  const running = await run({ upstream: broker.bootstrap })
  const { stop } = await twoConsumers(running, 'ports')
  const mine = () =>
    running.proxy.clients().filter((client) => client.groups.some(({ group }) => group === 'group-ports'))
  await until(() => mine().some(({ ambiguous }) => ambiguous))
  assert.equal(mine().length, 1)
  assert.equal(mine()[0]?.recognisedBy, 'source')
  await stop()
  await running.proxy.close()
})
