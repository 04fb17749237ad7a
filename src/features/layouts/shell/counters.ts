/** What the guards have counted, for Prometheus and the log. Topics are those of the configuration's rules. */
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { MetricSource } from '../../../telemetry/meter.ts'

/** A count is logged at once, then at most so often per topic and reason; one that tells of a change, once for it. */
const LOG_EVERY_MS = 60_000

interface Slot {
  readonly topic: string
  readonly reason: string
  value: number
  loggedAtMs: number
  logged: number
  change: number | undefined
}

/** Counts by topic and reason. */
export class Counters {
  private readonly slots = new Map<string, Slot>()
  private readonly runtime: Runtime
  private readonly log: Log
  private readonly message: string

  /** @param message what to log beside topic, reason, instance and number; '' for nothing */
  constructor(runtime: Runtime, log: Log, message: string) {
    this.runtime = runtime
    this.log = log
    this.message = message
  }

  /** @param change the epoch, where all further ones until the next change are to be expected and say nothing new */
  add(topic: string, reason: string, instance: string, change?: number): void {
    const key = `${topic} ${reason}`
    let slot = this.slots.get(key)
    if (slot === undefined) {
      slot = { topic, reason, value: 0, loggedAtMs: -Infinity, logged: 0, change: undefined }
      this.slots.set(key, slot)
    }
    slot.value++
    const now = this.runtime.now()
    const isDue = change === undefined ? now - slot.loggedAtMs >= LOG_EVERY_MS : change !== slot.change
    if (this.message === '' || !isDue) return
    slot.loggedAtMs = now
    slot.change = change
    const further = change === undefined ? {} : { epoch: change, further: 'only counted until the next change' }
    this.log.warn({ topic, reason, instance, count: slot.value - slot.logged, ...further }, this.message)
    slot.logged = slot.value
  }

  of(topic: string, reason: string): number {
    return this.slots.get(`${topic} ${reason}`)?.value ?? 0
  }

  /** By reason. */
  byReason(topic: string): Readonly<Record<string, number>> {
    const mine = [...this.slots.values()].filter((slot) => slot.topic === topic)
    return Object.fromEntries(mine.map(({ reason, value }) => [reason, value]))
  }

  source(name: string, help: string): MetricSource {
    return {
      name,
      help,
      type: 'counter',
      read: () => [...this.slots.values()].map(({ topic, reason, value }) => ({ labels: { topic, reason }, value })),
    }
  }
}

/** How long producers waited until their cuts were in force, by topic. */
export class CutWaits {
  private readonly sums = new Map<string, { count: number; ms: number }>()
  private readonly log: Log

  constructor(log: Log) {
    this.log = log
  }

  add(topic: string, instance: string, waitedMs: number): void {
    const { count, ms } = this.sums.get(topic) ?? { count: 0, ms: 0 }
    this.sums.set(topic, { count: count + 1, ms: ms + waitedMs })
    this.log.debug(
      { topic, instance, waitedMs: Math.round(waitedMs) },
      'a producer goes on by the new layout: its cut is in force',
    )
  }

  sources(): MetricSource[] {
    const source = (
      name: string,
      help: string,
      value: (sum: { count: number; ms: number }) => number,
    ): MetricSource => ({
      name,
      help,
      type: 'counter',
      read: () => [...this.sums].map(([topic, sum]) => ({ labels: { topic }, value: value(sum) })),
    })
    return [
      source('layout_cut_waits_total', 'Producers that waited for a cut.', ({ count }) => count),
      source(
        'layout_cut_wait_seconds_total',
        'Seconds for which producers waited for their cuts.',
        ({ ms }) => ms / 1000,
      ),
    ]
  }
}
