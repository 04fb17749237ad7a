/** Reads the state log beside the proxies, so that a test can act at the moment when a record of a kind is in it. */
import { type Consumer, Kafka, logLevel } from 'kafkajs'

interface Seen {
  readonly kind: string
  readonly topicId?: string
  readonly name?: string
  readonly proxy: string
}

/** Far longer than a change takes. */
const patienceMs = 120_000

export class StateWatch {
  readonly #consumer: Consumer
  readonly #seen: Seen[] = []
  readonly #checks = new Set<() => void>()

  private constructor(consumer: Consumer) {
    this.#consumer = consumer
  }

  static async start(bootstrap: string): Promise<StateWatch> {
    const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
    const consumer = kafka.consumer({ groupId: `watch.${process.pid}`, maxWaitTimeInMs: 50, minBytes: 1 })
    const watch = new StateWatch(consumer)
    await consumer.connect()
    await consumer.subscribe({ topic: '__headgate_state', fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        if (message.value === null) return
        watch.#seen.push(JSON.parse(message.value.toString()) as Seen)
        for (const check of [...watch.#checks]) check()
      },
    })
    return watch
  }

  /** Resolves when a record of the kind is in the log for the topic of this name; rejects when none comes. */
  recorded(topic: string, kind: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (error?: Error): void => {
        clearTimeout(timer)
        this.#checks.delete(check)
        if (error === undefined) resolve()
        else reject(error)
      }
      const check = (): void => {
        const topicId = this.#seen.find((record) => record.kind === 'topic' && record.name === topic)?.topicId
        if (this.#seen.some((record) => record.kind === kind && record.topicId === topicId)) finish()
      }
      const timer = setTimeout(() => {
        const last = this.#seen.slice(-10).map((record) => JSON.stringify(record).slice(0, 200))
        finish(new Error([`no ${kind} of ${topic} in ${patienceMs} ms; last:`, ...last].join('\n')))
      }, patienceMs)
      this.#checks.add(check)
      check()
    })
  }

  stop(): Promise<void> {
    return this.#consumer.disconnect()
  }
}
