/**
 * A topic whose partition count changes during the run, by wish at some proxy or behind everybody's back, through
 * proxies with the layout feature on. Whatever disorder a proxy counted is allowed of the producer that it named; all
 * other disorder is a bug.
 */
import { check, rulesNamed } from '../checker/checker.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { Violation } from '../checker/rule.ts'
import type { CountReason } from '../../src/features/layouts/guard-state.ts'
import { Counters } from '../../src/features/layouts/shell/counters.ts'
import type { RunningProxy } from '../../src/lifecycle/proxy.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { Life } from '../../src/state/shell/life.ts'
import { currentLayout, type TopicState } from '../../src/state/topic-state.ts'
import { patch } from './patch.ts'
import type { LayoutsPlan } from './plan.ts'
import { TOPIC, type World } from './world.ts'

/** What is judged apart: with the eyes of the order that was promised, and without what was counted. */
export const orderRules = ['key-order', 'one-member-per-key', 'child-after-parents']
const RETRY_MS = 400

/** The configuration and the bounds of proxies in such a run: real ones, but shorter. */
export function layoutsConfig({ order, partitioner }: LayoutsPlan) {
  return { [TOPIC]: { layouts: { order, goneAfter: '20s', partitioner } } }
}

export const layoutsTimes = { times: { settleMs: 20_000 }, sessionMs: 6_000 }

export class LayoutsRun {
  readonly #world: World
  readonly #plan: LayoutsPlan
  /** Names of producers that some proxy counted; '*' where it named nobody. */
  readonly #counted = new Set<string>()
  readonly #reasons = new Map<string, number>()
  readonly #restore: () => void
  /** The state with most layouts that was seen. */
  #topic: TopicState | undefined

  constructor(world: World, plan: LayoutsPlan) {
    this.#world = world
    this.#plan = plan
    const methods = Counters.prototype as unknown as { add: (topic: string, reason: string, instance: string) => void }
    const { add } = methods
    const note = (reason: string, instance: string): void => this.#note(reason, instance)
    methods.add = function (this: Counters, topic, reason, instance) {
      if ((this as unknown as { message: string }).message !== '') note(reason, instance)
      add.call(this, topic, reason, instance)
    }
    const restoreLife = patch(Life.prototype, 'append', (original) => {
      return function (this: never, record: StateRecord) {
        world.statistics.count(`state.${record.kind}`)
        return original.call(this, record as never)
      }
    })
    this.#restore = () => {
      methods.add = add
      restoreLife()
    }
    world.isChanging = () => this.#isChanging
    for (const [index, change] of plan.changes.entries()) {
      world.clock.schedule(change.atMs, () => this.#change(index, change.to))
    }
    const look = (): void => {
      this.#look()
      world.clock.schedule(world.clock.nowMs + 250, look)
    }
    look()
  }

  /** All changes were made and nothing waits for a seal. */
  get isSettled(): boolean {
    const layouts = this.#topic?.layouts ?? []
    const isDone = layouts.length > this.#plan.changes.length
    return (
      isDone && layouts.every(({ change, seal, gates }) => change === 'met' || gates === 'cuts' || seal !== undefined)
    )
  }

  /** A change is under way: it is being prepared, or was opened and is not sealed. */
  get #isChanging(): boolean {
    const { proposal, layouts = [] } = this.#topic ?? {}
    return proposal !== undefined || layouts.some(({ change, seal }) => change !== 'met' && seal === undefined)
  }

  end(): void {
    this.#restore()
    const { statistics } = this.#world
    for (const [reason, times] of this.#reasons) statistics.count(`counted.${reason}`, times)
    for (const { change, gates, seal } of this.#topic?.layouts ?? []) {
      if (change === 'met') continue
      statistics.count(`layouts.${change} by ${gates}`)
      if (seal !== undefined) statistics.count(seal.forced ? 'layouts.sealed by force' : 'layouts.sealed')
    }
    statistics.count('layouts.cuts', this.#topic?.cuts.length ?? 0)
  }

  /** Violations of order, without those whose producer was counted. */
  violations(history: readonly HistoryEvent[]): Violation[] {
    const hasCuts = this.#topic?.layouts.some(({ change, gates }) => change !== 'met' && gates === 'cuts') === true
    const whole = [...this.#layoutEvents(), ...history]
    const judge = (names: string[], perProducer: boolean): Violation[] =>
      check(whole, { rules: rulesNamed(names), settings: { perProducer }, keep: 1_000 }).violations
    // Two producers of one key that use different layouts at once have no order between them.
    const violations = [...judge(['key-order'], true), ...judge(['one-member-per-key', 'child-after-parents'], hasCuts)]
    return violations.filter(({ events }) => !events.some((event) => this.#isCounted(event, hasCuts)))
  }

  /**
   * Late batches behind a seal that should have waited for them: nobody forced it, and no proxy that died was waited for
   * in vain.
   */
  get lateBehindSeals(): number {
    const isExcused = this.#topic?.layouts.some(({ seal }) => seal?.forced === true || (seal?.gaveUp.length ?? 0) > 0)
    if (isExcused === true) return 0
    const times = (reason: CountReason): number => this.#reasons.get(reason) ?? 0
    return times('late after the seal') + times('late above the boundary')
  }

  #note(reason: string, instance: string): void {
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1)
    this.#counted.add(instance.split('/').at(-1) ?? '*')
  }

  /** Order per key, whoever wrote it, also suffers from what somebody else is counted for. */
  #isCounted(event: HistoryEvent, perProducer: boolean): boolean {
    if (!('producer' in event)) return false
    return this.#counted.has(event.producer) || this.#counted.has('*') || (!perProducer && this.#counted.size > 0)
  }

  /** For the rule on children, which cannot know that compaction has taken a parent's record. */
  #layoutEvents(): HistoryEvent[] {
    if (this.#world.plan.faults.some(({ kind }) => kind === 'compact')) return []
    const layouts = this.#topic?.layouts ?? []
    return layouts.flatMap(({ gates, seal, change, count, starts }, index): HistoryEvent[] => {
      const from = layouts[index - 1]?.count
      if (from === undefined || gates !== 'seal' || change === 'met' || seal === undefined || seal.forced) return []
      return [{ event: 'layout', at: 0, topic: TOPIC, from, to: count, boundaries: seal.boundaries, starts }]
    })
  }

  #look(): void {
    for (const { proxy, process } of this.#world.running) {
      if (!process.alive) continue
      const state = proxy.layoutParts?.feature.topics.find(TOPIC, '')?.view()?.topic
      const isNewer = state !== undefined && state.layouts.length >= (this.#topic?.layouts.length ?? 0)
      if (isNewer) this.#topic = state
    }
  }

  #change(index: number, to: number): void {
    this.#look()
    if ((this.#topic?.layouts.length ?? 0) > index + 1) return
    const again = (): void =>
      void this.#world.clock.schedule(this.#world.clock.nowMs + RETRY_MS, () => this.#change(index, to))
    const isMine = (this.#topic?.layouts.length ?? 0) === index + 1
    if (!isMine) return again()
    const { topics } = this.#world.broker.cluster
    const topic = topics.named(TOPIC)
    if (this.#plan.isExternal && topic !== undefined && to > topic.partitions.length) {
      topics.grow(topic, to, this.#world.broker.cluster.upNodeIds())
      this.#world.statistics.count('layouts.grown behind everybody’s back')
      return again()
    }
    const able = this.#world.running.filter(({ process }) => process.alive && !process.paused)
    const chosen = able[this.#world.random.below(Math.max(1, able.length))]
    if (chosen !== undefined) this.#wish(chosen.proxy, to)
    again()
  }

  #wish({ layoutParts: layouts }: RunningProxy, to: number): void {
    const coordinator = layouts?.feature.control.find(TOPIC)
    const count = this.#topic === undefined ? 0 : currentLayout(this.#topic).count
    if (coordinator === undefined) return
    const change = to > count ? 'expand' : 'shrink'
    coordinator
      .change({ change, to, any: true })
      .then((outcome) => this.#world.statistics.count(`layouts.wish ${outcome.kind}`))
      .catch(this.#world.fail)
    layouts?.feature.control.wake()
  }
}
