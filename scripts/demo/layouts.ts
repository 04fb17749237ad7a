/**
 * `npm run demo -- layouts`: a topic grows from 3 to 6 partitions under load, first without Headgate, then through it. Two
 * consumers of one group read it slowly; for every key it is checked whether its records were processed in the order in
 * which they were sent. Starts a Kafka and the real binary, and ends by itself.
 */
import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { builtMain } from '../setup/build.ts'
import { startHeadgate } from './proxy.ts'
import { createTopic } from './topic.ts'
import { startUpstream } from './upstream.ts'

const { Kafka, logLevel } = kafkajs
const say = (line: string) => console.log(line)
const keys = Array.from({ length: 60 }, (_, i) => `user-${i}`)
/** Sent before and after the change, one for each key in a round. */
const rounds = { before: 20, after: 15 }
/** What a consumer takes for one record: what was sent before the change is still being processed when it happens. */
const workMs = 8

const main = await builtMain(say)
const upstream = await startUpstream({
  upstream: process.env['UPSTREAM_BOOTSTRAP'],
  only: undefined,
  containerName: 'headgate-demo-layouts',
  say,
})
const prefix = `headgate-demo-layouts-${process.pid}`
const proxy = await startHeadgate('demo-layouts', main, upstream.bootstrap, [
  'topics:',
  `  '${prefix}-.*': {layouts: {}}`,
]).catch(async (error: unknown) => {
  await upstream.stop()
  throw error
})
const { admin } = proxy
try {
  const without = await grow('without', upstream.bootstrap, async (topic, kafka) => {
    await kafka.createPartitions({ topicPartitions: [{ topic, count: 6 }] })
    say('  kafka: 6 partitions')
  })
  const through = await grow('through', proxy.bootstrap, async (topic) => {
    run('topics', 'expand', topic, '--to', '6')
    run('topics', 'describe', topic)
  })
  say(`\nkeys out of order: ${without} of ${keys.length} without Headgate, ${through} through it`)
  if (through > 0) process.exitCode = 1
  if (without === 0) say('(this time the change came late enough not to be noticed without it: try again)')
} finally {
  await proxy.stop()
  await upstream.stop()
}

/** `headgate …`, as one would type it. */
function run(...args: string[]): void {
  say(`  $ headgate ${args.join(' ')}`)
  const { stdout, stderr, status } = spawnSync(process.execPath, [main, ...args, '--admin', admin], {
    encoding: 'utf8',
  })
  say(`${stdout}${stderr}`.trimEnd().replace(/^/gm, '    '))
  if (status !== 0) throw new Error(`headgate ${args.join(' ')} ended with ${status}`)
}

type Admin = ReturnType<InstanceType<typeof Kafka>['admin']>

/** Sends, changes the topic in the middle, reads to the end. @returns keys that were processed out of order */
async function grow(
  how: 'without' | 'through',
  bootstrap: string,
  change: (topic: string, admin: Admin) => Promise<void>,
): Promise<number> {
  const topic = `${prefix}-${how}`
  say(`\n${how === 'without' ? 'Without Headgate' : 'Through Headgate'}: topic ${topic} grows under load`)
  const client = (clientId: string) => new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.NOTHING })
  const direct = new Kafka({ clientId: 'demo', brokers: [upstream.bootstrap], logLevel: logLevel.NOTHING }).admin()
  await direct.connect()
  await createTopic(direct, topic, 3)
  if (how === 'through') await known(topic)
  const metadataMaxAge = 1000
  const producer = client(`${how}-producer`).producer({ metadataMaxAge, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const last = new Map<string, number>()
  const seen = new Set<string>()
  const wrong = new Set<string>()
  const consumers = [1, 2].map((index) =>
    client(`${how}-consumer-${index}`).consumer({ groupId: `${topic}-group`, metadataMaxAge, heartbeatInterval: 500 }),
  )
  for (const consumer of consumers) {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommitThreshold: 20,
      partitionsConsumedConcurrently: 3,
      eachMessage: async ({ message }) => {
        await delay(workMs)
        const [key, sent] = [String(message.key), Number(String(message.value))]
        // What a rebalance makes come again is no disorder.
        if (seen.has(`${key} ${sent}`)) return
        seen.add(`${key} ${sent}`)
        const newest = last.get(key) ?? -1
        if (sent < newest) wrong.add(key)
        last.set(key, Math.max(sent, newest))
      },
    })
  }
  let round = 0
  const send = async (count: number, pauseMs: number) => {
    for (const end = round + count; round < end; round++) {
      const value = String(round)
      await producer.send({ topic, acks: -1, messages: keys.map((key) => ({ key, value })) })
      await delay(pauseMs)
    }
  }
  await send(rounds.before, 0)
  await change(topic, direct)
  await send(rounds.after, 200)
  await settled(seen, keys.length * round, how, topic)
  say(`  ${wrong.size === 0 ? 'every key in order' : `out of order: ${[...wrong].join(' ')}`}`)
  await Promise.all([...consumers, producer].map((one) => one.disconnect()))
  await direct.deleteTopics({ topics: [topic] })
  await direct.disconnect()
  return wrong.size
}

/** The topic is known to Headgate, so that it can be changed. */
async function known(topic: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await fetch(`${admin}/api/topics/${topic}`)
    if (answer.ok && ((await answer.json()) as { partitions?: number }).partitions === 3) return
    await delay(100)
  }
  throw new Error(`Headgate does not know topic ${topic}:\n${proxy.log()}`)
}

/** Waits until every record was processed, and shows the gates meanwhile. */
async function settled(seen: Set<string>, records: number, how: string, topic: string): Promise<void> {
  let shown = 0
  for (let attempt = 0; seen.size < records; attempt++) {
    if (attempt === 1200) throw new Error(`of ${records} records only ${seen.size} were read within two minutes`)
    if (how === 'through' && shown < 3 && attempt % 20 === 5) {
      run('groups', 'gates', `${topic}-group`)
      shown++
    }
    await delay(100)
  }
  if (how === 'through') run('topics', 'describe', topic)
}
