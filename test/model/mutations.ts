/**
 * Rules broken on purpose, at the shell's edges: the reducers themselves stay as they are. Each has to be found by the
 * judge within 500 seeds.
 */
import { type Done, gatesOf } from '../../src/features/layouts/gate.ts'
import type { CountReason } from '../../src/features/layouts/guard-state.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { scopeOf } from '../../src/state/records.ts'
import type { TopicState } from '../../src/state/topic-state.ts'
import type { Model } from './model.ts'
import type { Theme } from './scenario.ts'
import type { View } from '../../src/state/view.ts'

export const mutations = {
  'gate-on-position': 'gate on the position or fetch offset',
  'no-seal': 'no seal',
  'owed-forgotten': 'seal before a batch that was refused or lost with its connection came back',
  'leaving-is-clean': 'leaving counted as clean',
  'stopping-is-clean': 'the clients of a proxy that stops in good order counted as clean',
  unchained: 'gates not chained over two expansions',
  'boundary-early': 'boundary read before the last vote (and not raised to the ends that the votes name)',
  'cut-without-waiting': 'cut recorded at the first new batch without waiting',
  'cut-in-force-early': 'cut in force before every proxy read it',
  'lease-not-checked-again': 'lease not checked on the acknowledgement',
  'lease-without-heartbeat': 'lease not bounded by the last answered heartbeat',
  'one-key': 'proposals and snapshots under one key',
  'no-cuts': 'non-multiple counts without cuts',
  'cuts-forgotten-early': 'cuts forgotten while a group is behind them',
} as const

export type Mutation = keyof typeof mutations

/** The danger to look at for a rule that chance alone meets too rarely. */
export const themeOf: Partial<Record<Mutation, Theme>> = {
  'stopping-is-clean': 'proxiesThatStop',
  'owed-forgotten': 'batchesThatReturnLate',
  unchained: 'twoExpansionsApart',
  'lease-not-checked-again': 'pausedWithUpstream',
  'lease-without-heartbeat': 'heartbeatsLost',
  'cut-in-force-early': 'heartbeatsLost',
  'one-key': 'logErasedBehindReaders',
  'cuts-forgotten-early': 'logsDeletedBehindGroups',
}

export const distort = {
  key(model: Model, record: StateRecord, key: string): string {
    return model.world.mutation === 'one-key' ? `state/${scopeOf(record)}` : key
  },

  record(model: Model, record: StateRecord): StateRecord {
    return model.world.mutation === 'boundary-early' && record.kind === 'vote' ? { ...record, ends: {} } : record
  },

  wroteTo(model: Model, topics: string[]): string[] {
    return model.world.mutation === 'stopping-is-clean' ? [] : topics
  },

  isSilent(model: Model, reason: CountReason): boolean {
    return model.world.mutation === 'cut-without-waiting' && reason === 'cut without quiet'
  },

  guardView(model: Model, view: View): View {
    if (model.world.mutation !== 'cut-in-force-early') return view
    const readers = Object.fromEntries(Object.keys(view.fleet.members).map((proxy) => [proxy, 0]))
    const isOwn = (proxy: string): boolean => model.proxies.some((p) => p.id === proxy)
    return {
      ...view,
      topic: { ...view.topic, cuts: view.topic.cuts.map((cut) => (isOwn(cut.proxy) ? { ...cut, readers } : cut)) },
    }
  },

  /** Boundaries as they were when the change was opened. */
  earlyEnds(model: Model, what: string): Record<number, number> | undefined {
    if (model.world.mutation !== 'boundary-early' || !what.startsWith('boundaries')) return undefined
    return model.endsAtOpen.get(Number(what.split(' ')[1]))
  },

  gateTopic(model: Model, topic: TopicState): TopicState {
    if (model.world.mutation !== 'no-seal') return topic
    const layouts = topic.layouts.map((layout) => {
      if (layout.gates !== 'seal' || layout.change === 'met') return layout
      const boundaries = model.endsAtOpen.get(layout.epoch) ?? {}
      return {
        ...layout,
        seal: { at: layout.openedAt, atMs: layout.openedAtMs, boundaries, gaveUp: [], forced: false },
      }
    })
    return { ...topic, layouts }
  },

  logStart(model: Model, start: number): number {
    return model.world.mutation === 'cuts-forgotten-early' ? Infinity : start
  },

  stamp(model: Model, group: string): string {
    return model.world.mutation === 'gate-on-position' ? model.positionsOf(group).join() : ''
  },

  done(model: Model, group: string, q: number, end: number): boolean | undefined {
    return model.world.mutation === 'gate-on-position' ? (model.positionsOf(group)[q] ?? 0) >= end : undefined
  },

  limits(model: Model, topic: TopicState, done: Done): readonly number[] {
    if (model.world.mutation !== 'unchained') return gatesOf(topic, done).limits
    return gatesOf(topic, done).limits.map((limit, partition) => {
      const own = topic.layouts.find((layout) => layout.starts[partition] !== undefined && layout.gates === 'seal')
      if (own === undefined) return limit
      const layouts = topic.layouts.map((layout) => (layout.epoch < own.epoch ? { ...layout, starts: {} } : layout))
      return (
        gatesOf({ ...topic, layouts, cuts: topic.cuts.filter((cut) => cut.at > own.openedAt) }, done).limits[
          partition
        ] ?? limit
      )
    })
  },
}
