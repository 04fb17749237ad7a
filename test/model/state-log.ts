/** `__headgate_state` and the group `__headgate`, as the brokers keep them. */
import type { LogEntry } from '../../src/state/log-reducer.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { decodeRecord, encodeRecord } from '../../src/state/records.ts'
import type { World } from './world.ts'

export class StateLog {
  readonly world: World
  entries: { offset: number; atMs: number; key: string; value: Uint8Array | undefined }[] = []
  end = 0

  constructor(world: World) {
    this.world = world
  }

  append(key: string, record: StateRecord | undefined): void {
    const value = record === undefined ? undefined : encodeRecord(record)
    this.entries.push({ offset: this.end, atMs: this.world.now, key, value })
    this.end += 1
    if (record !== undefined) {
      this.world.count(`record ${record.kind}`)
      this.world.log(() => `log ${this.end - 1} ${JSON.stringify(record).slice(0, 300)}`)
    }
  }

  read(from: number, max: number): { entries: LogEntry[]; end: number; next: number } {
    const rest = this.entries.filter((entry) => entry.offset >= from)
    const entries = rest.slice(0, max).map(({ offset, atMs, key, value }) => ({
      offset,
      atMs,
      key,
      ...(value === undefined ? {} : { record: decodeRecord(value) }),
    }))
    const last = entries.at(-1)
    const next = rest.length <= max ? this.end : (last?.offset ?? from) + 1
    return { entries, end: this.end, next }
  }

  /** What the broker's cleaner does: of each key only the last record stays; old tombstones go too. */
  compact(): void {
    const last = new Map(this.entries.map((entry) => [entry.key, entry.offset]))
    const before = this.entries.length
    this.entries = this.entries.filter(
      (entry) => last.get(entry.key) === entry.offset && (entry.value !== undefined || this.world.random.chance(0.7)),
    )
    if (this.entries.length < before) this.world.count('compaction that removed records')
  }
}

/** The coordinator of the group `__headgate`: members by their heartbeats. */
export class FleetGroup {
  readonly world: World
  readonly sessionMs: number
  readonly #lastMs = new Map<string, number>()

  constructor(world: World, sessionMs: number) {
    this.world = world
    this.sessionMs = sessionMs
  }

  heartbeat(proxy: string): { leader: string; members: string[] } {
    this.#lastMs.set(proxy, this.world.now)
    for (const [member, lastMs] of this.#lastMs) {
      if (this.world.now - lastMs > this.sessionMs) this.#lastMs.delete(member)
    }
    const members = [...this.#lastMs.keys()]
    return { leader: members[0] ?? proxy, members }
  }
}
