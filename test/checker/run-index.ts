/**
 * A history made ready for judging: names become small integers, and what only a look at the whole run can tell (which
 * transaction a record belonged to and how that ended, where a record was written, which places are known) is looked
 * up once for all rules. Invariant: `entries` is in the order of time.
 */
import type {
  AcknowledgedEvent,
  AssignmentEvent,
  DeliveredEvent,
  FaultEvent,
  HistoryEvent,
  LifeEvent,
  RunSettings,
  SentEvent,
  TransactionEvent,
} from './history.ts'

/** An event with its names as integers; −1 where the event has none. */
export interface Entry {
  readonly index: number
  readonly event: HistoryEvent
  readonly group: number
  /** Of the producer or member that the event is about. */
  readonly client: number
  readonly partition: number
  /** Of (topic, key); −1 for null keys, which have no order. */
  readonly key: number
  readonly origin: number
}

/** One record as its producer knows it. */
export interface Origin {
  producer: number
  sequence: number
  key: number
  topic: string
  sent: SentEvent | undefined
  timesSent: number
  acknowledged: AcknowledgedEvent | undefined
  failed: boolean
  /** Interned (producer, transaction); −1 for none. */
  transaction: number
}

/** What is known of one partition over the whole run. */
export interface PartitionFacts {
  topic: string
  number: number
  /**
   * Ascending offsets of records that were acknowledged or delivered, were not aborted and stayed in the log; where
   * nobody knows how its transaction ended, of those that were delivered.
   */
  known: number[]
  trimmedBelow: number
  truncatedFrom: number
  origins: Map<number, number>
}

export class Names {
  readonly texts: string[] = []
  readonly #ids = new Map<string, number>()

  id(text: string): number {
    let id = this.#ids.get(text)
    if (id === undefined) {
      id = this.texts.push(text) - 1
      this.#ids.set(text, id)
    }
    return id
  }
}

export class Index {
  readonly settings: RunSettings = {}
  readonly entries: Entry[] = []
  readonly origins: Origin[] = []
  readonly partitions: PartitionFacts[] = []
  readonly groups = new Names()
  readonly clients = new Names()
  readonly lives = new Map<number, LifeEvent>()
  readonly faults: FaultEvent[] = []
  readonly compactedTopics = new Set<string>()
  readonly #keys = new Map<string, Map<string, number>>()
  #keyCount = 0
  readonly #transactions = new Names()
  readonly #outcomes = new Map<number, TransactionEvent>()
  readonly #delivered = new Set<number>()
  readonly #partitionIds = new Map<string, number[]>()
  readonly #originIds: Map<number, number>[] = []
  readonly #lowest = new Map<number, Map<number, number>>()

  constructor(history: readonly HistoryEvent[]) {
    for (const event of history) this.#add(event)
    for (const partition of this.partitions) {
      for (const [offset, origin] of partition.origins) {
        const lost = offset < partition.trimmedBelow || offset >= partition.truncatedFrom
        const outcome = this.outcome(origin)
        const isSeen = outcome === 'unknown' ? this.#delivered.has(origin) : outcome !== 'aborted'
        if (!lost && isSeen) partition.known.push(offset)
      }
      partition.known.sort((a, b) => a - b)
    }
  }

  /** How the record's transaction ended: `none` without one, `unknown` where the application could not tell. */
  outcome(origin: number): 'none' | 'committed' | 'aborted' | 'unknown' {
    const transaction = this.origins[origin]?.transaction ?? -1
    return transaction < 0 ? 'none' : (this.#outcomes.get(transaction)?.outcome ?? 'unknown')
  }

  /** The event that ended the record's transaction. */
  ending(origin: number): TransactionEvent | undefined {
    return this.#outcomes.get(this.origins[origin]?.transaction ?? -1)
  }

  /** The lowest offset the group was ever given of a partition: where it began to read. Infinity: never read. */
  begin(group: number, partition: number): number {
    return this.#lowest.get(group)?.get(partition) ?? Number.POSITIVE_INFINITY
  }

  partition(topic: string, number: number): number {
    let ids = this.#partitionIds.get(topic)
    if (ids === undefined) this.#partitionIds.set(topic, (ids = []))
    let id = ids[number]
    if (id === undefined) {
      const facts = { trimmedBelow: 0, truncatedFrom: Number.POSITIVE_INFINITY, known: [], origins: new Map() }
      id = this.partitions.push({ topic, number, ...facts }) - 1
      ids[number] = id
    }
    return id
  }

  /** The numbers of a topic's partitions that occur in the history. */
  numbersOf(topic: string): number[] {
    return Object.keys(this.#partitionIds.get(topic) ?? []).map(Number)
  }

  #add(event: HistoryEvent): void {
    const group = 'group' in event && event.group !== undefined ? this.groups.id(event.group) : -1
    const name = 'member' in event && event.member !== undefined ? event.member : 'producer' in event && event.producer
    const client = typeof name === 'string' ? this.clients.id(name) : -1
    const partition = 'partition' in event ? this.partition(event.topic, event.partition) : -1
    let origin = -1
    if ('sequence' in event) origin = this.#origin(this.clients.id(event.producer), event)
    const key = origin < 0 ? -1 : (this.origins[origin]?.key ?? -1)
    const entry: Entry = { index: this.entries.length, event, group, client, partition, key, origin }
    this.entries.push(entry)
    this.#learn(entry)
  }

  #learn({ event, group, client, partition, origin }: Entry): void {
    const facts = this.partitions[partition]
    const record = this.origins[origin]
    if (event.event === 'delivered' || event.event === 'acknowledged') {
      if (facts?.origins.has(event.offset) === false) facts.origins.set(event.offset, origin)
    }
    switch (event.event) {
      case 'run':
        Object.assign(this.settings, event)
        break
      case 'fault':
        this.faults.push(event)
        break
      case 'started':
        this.lives.set(client, event)
        break
      case 'sent':
        if (record === undefined) break
        record.sent ??= event
        record.timesSent++
        if (event.transaction !== undefined) record.transaction = this.#transaction(event.producer, event.transaction)
        break
      case 'acknowledged':
        if (record !== undefined) record.acknowledged ??= event
        break
      case 'failed':
        if (record !== undefined) record.failed = true
        break
      case 'transaction':
        this.#outcomes.set(this.#transaction(event.producer, event.transaction), event)
        break
      case 'delivered':
        this.#lower(group, partition, event)
        this.#delivered.add(origin)
        break
      case 'trimmed':
        if (facts !== undefined) facts.trimmedBelow = Math.max(facts.trimmedBelow, event.offset)
        break
      case 'truncated':
        if (facts !== undefined) facts.truncatedFrom = Math.min(facts.truncatedFrom, event.offset)
        break
      case 'drained':
        if (event.compacted === true) this.compactedTopics.add(event.topic)
        break
      default:
        break
    }
  }

  #lower(group: number, partition: number, event: DeliveredEvent): void {
    let ofGroup = this.#lowest.get(group)
    if (ofGroup === undefined) this.#lowest.set(group, (ofGroup = new Map<number, number>()))
    const lowest = ofGroup.get(partition)
    if (lowest === undefined || event.offset < lowest) ofGroup.set(partition, event.offset)
  }

  #transaction(producer: string, transaction: string): number {
    return this.#transactions.id(`${producer}\n${transaction}`)
  }

  #origin(producer: number, event: { sequence: number; key: string | null; topic: string }): number {
    const ids = (this.#originIds[producer] ??= new Map())
    let id = ids.get(event.sequence)
    if (id === undefined) {
      const key = event.key === null ? -1 : this.#key(event.topic, event.key)
      const { topic, sequence } = event
      const blank = { sent: undefined, timesSent: 0, acknowledged: undefined, failed: false, transaction: -1 }
      id = this.origins.push({ producer, sequence, key, topic, ...blank }) - 1
      ids.set(sequence, id)
    }
    return id
  }

  #key(topic: string, key: string): number {
    let ids = this.#keys.get(topic)
    if (ids === undefined) this.#keys.set(topic, (ids = new Map<string, number>()))
    let id = ids.get(key)
    if (id === undefined) ids.set(key, (id = this.#keyCount++))
    return id
  }
}

/** The partitions of an assignment event as interned ids. */
export function assignedPartitions(index: Index, event: AssignmentEvent): number[] {
  return event.partitions.map(([topic, number]) => index.partition(topic, number))
}
