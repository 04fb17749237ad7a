/**
 * The clients of the expansion bench: producers that await their sends, consumers of one group that see new partitions
 * within a second, and one that does nothing but ask for metadata. Invariant: a key belongs to one producer, so that its
 * records have an order that can be checked where they are delivered.
 */
import { Kafka, logLevel } from 'kafkajs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Taken } from './taps.ts'

const everyMs = 30
const keysEach = 40

export interface Delivery {
  /** New partition → when its first record was delivered. */
  readonly first: Map<number, number>
  /** Records delivered behind a later one of their key. */
  disordered: number
  count: number
}

function kafkaAt(bootstrap: string, clientId: string): Kafka {
  return new Kafka({ brokers: [bootstrap], clientId, logLevel: logLevel.NOTHING, retry: { retries: 20 } })
}

export class Load {
  readonly delivery: Delivery = { first: new Map(), disordered: 0, count: 0 }
  sent = 0
  /** How long each send took its application, all that the client does included. */
  readonly sends: Taken[] = []
  private readonly topic: string
  private readonly latest = new Map<string, number>()
  private readonly ends: (() => Promise<void>)[] = []
  private readonly loops: Promise<void>[] = []
  private running = true

  constructor(topic: string) {
    this.topic = topic
  }

  async produce(bootstrap: string, clientId: string, recordsPerSecond: number): Promise<void> {
    const producer = kafkaAt(bootstrap, clientId).producer()
    await producer.connect()
    this.ends.push(() => producer.disconnect())
    this.loops.push(this.send(producer.send.bind(producer), clientId, recordsPerSecond))
  }

  /** Asks for the topic's metadata ten times a second. */
  async ask(bootstrap: string, clientId: string): Promise<void> {
    const admin = kafkaAt(bootstrap, clientId).admin()
    await admin.connect()
    this.ends.push(() => admin.disconnect())
    const loop = async (): Promise<void> => {
      while (this.running) {
        await admin.fetchTopicMetadata({ topics: [this.topic] })
        await delay(100)
      }
    }
    this.loops.push(loop())
  }

  async consume(bootstrap: string, clientId: string, groupId: string): Promise<void> {
    const consumer = kafkaAt(bootstrap, clientId).consumer({ groupId, metadataMaxAge: 1000, maxWaitTimeInMs: 500 })
    await consumer.connect()
    this.ends.push(() => consumer.disconnect())
    await consumer.subscribe({ topic: this.topic, fromBeginning: true })
    await consumer.run({
      autoCommitInterval: 500,
      eachBatch: async ({ batch }) => {
        if (!this.delivery.first.has(batch.partition)) this.delivery.first.set(batch.partition, Date.now())
        for (const { key, value } of batch.messages) this.take(String(key), Number(String(value).split(' ', 1)[0]))
      },
    })
  }

  async stop(): Promise<void> {
    this.running = false
    await Promise.all(this.loops)
    await Promise.all(this.ends.map((end) => end()))
  }

  private take(key: string, sequence: number): void {
    const { delivery, latest } = this
    delivery.count++
    const before = latest.get(key) ?? -1
    // Delivered again after a rebalance: not for the first time, so no order is broken.
    if (sequence > before) {
      if (sequence !== before + 1) delivery.disordered++
      latest.set(key, sequence)
    }
  }

  private async send(send: Sender, clientId: string, recordsPerSecond: number): Promise<void> {
    const next = Array.from({ length: keysEach }, () => 0)
    const filler = 'x'.repeat(90)
    let due = performance.now()
    while (this.running) {
      due += everyMs
      const messages = Array.from({ length: Math.round((recordsPerSecond * everyMs) / 1000) }, (_, i) => {
        const at = (this.sent + i) % keysEach
        const sequence = next[at] ?? 0
        next[at] = sequence + 1
        return { key: `${clientId}-${at}`, value: `${sequence} ${filler}` }
      })
      const began = performance.now()
      await send({ topic: this.topic, messages, acks: -1 })
      this.sends.push({ at: Date.now(), api: 'send', clientId, ms: performance.now() - began })
      this.sent += messages.length
      const wait = due - performance.now()
      if (wait > 0) await delay(wait)
      else due = performance.now()
    }
  }
}

type Sender = (record: { topic: string; messages: { key: string; value: string }[]; acks: number }) => Promise<unknown>
