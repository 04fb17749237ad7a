/** A topic's layouts as the API shows them: times as ISO text, and what is not there left out. */
import { type State, withOtherRules } from '../../../state/state.ts'
import { currentLayout, type Layout, type Proposal, type TopicState } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import type { Ledger } from '../clean.ts'
import type { Moment } from '../guard-state.ts'
import { countShown, stillWide } from '../shrink.ts'
import type { LayoutTimes } from '../times.ts'
import type { TopicCoordinator } from './topic-coordinator.ts'
import { waitedInstances, waitedProxies } from './waiting.ts'

/** What the guard of a topic knows at this proxy. */
export interface GuardFacts {
  readonly ledgers: Iterable<Ledger>
  /** Batches held now. */
  readonly held: number
  /** Batches whose order may be lost, by reason. */
  readonly counted: Readonly<Record<string, number>>
  /** Batches of an old layout that were taken after a change. */
  readonly late: number
}

export type Phase = 'unknown' | 'settled' | 'preparing' | 'unsealed' | 'shrinking'

/** In one word, what is under way. */
export function phaseOf(topic: TopicState | undefined): Phase {
  if (topic === undefined) return 'unknown'
  if (topic.proposal !== undefined) return 'preparing'
  const waits = topic.layouts.some((layout) => layout.change !== 'met' && layout.seal === undefined)
  if (!waits) return 'settled'
  return currentLayout(topic).change === 'shrink' ? 'shrinking' : 'unsealed'
}

export function topicRow({ topic, exists }: TopicCoordinator): object {
  const state = topic.view()?.topic
  const layout = state === undefined ? undefined : currentLayout(state)
  return {
    topic: topic.name,
    topicId: topic.topicId,
    partitions: layout?.count,
    exists: Math.max(exists, layout?.count ?? 0),
    epoch: layout?.epoch,
    order: topic.rule.order,
    phase: phaseOf(state),
    ...(state === undefined || layout === undefined ? {} : { since: iso(phaseSince(state)) }),
    matches: writtenAs(topic.rule.topic),
  }
}

/** When what `phaseOf` says began, in milliseconds since 1970. */
export function phaseSince(topic: TopicState): number {
  const { openedAtMs, seal } = currentLayout(topic)
  return topic.proposal?.atMs ?? seal?.atMs ?? openedAtMs
}

/** The expression as it stands in the configuration. */
export function writtenAs(pattern: RegExp): string {
  return /^\^\(\?:(.*)\)\$$/s.exec(pattern.source)?.[1] ?? pattern.source
}

export interface TopicSight {
  readonly coordinator: TopicCoordinator
  readonly guard: GuardFacts | undefined
  readonly state: State
  readonly now: Moment
}

export function topicView(sight: TopicSight): object {
  const { coordinator, guard, state, now } = sight
  const { topic, times } = coordinator
  const view = topic.view()
  const { topic: _, ...rule } = topic.rule
  const common = {
    ...topicRow(coordinator),
    rule: { matches: writtenAs(topic.rule.topic), ...rule },
    seenBy: state.proxy,
    ...otherRules(state),
    held: guard?.held ?? 0,
    late: guard?.late ?? 0,
    counted: guard?.counted ?? {},
  }
  if (view === undefined)
    return { ...common, problem: state.status().problem ?? 'the state of this topic was not read yet' }
  const { cuts, proposal, layouts } = view.topic
  const aborted = lastAborted(view.topic)
  const lastCut = cuts.at(-1)
  return {
    ...common,
    ...(proposal === undefined ? {} : { change: proposalView(view, proposal, times) }),
    ...(aborted === undefined
      ? {}
      : { aborted: { change: aborted.change, to: aborted.to, reason: aborted.reason, at: iso(aborted.atMs) } }),
    cuts: cuts.length,
    ...(lastCut === undefined ? {} : { lastCut: { id: lastCut.id, at: iso(lastCut.atMs), ends: lastCut.ends } }),
    layouts: layouts.map((layout) => layoutView(view, layout, times, guard, now)),
  }
}

function otherRules(state: State): { otherRules?: object[] } {
  const others = withOtherRules(state.status())
  return others.length === 0 ? {} : { otherRules: others.map(({ proxy, host }) => ({ proxy, host })) }
}

/** The last change that was aborted, until a later one is open. */
function lastAborted(topic: TopicState) {
  const { aborted } = topic
  return aborted !== undefined && aborted.atMs >= currentLayout(topic).openedAtMs ? aborted : undefined
}

function proposalView({ fleet }: View, proposal: Proposal, times: LayoutTimes): object {
  const { change, to, gates, order, atMs, preparingAtMs, ready, proxy } = proposal
  const live = Object.entries(fleet.members).filter(([, member]) => member.expelledAt === undefined)
  const boundMs = preparingAtMs === undefined ? atMs + 3 * times.prepareBoundMs : preparingAtMs + times.prepareBoundMs
  return {
    change,
    to,
    gates,
    order,
    by: proxy,
    since: iso(atMs),
    step: preparingAtMs === undefined ? 'partitions are created and get leaders' : 'every proxy gets ready',
    notReady: preparingAtMs === undefined ? [] : live.flatMap(([id]) => (ready[id] === undefined ? [id] : [])),
    atMost: iso(boundMs),
  }
}

function layoutView(view: View, layout: Layout, times: LayoutTimes, guard: GuardFacts | undefined, now: Moment) {
  const { epoch, count, change, order, gates, openedAtMs, starts, leaderEpochs, seal, announcedAt, isLive } = layout
  const isCurrent = layout === currentLayout(view.topic)
  const common = { epoch, partitions: count, change, order, gates, since: iso(openedAtMs) }
  if (change === 'met') return common
  const votes = Object.entries(layout.votes).map(([proxy, vote]) => ({ proxy, instances: vote.instances.length }))
  return {
    ...common,
    starts,
    leaderEpochs,
    votes,
    ...(change === 'shrink' && isCurrent
      ? {
          announced: announcedAt !== undefined,
          live: isLive === true,
          stillWide: wide(view.topic, guard),
        }
      : {}),
    ...(seal === undefined
      ? { waitsFor: waits(view, layout, times, guard, now) }
      : { seal: { at: iso(seal.atMs), boundaries: seal.boundaries, gaveUp: seal.gaveUp, forced: seal.forced } }),
  }
}

/** Instances here that keep more partitions until they restart, with the count they have. */
function wide(topic: TopicState, guard: GuardFacts | undefined): object[] {
  const ledgers = [...(guard?.ledgers ?? [])]
  const names = new Set(stillWide(topic, ledgers))
  return ledgers
    .filter(({ instance }) => names.has(instance))
    .map((ledger) => ({ instance: ledger.instance, partitions: countShown(topic, ledger).count }))
}

function waits(view: View, layout: Layout, times: LayoutTimes, guard: GuardFacts | undefined, now: Moment) {
  const { atMs, wallMs } = now
  const proxies = waitedProxies(view, layout, wallMs, times).map(({ proxy, host, why, sinceMs, untilMs }) => ({
    proxy,
    host,
    why,
    since: iso(sinceMs),
    ...(untilMs === undefined ? {} : { atMost: iso(untilMs) }),
  }))
  const here = waitedInstances(guard?.ledgers ?? [], layout, atMs, times).map(
    ({ instance, why, sinceMs, untilMs }) => ({
      instance,
      why,
      ...(sinceMs === undefined ? {} : { since: iso(sinceMs + wallMs - atMs) }),
      ...(untilMs === undefined ? {} : { atMost: iso(untilMs + wallMs - atMs) }),
    }),
  )
  return { proxies, instances: here }
}

export function iso(atMs: number): string {
  return new Date(Math.round(atMs)).toISOString()
}
