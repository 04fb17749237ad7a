/**
 * One of the two brokers that a fact is played against, and connections to it that speak the raw protocol. A fact knows
 * nothing of which side it is on: names are unique, and everything else it has to learn from answers.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { ChunkPool } from '../../../src/net/chunk-pool.ts'
import { RequestLink } from '../../../src/net/request-link.ts'
import type { Codec, Draft } from '../../../src/protocol/codec.ts'
import { listOffsets } from '../../../src/protocol/generated/02-list-offsets.ts'
import { metadata } from '../../../src/protocol/generated/03-metadata.ts'
import { createTopics } from '../../../src/protocol/generated/19-create-topics.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'
import type { Runtime } from '../../../src/runtime/runtime.ts'

/** Longest that one request may take: loaded machines. */
const ANSWER_WITHIN_MS = 30_000
const ATTEMPTS = 2000

export interface Topic {
  readonly name: string
  readonly id: string
}

/** A connection: requests go out at once, whatever is still unanswered. */
export class Wire {
  readonly #link: RequestLink

  constructor(link: RequestLink) {
    this.#link = link
  }

  /** Rejects when the connection is closed before the answer. */
  async call<Q, R>(codec: Codec<Q, R>, version: number, request: Draft<Q>): Promise<R> {
    const writer = new Writer(256)
    codec.encodeRequest(writer, request, version)
    const body = Buffer.from(writer.finish())
    const { bytes, bodyAt } = await this.#link.request(codec.key, version, body, ANSWER_WITHIN_MS)
    return codec.decodeResponse(new Reader(bytes, bodyAt), version)
  }

  close(): void {
    this.#link.close()
  }
}

export class Side {
  readonly #runtime: Runtime
  readonly #address: string
  readonly #pool = new ChunkPool()
  readonly #wires: Wire[] = []
  readonly #prefix: string
  #names = 0
  #admin: Promise<Wire> | undefined

  constructor(runtime: Runtime, address: string) {
    this.#runtime = runtime
    this.#address = address
    this.#prefix = `fact-${runtime.random(2 ** 32).toString(36)}`
  }

  /** A name that nobody has used. */
  name(): string {
    return `${this.#prefix}-${++this.#names}`
  }

  async wire(clientId = 'fact'): Promise<Wire> {
    const at = this.#address.lastIndexOf(':')
    const where = { host: this.#address.slice(0, at), port: Number(this.#address.slice(at + 1)), timeoutMs: 10_000 }
    const wire = new Wire(await RequestLink.open(this.#runtime, this.#pool, { ...where, clientId }))
    this.#wires.push(wire)
    return wire
  }

  /** A new topic whose partitions are led. */
  async topic(partitions = 1): Promise<Topic> {
    const admin = await (this.#admin ??= this.wire('admin'))
    const name = this.name()
    const topics = [{ name, numPartitions: partitions, replicationFactor: 1 }]
    await admin.call(createTopics, 7, { topics, timeoutMs: 30_000 })
    const led = await eventually(
      async () => (await admin.call(metadata, 12, { topics: [{ name }] })).topics[0],
      (topic) => topic?.partitions.length === partitions && topic.partitions.every((p) => p.leaderId >= 0),
    )
    // A node shows itself as leader a moment before it acts as one.
    const asked = [
      { name, partitions: Array.from({ length: partitions }, (_, p) => ({ partitionIndex: p, timestamp: -1 })) },
    ]
    await eventually(
      () => admin.call(listOffsets, 7, { replicaId: -1, topics: asked }),
      (answer) => answer.topics.every((topic) => topic.partitions.every((p) => p.errorCode === 0)),
    )
    return { name, id: led?.topicId ?? '' }
  }

  close(): void {
    for (const wire of this.#wires.splice(0)) wire.close()
    this.#admin = undefined
  }
}

/** Asks again until the answer is `right`: for what a broker does a moment after it answered. */
export async function eventually<T>(ask: () => Promise<T>, right: (answer: T) => boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask()
    if (right(answer)) return answer
    if (attempt === ATTEMPTS) throw new Error(`still ${JSON.stringify(answer)} after ${attempt} attempts`)
    await delay(5)
  }
}

/** What a script saw, in values that are the same on any broker. */
export interface Fact {
  readonly name: string
  /** What Kafka 4.3.1 does. */
  readonly outcome: unknown
  readonly play: (side: Side) => Promise<unknown>
}

export function fact(name: string, outcome: unknown, play: (side: Side) => Promise<unknown>): Fact {
  return { name, outcome, play }
}
