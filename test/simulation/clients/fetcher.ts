/**
 * The fetch side of a model consumer: one request under way per broker, sessions where the family uses them (KIP-227),
 * errors as its client treats them.
 */
import { errorCodes } from '../../../src/protocol/error-codes.ts'
import { fetch } from '../../../src/protocol/generated/01-fetch.ts'
import type { FetchResponsePartition } from '../../../src/protocol/generated/01-fetch.ts'
import { fetchesById } from './cluster-view.ts'
import type { ModelConsumer, Owned } from './consumer.ts'
import { expectUseful, visibleRecords } from './read-answer.ts'
import { ConnectionLost, type Wire } from './wire.ts'

interface Session {
  id: number
  epoch: number
  /** Partition → position and epoch that the session holds. */
  known: Map<number, string>
}

interface Asked {
  owned: Owned
  position: number
  version: number
}

export class Fetcher {
  readonly #consumer: ModelConsumer
  readonly #busy = new Set<number>()
  readonly #sessions = new WeakMap<Wire, Session>()
  #refreshing = false

  constructor(consumer: ModelConsumer) {
    this.#consumer = consumer
  }

  /** Sends a Fetch to every broker that leads something wanted and has none under way. */
  pump(): void {
    const { view, owned, options, queue } = this.#consumer
    const { family, topic } = options
    const full = family.prefetch === 1 ? this.#consumer.busy : queue.length >= family.prefetch
    if (full || this.#refreshing) return
    const byNode = new Map<number, Owned[]>()
    for (const partition of owned.values()) {
      if (partition.position < 0 || partition.frozen) continue
      const nodeId = view.leader(topic, partition.partition)?.nodeId ?? -1
      if (this.#busy.has(nodeId)) continue
      byNode.set(nodeId, [...(byNode.get(nodeId) ?? []), partition])
    }
    for (const [nodeId, partitions] of byNode) {
      if (nodeId < 0) this.#refresh()
      else this.#fetch(nodeId, partitions).catch(options.fail)
    }
  }

  async #fetch(nodeId: number, partitions: Owned[]): Promise<void> {
    this.#busy.add(nodeId)
    let failed = false
    try {
      const wire = this.#consumer.view.wire(nodeId)
      await wire.ready
      const wanted = partitions.filter((owned) => this.#isWanted(owned))
      failed = wanted.length > 0 && !(await this.#ask(wire, wanted))
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      failed = true
    }
    this.#busy.delete(nodeId)
    if (this.#consumer.closed) return
    if (failed) this.#refresh()
    else this.#consumer.pump()
  }

  /** What was owned when the connection was asked for may have been given up, or be about to be. */
  #isWanted(owned: Owned): boolean {
    return this.#consumer.owned.get(owned.partition) === owned && owned.position >= 0 && !owned.frozen
  }

  /** False where the client has to find out anew who leads. */
  async #ask(wire: Wire, partitions: Owned[]): Promise<boolean> {
    const { family } = this.#consumer.options
    const session = family.sessions ? this.#session(wire) : { id: 0, epoch: -1, known: new Map<number, string>() }
    const asked = partitions.map((owned): Asked => ({ owned, position: owned.position, version: owned.version }))
    const held = new Map(asked.map((a) => [a, this.#held(a)]))
    const wanted = asked.filter((a) => session.epoch <= 0 || session.known.get(a.owned.partition) !== held.get(a))
    const current = new Set(partitions.map((o) => o.partition))
    const forgotten = session.epoch > 0 ? Array.from(session.known.keys()).filter((p) => !current.has(p)) : []
    const answer = await wire.ask(
      fetch,
      {
        replicaId: -1,
        maxWaitMs: family.maxWaitMs,
        minBytes: family.minBytes,
        maxBytes: 50 * 1024 * 1024,
        isolationLevel: family.isolation,
        sessionId: session.id,
        sessionEpoch: session.epoch,
        topics: this.#group(wanted, (a) => this.#partition(wire, a), wire),
        forgottenTopicsData: this.#group(forgotten, (p) => p, wire),
      },
      family.maxWaitMs,
    )
    if (answer.errorCode !== 0) {
      this.#sessions.delete(wire)
      return true
    }
    for (const a of wanted) session.known.set(a.owned.partition, held.get(a) ?? '')
    for (const partition of forgotten) session.known.delete(partition)
    session.id = answer.sessionId
    session.epoch = answer.sessionId === 0 ? 0 : session.epoch + 1
    return this.#take(wire, answer.responses, asked)
  }

  #take(
    wire: Wire,
    topics: { topic: string; topicId: string; partitions: FetchResponsePartition[] }[],
    asked: Asked[],
  ): boolean {
    const { view, options } = this.#consumer
    let fine = true
    for (const { topic, topicId, partitions } of topics) {
      const name = fetchesById(wire) ? view.topicNamed(topicId) : topic
      if (name !== options.topic) throw new Error(`an answer for a topic that was not asked for: ${name ?? topicId}`)
      for (const partition of partitions) {
        const match = asked.find((a) => a.owned.partition === partition.partitionIndex)
        if (match === undefined) throw new Error(`an answer for partition ${partition.partitionIndex}, not asked for`)
        const { owned, position, version } = match
        const current = this.#consumer.owned.get(owned.partition) === owned
        if (current && owned.position === position && owned.version === version) {
          fine = this.#takePartition(owned, partition) && fine
        }
      }
    }
    return fine
  }

  #takePartition(owned: Owned, answer: FetchResponsePartition): boolean {
    switch (answer.errorCode) {
      case errorCodes.NONE:
        break
      case errorCodes.OFFSET_OUT_OF_RANGE:
        owned.position = -1
        owned.version++
        this.#consumer.findStarts().catch(this.#consumer.options.fail)
        return true
      default:
        return false
    }
    const divergedAt = answer.divergingEpoch?.endOffset ?? -1
    if (divergedAt >= 0) {
      owned.position = Math.min(owned.position, divergedAt)
      owned.epoch = -1
      return true
    }
    if (answer.records === null) throw new Error('records null: kafka-python dies of it')
    // A filter may withhold records, but what it sends has to be of use.
    if (this.#consumer.options.alone) expectUseful(answer.records, owned.position)
    const aborted = answer.abortedTransactions ?? []
    const { records, next } = visibleRecords(answer.records, owned.position, aborted, this.#consumer.options.family)
    for (const [at, { offset, key, value }] of records.entries()) {
      const last = at === records.length - 1
      const text = { key: key?.toString() ?? null, value: value?.toString() ?? '' }
      this.#consumer.queue.push({ partition: owned.partition, offset, ...text, last })
      owned.buffered++
    }
    owned.position = next
    if (owned.buffered === 0) owned.consumed = next
    return true
  }

  /** What a session keeps of a partition: where one of these changes, it is asked for anew. */
  #held({ owned, position }: Asked): string {
    const { view, options } = this.#consumer
    return `${position}/${view.leader(options.topic, owned.partition)?.epoch ?? -1}`
  }

  #partition(wire: Wire, { owned, position }: Asked) {
    const { family, topic } = this.#consumer.options
    const epochs = wire.versionOf(fetch) >= 9
    return {
      partition: owned.partition,
      currentLeaderEpoch: epochs ? (this.#consumer.view.leader(topic, owned.partition)?.epoch ?? -1) : -1,
      fetchOffset: position,
      partitionMaxBytes: family.partitionMaxBytes,
    }
  }

  /** Groups by topic; platformatic names the topic once per partition. */
  #group<T, P>(items: T[], make: (item: T) => P, wire: Wire): { topic: string; topicId?: string; partitions: P[] }[] {
    if (items.length === 0) return []
    const { view, options } = this.#consumer
    const id = fetchesById(wire) ? view.topics.get(options.topic)?.id : undefined
    const name = { topic: options.topic, ...(id === undefined ? {} : { topicId: id }) }
    if (options.family.repeatsTopics) return items.map((item) => ({ ...name, partitions: [make(item)] }))
    return [{ ...name, partitions: items.map(make) }]
  }

  #session(wire: Wire): Session {
    let session = this.#sessions.get(wire)
    if (session === undefined) {
      session = { id: 0, epoch: 0, known: new Map() }
      this.#sessions.set(wire, session)
    }
    return session
  }

  #refresh(): void {
    if (this.#refreshing) return
    this.#refreshing = true
    const { view, options } = this.#consumer
    view
      .sleep(options.family.retryBackoffMs)
      .then(() => view.refresh([options.topic]))
      .then(() => {
        this.#refreshing = false
        this.#consumer.pump()
      })
      .catch(options.fail)
  }
}
