/** The cluster as far as the protocol sees it: partition logs, idempotent producers, leaders, high watermarks, commits. */
import type { World } from './world.ts'

export interface Rec {
  producer: string
  sequence: number
  key: string
  hash: number
}

export interface Entry {
  offset: number
  /** Undefined: a control record, or one that compaction removed; it has an offset and is never delivered. */
  record?: Rec
  visibleAt: number
}

export interface SentBatch {
  partition: number
  records: Rec[]
  pid?: string
  sequence?: number
  /** acks=0: nobody is told what became of it. */
  hasNoAcks?: boolean
}

/** `end` is −1 where the broker does not say. */
export type ProduceResult = { ok: true; base: number; end: number } | { ok: false; error: 'no leader' | 'out of order' }

export const brokers = 3

export class Broker {
  readonly world: World
  partitions: Entry[][]
  readonly leaderless = new Set<number>()
  /** (pid, partition) → next sequence, and the ends of the batches seen. */
  readonly #sequences = new Map<string, { next: number; ends: Map<number, number> }>()
  /** group → partition → committed offset. */
  readonly committed = new Map<string, Map<number, number>>()
  /** Partition → first offset that retention has left. */
  readonly starts = new Map<number, number>()
  lagMs: number

  constructor(world: World, count: number) {
    this.world = world
    this.partitions = Array.from({ length: count }, () => [])
    this.lagMs = world.random.pick([0, 0, 40, 300])
  }

  create(count: number): void {
    while (this.partitions.length < count) {
      const partition = this.partitions.length
      this.partitions.push([])
      if (this.world.random.chance(0.3)) this.loseLeader(partition, this.world.random.int(50, 800))
    }
  }

  loseLeader(partition: number, forMs: number): void {
    this.leaderless.add(partition)
    this.world.after(forMs, () => this.leaderless.delete(partition))
  }

  produce(batch: SentBatch): ProduceResult {
    const log = this.partitions[batch.partition]
    if (log === undefined || this.leaderless.has(batch.partition)) return { ok: false, error: 'no leader' }
    if (batch.pid === undefined || batch.sequence === undefined) return this.#append(log, batch)
    const name = `${batch.pid}/${batch.partition}`
    const state = this.#sequences.get(name) ?? { next: 0, ends: new Map<number, number>() }
    const known = state.ends.get(batch.sequence)
    if (known !== undefined) return { ok: true, base: known - batch.records.length, end: known }
    if (batch.sequence !== state.next) return { ok: false, error: 'out of order' }
    const result = this.#append(log, batch)
    state.next += batch.records.length
    if (result.ok) state.ends.set(batch.sequence, result.end)
    this.#sequences.set(name, state)
    return result
  }

  #append(log: Entry[], batch: SentBatch): ProduceResult {
    const base = log.length
    const visibleAt = this.world.now + (this.lagMs === 0 ? 0 : this.world.random.int(0, this.lagMs))
    for (const record of batch.records) log.push({ offset: log.length, record, visibleAt })
    const end = log.length
    if (this.world.random.chance(0.04)) log.push({ offset: log.length, visibleAt })
    return { ok: true, base, end }
  }

  /** Another broker leads that never had the last `lost` entries: the end of its log. */
  cutLog(partition: number, lost: number): number {
    const log = this.partitions[partition] ?? []
    log.length = Math.max(this.logStart(partition), log.length - lost)
    // Members whose commits name the leader epoch go on from where the log ends now.
    for (const offsets of this.committed.values()) {
      const committed = offsets.get(partition)
      if (committed !== undefined && committed > log.length) offsets.set(partition, log.length)
    }
    return log.length
  }

  /** The high watermark: everything below it is visible. */
  highWatermark(partition: number): number {
    const log = this.partitions[partition] ?? []
    let end = log.length
    while (end > 0 && (log[end - 1] as Entry).visibleAt > this.world.now) end -= 1
    return end
  }

  logStart(partition: number): number {
    return this.starts.get(partition) ?? 0
  }

  /** Somebody writes to the cluster without a proxy. */
  writeDirectly(partition: number, records: Rec[]): void {
    const log = this.partitions[partition]
    if (log !== undefined) this.#append(log, { partition, records })
  }

  commit(group: string, partition: number, offset: number): void {
    const offsets = this.committed.get(group) ?? new Map<number, number>()
    offsets.set(partition, offset)
    this.committed.set(group, offsets)
  }

  committedOf(group: string, partition: number): number {
    return this.committed.get(group)?.get(partition) ?? -1
  }

  /** The first visible deliverable record at or above the offset, else the high watermark. */
  firstDeliverable(partition: number, from: number): number {
    const log = this.partitions[partition] ?? []
    const end = this.highWatermark(partition)
    for (let offset = Math.max(0, from); offset < end; offset++) if (log[offset]?.record !== undefined) return offset
    return Math.max(from, end)
  }
}
