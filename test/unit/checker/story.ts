/** Writes histories by hand: one call an event, time moves on by itself. */
import { check } from '../../checker/checker.ts'
import type { HistoryEvent, LifeEvent, RunSettings } from '../../checker/history.ts'

interface Record {
  key: string
  producer: string
  sequence: number
  partition: number
  offset: number
}

const topic = 't'
const group = 'g'

export class Story {
  readonly events: HistoryEvent[] = []
  at = 0
  readonly #records = new Map<string, Record>()

  run(settings: RunSettings): this {
    return this.#add({ event: 'run', ...settings })
  }

  fault(kind = 'cut'): this {
    return this.#add({ event: 'fault', kind })
  }

  started(member: string, more: Partial<LifeEvent> = {}): this {
    return this.#add({ event: 'started', member, group, ...more })
  }

  producer(producer: string, more: Partial<LifeEvent> = {}): this {
    return this.#add({ event: 'started', producer, ...more })
  }

  crashed(member: string): this {
    return this.#add({ event: 'crashed', member, group })
  }

  /** Sends `name` (key, then a number: `a1`) and has it acknowledged at p:offset. */
  wrote(name: string, partition: number, offset: number, more: { by?: string; in?: string } = {}): this {
    return this.sent(name, more).acknowledged(name, partition, offset, more)
  }

  sent(name: string, more: { by?: string; in?: string } = {}): this {
    const transaction = more.in === undefined ? {} : { transaction: more.in }
    return this.#add({ event: 'sent', topic, ...origin(name, more.by), ...transaction })
  }

  acknowledged(name: string, partition: number, offset: number, more: { by?: string } = {}): this {
    const record = { ...origin(name, more.by), partition, offset }
    this.#records.set(name, record)
    return this.#add({ event: 'acknowledged', topic, ...record })
  }

  failed(name: string): this {
    return this.#add({ event: 'failed', topic, ...origin(name) })
  }

  transaction(transaction: string, outcome: 'committed' | 'aborted' | 'unknown', producer = 'p'): this {
    return this.#add({ event: 'transaction', producer, transaction, outcome })
  }

  /** Delivers records to a member, done at once. */
  took(member: string, ...names: string[]): this {
    for (const name of names) this.#add({ event: 'delivered', topic, member, group, ...this.#record(name), done: true })
    return this
  }

  given(member: string, ...names: string[]): this {
    for (const name of names) this.#add({ event: 'delivered', topic, member, group, ...this.#record(name) })
    return this
  }

  /** Delivers a record that nobody was told about, or at another place than it was acknowledged at. */
  tookAt(member: string, name: string, partition: number, offset: number): this {
    const record = { ...origin(name), partition, offset }
    return this.#add({ event: 'delivered', topic, member, group, ...record, done: true })
  }

  done(member: string, ...names: string[]): this {
    for (const name of names) {
      const { partition, offset } = this.#record(name)
      this.#add({ event: 'done', topic, member, group, partition, offset })
    }
    return this
  }

  committed(member: string, partition: number, offset: number, ranges?: [number, number][]): this {
    const more = ranges === undefined ? {} : { ranges }
    return this.#add({ event: 'committed', topic, member, group, partition, offset, ...more })
  }

  assigned(member: string, ...partitions: number[]): this {
    return this.#hands('assigned', member, partitions)
  }

  assignedIn(generation: number, member: string, ...partitions: number[]): this {
    return this.#hands('assigned', member, partitions, generation)
  }

  revoked(member: string, ...partitions: number[]): this {
    return this.#hands('revoked', member, partitions)
  }

  lost(member: string, ...partitions: number[]): this {
    return this.#hands('lost', member, partitions)
  }

  lostIn(generation: number, member: string, ...partitions: number[]): this {
    return this.#hands('lost', member, partitions, generation)
  }

  sought(member: string, partition: number, offset: number): this {
    return this.#add({ event: 'sought', topic, member, group, partition, offset })
  }

  layout(from: number, to: number, boundaries: { [partition: string]: number }): this {
    return this.#add({ event: 'layout', topic, from, to, boundaries })
  }

  log(event: 'trimmed' | 'truncated', partition: number, offset: number): this {
    return this.#add({ event, topic, partition, offset })
  }

  drained(more: { compacted?: boolean } = {}): this {
    return this.#add({ event: 'drained', topic, group, ...more })
  }

  later(ms: number): this {
    this.at += ms
    return this
  }

  /** The rules that are violated, each with the number of violations. */
  broken(): { [rule: string]: number } {
    return Object.fromEntries(Object.entries(check(this.events).counts).filter(([, count]) => count > 0))
  }

  #hands(event: 'assigned' | 'revoked' | 'lost', member: string, partitions: number[], generation?: number): this {
    const named = generation === undefined ? {} : { generation }
    return this.#add({ event, member, group, partitions: partitions.map((p) => [topic, p]), ...named })
  }

  #record(name: string): Record {
    const record = this.#records.get(name)
    if (record === undefined) throw new Error(`nobody wrote ${name}`)
    return record
  }

  #add(event: WithoutTime): this {
    this.events.push({ at: this.at++, ...event } as HistoryEvent)
    return this
  }
}

type WithoutTime = { event: HistoryEvent['event']; [field: string]: unknown }

/** `a12` is record 12 of its producer with key `a`. */
function origin(name: string, producer = 'p'): { key: string; producer: string; sequence: number } {
  return { key: name.slice(0, 1), producer, sequence: Number(name.slice(1)) }
}

export const story = (): Story => new Story()
