/** The gate at work: Fetches of groups at one proxy, held while shut, checked against the lease before and after. */
import type { Entry } from './broker.ts'
import type { Connection } from './connection.ts'
import { distort } from './mutations.ts'
import type { Proxy } from './proxy.ts'

export interface FetchRequest {
  group: string
  partition: number
  position: number
  answer: (records: Entry[]) => void
}

interface Parked {
  connection: Connection
  request: FetchRequest
  sinceMs: number
  nextMs: number
}

interface Progress {
  committed: number
  /** First deliverable record at or above it. */
  first: number
  /** Where the leader's log ends: below an end that it once had if it was cut. */
  logEnd: number
}

interface Known {
  atMs: number
  partitions: Progress[]
  asked: boolean
  /** How far this proxy had read the state log when it asked. */
  position: number
}

export class Fetcher {
  readonly #proxy: Proxy
  #parked: Parked[] = []
  readonly #progress = new Map<string, Known>()
  readonly #limits = new Map<string, { stamp: string; limits: readonly number[] }>()

  constructor(proxy: Proxy) {
    this.#proxy = proxy
  }

  fetch(connection: Connection, request: FetchRequest): void {
    const { world } = this.#proxy.model
    this.#proxy.model.notePosition(request.group, request.partition, request.position)
    this.#attempt({ connection, request, sinceMs: world.now, nextMs: 0 })
  }

  tick(): void {
    const { now } = this.#proxy.model.world
    for (const item of this.#parked.splice(0)) {
      if (!item.connection.isOpen) continue
      if (now - item.sinceMs >= 500) item.connection.reply(() => item.request.answer([]))
      else if (now >= item.nextMs) this.#attempt(item)
      else this.#parked.push(item)
    }
  }

  #attempt(item: Parked): void {
    const { model } = this.#proxy
    const { partition, position, group } = item.request
    const limit = this.#limit(group, partition)
    if (limit <= position) {
      model.world.count('gate shut')
      this.#refresh(group)
      this.#parked.push({ ...item, nextMs: model.world.now + 100 })
      return
    }
    const { connection } = item
    connection.upstream.send(() => {
      const log = model.broker.partitions[partition] ?? []
      const end = Math.min(model.broker.highWatermark(partition), position + model.fetchMax)
      const found = model.broker.leaderless.has(partition) ? [] : log.slice(position, end)
      connection.downstream.send(() => this.#proxy.receive(() => this.#arrived(item, found)))
    })
  }

  /** The answer is judged by the view and the lease of now, not of when it was asked for. */
  #arrived(item: Parked, found: Entry[]): void {
    const { model } = this.#proxy
    const isUnchecked = model.world.mutation === 'lease-not-checked-again'
    const limit = this.#limit(item.request.group, item.request.partition, isUnchecked)
    const records = found.filter((entry) => entry.offset < limit)
    if (!item.connection.isOpen) return
    if (records.length > 0) item.connection.reply(() => item.request.answer(records))
    else this.#parked.push({ ...item, nextMs: model.world.now + 150 })
  }

  #limit(group: string, partition: number, isUnchecked = false): number {
    const view = this.#proxy.view
    if (view === undefined || (!this.#proxy.mayAct && !isUnchecked)) return -1
    const topic = distort.gateTopic(this.#proxy.model, view.topic)
    const widest = Math.max(...topic.layouts.map((layout) => layout.count))
    if (partition >= widest) return -1
    const progress = this.#progress.get(group)
    const stamp = `${view.position}/${progress?.atMs ?? -1}/${distort.stamp(this.#proxy.model, group)}`
    const cached = this.#limits.get(group)
    if (cached?.stamp === stamp) return cached.limits[partition] ?? -1
    const done = (q: number, end: number): boolean => {
      const early = distort.done(this.#proxy.model, group, q, end)
      if (early !== undefined) return early
      const known = progress?.partitions[q]
      if (progress === undefined || known === undefined) return false
      // A log that ended below an end before this proxy knew of it may just not have grown so far yet.
      const reached = progress.position < view.position ? end : Math.min(end, known.logEnd)
      return known.committed >= end || known.first >= reached
    }
    const limits = distort.limits(this.#proxy.model, topic, done)
    this.#limits.set(group, { stamp, limits })
    return limits[partition] ?? -1
  }

  /** What the group has committed, and whether anything deliverable is left above it. At most every 400 ms. */
  #refresh(group: string): void {
    const { model } = this.#proxy
    const last = this.#progress.get(group)
    if (last !== undefined && model.world.now - last.atMs < 400) return
    const position = this.#proxy.view?.position ?? -1
    const asked = { partitions: last?.partitions ?? [], position: last?.position ?? -1, asked: true }
    this.#progress.set(group, { atMs: model.world.now, ...asked })
    model.rpc(
      () =>
        model.broker.partitions.map((_, partition) => {
          const committed = model.broker.committedOf(group, partition)
          const logEnd = model.broker.partitions[partition]?.length ?? 0
          return { committed, first: model.broker.firstDeliverable(partition, Math.max(0, committed)), logEnd }
        }),
      (partitions) => {
        this.#proxy.receive(() =>
          this.#progress.set(group, { atMs: model.world.now, partitions, asked: false, position }),
        )
      },
    )
  }
}
