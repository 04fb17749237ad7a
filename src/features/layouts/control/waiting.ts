/** Who is waited for before a change is sealed: which proxies, and at this proxy which instances, why, and how long at most. */
import { expelledBelow, type FleetState } from '../../../state/fleet.ts'
import { type Layout, missingVotes, type TopicState, writersOf } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import { clockOf, hasUnansweredOlder, isClean, lastOlder, type Ledger, owesOlder } from '../clean.ts'
import { waitedUntil } from '../departure.ts'
import type { LayoutTimes } from '../times.ts'

export interface WaitedProxy {
  readonly proxy: string
  readonly host: string
  readonly why: string
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
  const { live } = missingVotes(view.topic, layout, view.fleet, view.position)
  const forcedMs = times.sealAfterMs === undefined ? Infinity : layout.openedAtMs + times.sealAfterMs
  const bound = (ms: number): number | undefined => (ms === Infinity ? undefined : ms)
  const living = live.map(
    (proxy): WaitedProxy => ({
      proxy,
      host: hostOf(view.fleet, proxy),
      why: 'has not voted yet',
      sinceMs: layout.openedAtMs,
      untilMs: bound(forcedMs),
    }),
  )
  const dead = expelledBelow(view.fleet, view.position).map(({ proxy, atMs: sinceMs }): WaitedProxy => {
    const untilMs = bound(Math.min(forcedMs, waitedUntil(view, layout, proxy, times)))
    return { proxy, host: hostOf(view.fleet, proxy), why: whyDead(view, layout, proxy), sinceMs, untilMs }
  })
  const missed = dead.filter(
    ({ proxy, untilMs }) => layout.votes[proxy] === undefined && (untilMs === undefined || untilMs > atMs),
  )
  return [...living, ...missed]
}

function whyDead(view: View, layout: Layout, proxy: string): string {
  const writers = writersOf(view.topic, layout, view.fleet, proxy)
  if (writers === undefined) {
    const hasLeft = view.fleet.members[proxy]?.hasLeft === true
    return hasLeft ? 'stopped with batches unanswered, before it voted' : 'died before it voted'
  }
  const { unclean, unseen } = writers
  if (unseen.length === 0)
    return `stopped; its ${unclean.length} clients are elsewhere, and may still reconnect in part`
  const more = unseen.length > NAMES_MAX ? ` and ${unseen.length - NAMES_MAX} more` : ''
  return `stopped; its clients were not seen elsewhere yet: ${unseen.slice(0, NAMES_MAX).join(', ')}${more}`
}

/** So many clients of a proxy that stopped are named. */
const NAMES_MAX = 5

function hostOf(fleet: FleetState, proxy: string): string {
  return fleet.members[proxy]?.host ?? ''
}

/** Instances at this proxy that are not clean as far as the layout is concerned; all times are of the ledgers' clock. */
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
