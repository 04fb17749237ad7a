/**
 * `npm run demo -- ranges`: two consumers share one partition by static key ranges. Starts a Kafka and the real binary,
 * sends records, shows who got which, checks that each key went to one consumer only and nothing was lost, and ends.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { bucketOfKey } from '../../src/records/hashes/buckets.ts'
import { keep, removeFolder, temporaryFolder } from '../kafka/keeper.ts'
import { freePorts } from '../kafka/ports.ts'
import { builtMain } from '../setup/build.ts'
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
const folder = temporaryFolder('demo-ranges')
const containerName = 'headgate-demo-ranges'
const upstream = await startUpstream({
  upstream: process.env['UPSTREAM_BOOTSTRAP'],
  only: undefined,
  containerName,
  say,
})
const [bootstrapPort = 0, basePort = 0] = await freePorts(12)
const [adminPort = 0] = await freePorts(1)
const config = join(folder, 'headgate.yaml')
const log = join(folder, 'headgate.log')
const rules = consumers.map(({ clientId, keys: range }) => `      - {clientId: ${clientId}, keys: ['${range}']}`)
writeFileSync(
  config,
  `upstream: {bootstrap: '${upstream.bootstrap}'}
listeners:
  - {name: demo, mode: ports, bind: 127.0.0.1, advertise: 127.0.0.1, basePort: ${basePort}, bootstrapPort: ${bootstrapPort}}
admin: {bind: '127.0.0.1:${adminPort}'}
groups:
  'demo-.*':
    ranges:
${rules.join('\n')}
`,
)
const redirect = ['-c', 'exec "$0" "$1" serve --config "$2" >"$3" 2>&1', process.execPath, main, config, log]
const proxy = keep('sh', redirect, { stdio: 'ignore' })
const exited = new Promise((resolve) => proxy.on('exit', resolve))
try {
  const admin = `http://127.0.0.1:${adminPort}`
  for (let attempt = 0; (await fetch(`${admin}/readyz`).catch(() => undefined))?.ok !== true; attempt++) {
    if (attempt === 600) throw new Error(`Headgate did not become ready:\n${readFileSync(log, 'utf8')}`)
    await delay(50)
  }
  await share(`127.0.0.1:${bootstrapPort}`, `headgate-demo-ranges-${process.pid}`)
  say(`\n/api/ranges: ${await (await fetch(`${admin}/api/ranges`)).text()}`)
} finally {
  proxy.kill('SIGTERM')
  await exited
  await upstream.stop()
  removeFolder(folder)
}

async function share(bootstrap: string, topic: string): Promise<void> {
  const client = (clientId: string) => new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.NOTHING })
  const admin = client('demo').admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
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
