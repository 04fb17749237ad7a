/**
 * Keeps the log short: the leader writes snapshots of scopes with a long tail, and tombstones for what a snapshot that
 * was read back replaces. Both are asked for again until the log shows them, but not at every read.
 */
import type { Runtime } from '../../runtime/runtime.ts'
import type { LogState } from '../log-reducer.ts'
import type { ProxyId, StateRecord } from '../record.ts'
import { scopeOf } from '../records.ts'
import { dueSnapshots, erasableKeys } from '../snapshot.ts'

export interface TidierOptions {
  readonly runtime: Runtime
  /** Entries after which a scope gets a snapshot. */
  readonly tailLength: number
  /** How long an expelled proxy is remembered at least: longer than any topic waits for one that died. */
  readonly rememberMs: number
  readonly intervalMs: number
  /** Whether the cluster has had no such topic for so long that its state may be forgotten. */
  readonly isGone?: ((topicId: string) => boolean) | undefined
}

interface Writer {
  readonly proxy: ProxyId
  append(record: StateRecord): void
  erase(key: string): void
}

/** How many intervals pass before something is written again that the log does not show. */
const againAfter = 5

export class Tidier {
  readonly #options: TidierOptions
  #lastMs = -Infinity
  readonly #written = new Map<string, number>()

  constructor(options: TidierOptions) {
    this.#options = options
  }

  /** @param log a confirmed state: only its reader knows that it missed nothing */
  tidy(log: LogState, writer: Writer): void {
    const { runtime, tailLength, rememberMs, intervalMs, isGone } = this.#options
    const nowMs = runtime.now()
    if (nowMs - this.#lastMs < intervalMs) return
    this.#lastMs = nowMs
    for (const [name, atMs] of this.#written) if (nowMs - atMs >= againAfter * intervalMs) this.#written.delete(name)
    for (const record of dueSnapshots(log, writer.proxy, tailLength, runtime.wallNow() - rememberMs, isGone)) {
      if (this.#isNews(`snapshot ${scopeOf(record)}`, nowMs)) writer.append(record)
    }
    for (const key of erasableKeys(log)) if (this.#isNews(key, nowMs)) writer.erase(key)
  }

  #isNews(name: string, nowMs: number): boolean {
    if (this.#written.has(name)) return false
    this.#written.set(name, nowMs)
    return true
  }
}
