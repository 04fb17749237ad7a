/**
 * What a proxy that stops in good order can say of one topic, so that nobody waits for it without a reason, and for how
 * long it is waited for by what it said. Leaving does not make its clients clean (records that they have placed may be in
 * their queues): each is waited for until another proxy vouches for it, or `goneAfter`, as any client that left.
 */
import type { LeftRecord, ProxyId } from '../../state/record.ts'
import { type Layout, writersOf } from '../../state/topic-state.ts'
import type { View } from '../../state/view.ts'
import { isClean, type Ledger, owesOlder } from './clean.ts'
import type { GuardState, Moment, Turn } from './guard-state.ts'
import type { LayoutTimes } from './times.ts'

/**
 * The facts of one topic when all connections of clients have ended.
 * @param sinceMs wall-clock time when their end began
 * @returns undefined: something of it is held, unanswered or to come back, so it cannot vouch for anything
 */
export function departure(state: GuardState, sinceMs: number, now: Moment): LeftRecord | undefined {
  const { atMs, wallMs } = now
  const { view, proxy, times, held, flying, ends } = state
  const ledgers = [...state.ledgers.values()].filter((ledger) => mayWrite(ledger, atMs, times))
  const isOpen = ledgers.some((ledger) => ledger.connections > 0 || owesOlder(ledger, Infinity, atMs, times))
  if (view === undefined || isOpen || held.length > 0 || flying.size > 0) return undefined
  const epochs = view.topic.layouts.map(({ epoch }) => epoch)
  const instances = Object.fromEntries(
    ledgers.map((ledger) => [
      ledger.instance,
      Math.max(0, ...epochs.filter((epoch) => isClean(ledger, epoch, atMs, times))),
    ]),
  )
  const goneMs = ({ goneSinceMs = Infinity }: Ledger): number => goneSinceMs + wallMs - atMs
  const gone = ledgers.filter((ledger) => goneMs(ledger) < sinceMs).map(({ instance }) => instance)
  return { kind: 'left', proxy, topicId: view.topic.topicId, sinceMs, instances, gone, ends: { ...ends } }
}

/** A producer that did not leave long ago, and that no other proxy has vouched for since. */
export function mayWrite(ledger: Ledger, atMs: number, times: LayoutTimes): boolean {
  const { wrote, isWriter, goneSinceMs, takenOverMs } = ledger
  if (goneSinceMs !== undefined && (takenOverMs !== undefined || atMs - goneSinceMs >= times.goneAfterMs)) return false
  return wrote || isWriter
}

/** Whether a proxy stopped a moment ago that the instance wrote through. */
export function leftElsewhere({ wallMs, state }: Turn, view: View, instance: string): boolean {
  return Object.entries(view.topic.left ?? {}).some(
    ([proxy, left]) =>
      proxy !== state.proxy &&
      wallMs - left.atMs < state.times.goneAfterMs &&
      left.instances[instance] !== undefined &&
      !left.gone.includes(instance),
  )
}

/**
 * Until when a proxy that is out, and had not voted, is waited for (wall clock): for `goneAfter`, unless others vouch for
 * all its writers. Then a moment is left to those that still have a connection to make again, with a queue behind it.
 */
export function waitedUntil(view: View, layout: Layout, proxy: ProxyId, times: LayoutTimes): number {
  const expelledMs = view.fleet.members[proxy]?.expelledAtMs ?? 0
  const writers = writersOf(view.topic, layout, view.fleet, proxy)
  if (writers?.unclean.length === 0) return -Infinity
  return expelledMs + (writers?.unseen.length === 0 ? times.comeBackMs : times.goneAfterMs)
}
