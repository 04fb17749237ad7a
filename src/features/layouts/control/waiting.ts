/** Who is waited for before a change is sealed: which proxies, and at this proxy which instances, why, and how long at most. */
import type { FleetState } from '../../../state/fleet.ts'
import { type Layout, missingVotes, type TopicState } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import { clockOf, hasUnansweredOlder, isClean, lastOlder, type Ledger, owesOlder } from '../clean.ts'
import type { LayoutTimes } from '../times.ts'

export interface WaitedProxy {
  readonly proxy: string
  readonly host: string
  readonly why: 'has not voted yet' | 'stopped or died before it voted'
  readonly sinceMs: number
  /** Wall-clock time at which it is given up; undefined: never. */
  readonly untilMs: number | undefined
}

export interface WaitedInstance {
  readonly instance: string
  readonly why: string
  /** undefined where it is not one moment. */
  readonly sinceMs: number | undefined
  readonly untilMs: number | undefined
}

/** The oldest expansion whose new partitions wait for its seal. */
export function unsealedExpansion(topic: TopicState): Layout | undefined {
  return topic.layouts.find((layout) => layout.change !== 'met' && layout.gates === 'seal' && layout.seal === undefined)
}

/** Proxies whose vote on the layout is missing and still waited for. */
export function waitedProxies(view: View, layout: Layout, atMs: number, times: LayoutTimes): WaitedProxy[] {
  if (layout.seal !== undefined || layout.change === 'met') return []
  const missing = missingVotes(layout, view.fleet, view.position)
  const forcedMs = times.sealAfterMs === undefined ? Infinity : layout.openedAtMs + times.sealAfterMs
  const bound = (ms: number): number | undefined => (ms === Infinity ? undefined : ms)
  const live = missing.live.map(
    (proxy): WaitedProxy => ({
      proxy,
      host: hostOf(view.fleet, proxy),
      why: 'has not voted yet',
      sinceMs: layout.openedAtMs,
      untilMs: bound(forcedMs),
    }),
  )
  const dead = missing.dead.map((proxy): WaitedProxy => {
    const sinceMs = view.fleet.members[proxy]?.expelledAtMs ?? layout.openedAtMs
    const untilMs = bound(Math.min(forcedMs, sinceMs + times.goneAfterMs))
    return { proxy, host: hostOf(view.fleet, proxy), why: 'stopped or died before it voted', sinceMs, untilMs }
  })
  return [...live, ...dead.filter(({ untilMs }) => untilMs === undefined || untilMs > atMs)]
}

function hostOf(fleet: FleetState, proxy: string): string {
  return fleet.members[proxy]?.host ?? ''
}

/** Instances at this proxy that are not clean as far as the layout is concerned. */
export function waitedInstances(
  ledgers: Iterable<Ledger>,
  layout: Layout,
  atMs: number,
  times: LayoutTimes,
): WaitedInstance[] {
  return [...ledgers]
    .filter((ledger) => !isClean(ledger, layout.epoch, atMs, times))
    .map((ledger) => ({ instance: ledger.instance, ...reason(ledger, layout.epoch, atMs, times) }))
}

type Reason = Omit<WaitedInstance, 'instance'>

/** Why an instance is not clean: the first thing that has to happen. */
function reason(ledger: Ledger, epoch: number, atMs: number, times: LayoutTimes): Reason {
  if (ledger.goneSinceMs !== undefined) {
    const sinceMs = ledger.goneSinceMs
    return { why: 'left before it was clean', sinceMs, untilMs: sinceMs + times.goneAfterMs }
  }
  const never = { sinceMs: undefined, untilMs: undefined }
  if (!ledger.shown.some((showing) => showing.epoch >= epoch))
    return { why: 'has not asked for Metadata since the change', ...never }
  if (hasUnansweredOlder(ledger, epoch, atMs)) return { why: 'has batches of the old layout unanswered', ...never }
  if (owesOlder(ledger, epoch, atMs, times))
    return {
      why: 'may send a batch again that was refused, failed or lost',
      sinceMs: undefined,
      untilMs: atMs + times.comeBackMs,
    }
  if (ledger.stops.length > 0) return { why: `waits itself: ${ledger.stops.map((s) => s.reason).join(', ')}`, ...never }
  const shownMs = Math.min(...ledger.shown.filter((showing) => showing.epoch >= epoch).map((showing) => showing.atMs))
  const quietMs = clockOf(ledger, atMs) - Math.max(shownMs, lastOlder(ledger, epoch))
  return {
    why: 'wrote by the old layout a moment ago',
    sinceMs: atMs - quietMs,
    untilMs: atMs - quietMs + times.quietMs,
  }
}
