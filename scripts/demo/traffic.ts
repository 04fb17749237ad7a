/** Records through the proxy with kafkajs: a checked round trip, then a trickle that keeps the demo alive. */
import kafkajs, { type Consumer, type Producer } from 'kafkajs'
import { createTopic } from './topic.ts'

const { Kafka, logLevel } = kafkajs
const records = 1000
const keys = 50
const partitions = 3

export interface Traffic {
  readonly records: number
  readonly partitions: number
  readonly seconds: number
  /** A record per second until then, read by the same group. */
  stop(): Promise<void>
}

/**
 * Creates the topic, sends and reads records, and checks that all arrived, once each, and in the order of each key.
 * Throws if not, or after a minute.
 */
export async function sendAndRead(bootstrap: string, topic: string, deleteTopic: boolean): Promise<Traffic> {
  const kafka = new Kafka({
    clientId: 'headgate-demo',
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, retries: 10 },
  })
  const admin = kafka.admin()
  await admin.connect()
  await createTopic(admin, topic, partitions)
  const producer = kafka.producer()
  const consumer = kafka.consumer({ groupId: `${topic}-group` })
  await producer.connect()
  await consumer.connect()
  const startedAt = performance.now()
  const done = readAll(consumer, topic)
  for (let from = 0; from < records; from += 100) await sendSome(producer, topic, from)
  await done
  const seconds = (performance.now() - startedAt) / 1000
  let next = records
  const trickle = setInterval(() => {
    producer.send({ topic, messages: [record(next++)] }).catch(() => undefined)
  }, 1000)
  const stop = async () => {
    clearInterval(trickle)
    await consumer.disconnect()
    await producer.disconnect()
    if (deleteTopic) await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  }
  return { records, partitions, seconds, stop }
}

function record(number: number): { key: string; value: string } {
  return { key: `key-${number % keys}`, value: String(number) }
}

async function sendSome(producer: Producer, topic: string, from: number): Promise<void> {
  await producer.send({ topic, messages: Array.from({ length: 100 }, (_, index) => record(from + index)) })
}

/** Resolves when every record was read; rejects if one came twice or out of its key's order. */
async function readAll(consumer: Consumer, topic: string): Promise<void> {
  const last = new Map<string, number>()
  let read = 0
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await new Promise<void>((resolve, reject) => {
    const deadline = setTimeout(
      () => reject(new Error(`only ${read} of ${records} records came back within a minute`)),
      60_000,
    )
    const eachMessage = async ({ message }: { message: { key: Buffer | null; value: Buffer | null } }) => {
      const key = String(message.key)
      const number = Number(message.value)
      if (number <= (last.get(key) ?? -1)) reject(new Error(`record ${number} of ${key} came after ${last.get(key)}`))
      last.set(key, number)
      if (++read < records) return
      clearTimeout(deadline)
      resolve()
    }
    consumer.run({ eachMessage }).catch(reject)
  })
}
