/**
 * `npm run demo -- ranges`: two consumers share one partition by static key ranges. Starts a Kafka and the real binary,
 * sends records, shows who got which, checks that each key went to one consumer only and nothing was lost, and ends.
 */
import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { bucketOfKey } from '../../src/records/hashes/buckets.ts'
import { builtMain } from '../setup/build.ts'
import { startHeadgate } from './proxy.ts'
import { createTopic } from './topic.ts'
import { startUpstream } from './upstream.ts'

const { Kafka, logLevel } = kafkajs
const say = (line: string) => console.log(line)
const records = 1000
const keys = 20
const consumers = [
  { clientId: 'left', keys: '0-7fff' },
  { clientId: 'right', keys: '8000-ffff' },
]

const main = await builtMain(say)
const containerName = 'headgate-demo-ranges'
const upstream = await startUpstream({
  upstream: process.env['UPSTREAM_BOOTSTRAP'],
  only: undefined,
  containerName,
  say,
})
const rules = consumers.map(({ clientId, keys: range }) => `      - {clientId: ${clientId}, keys: ['${range}']}`)
const proxy = await startHeadgate('demo-ranges', main, upstream.bootstrap, [
  'groups:',
  "  'demo-.*':",
  '    ranges:',
  ...rules,
]).catch(async (error: unknown) => {
  await upstream.stop()
  throw error
})
try {
  await share(proxy.bootstrap, `headgate-demo-ranges-${process.pid}`)
  say(`\n/api/ranges: ${await (await fetch(`${proxy.admin}/api/ranges`)).text()}`)
} finally {
  await proxy.stop()
  await upstream.stop()
}

async function share(bootstrap: string, topic: string): Promise<void> {
  const client = (clientId: string) => new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.NOTHING })
  const admin = client('demo').admin()
  await admin.connect()
  await createTopic(admin, topic, 1)
  const producer = client('demo').producer()
  await producer.connect()
  const messages = Array.from({ length: records }, (_, i) => ({ key: `user-${i % keys}`, value: String(i) }))
  await producer.send({ topic, messages })
  say(`\n${records} records of ${keys} keys are in the one partition of ${topic}`)
  const got = consumers.map(() => new Map<string, number>())
  const total = () => got.reduce((sum, byKey) => sum + [...byKey.values()].reduce((a, b) => a + b, 0), 0)
  const running = consumers.map(({ clientId }) =>
    client(clientId).consumer({ groupId: `demo-${clientId}-${process.pid}` }),
  )
  await Promise.all(
    running.map(async (consumer, index) => {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      const eachMessage = async ({ message }: { message: { key: Buffer | null } }) => {
        const key = String(message.key)
        got[index]?.set(key, (got[index].get(key) ?? 0) + 1)
      }
      await consumer.run({ autoCommit: false, eachMessage })
    }),
  )
  for (let attempt = 0; total() < records && attempt < 600; attempt++) await delay(100)
  consumers.forEach(({ clientId, keys: range }, index) => {
    say(`\n  ${clientId} has the buckets ${range}`)
    for (const [key, count] of got[index] ?? []) {
      const bytes = Buffer.from(key)
      say(
        `    ${key.padEnd(8)} bucket ${bucketOfKey(bytes, 0, bytes.length).toString(16).padStart(4, '0')}  ${count} records`,
      )
    }
  })
  const both = [...(got[0]?.keys() ?? [])].filter((key) => got[1]?.has(key))
  const good = total() === records && both.length === 0
  say(
    `\n${good ? 'Every record came once, and no key went to both.' : `WRONG: ${total()} records came, keys at both: ${both.join(' ')}`}`,
  )
  if (!good) process.exitCode = 1
  await Promise.all([...running, producer].map((one) => one.disconnect()))
  await admin.deleteTopics({ topics: [topic] })
  await admin.disconnect()
}
