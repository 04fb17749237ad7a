/** For how long a topic, and an instance of it, has to be looked at after a change. */
import { currentLayout, isSettled } from '../../../state/topic-state.ts'
import type { View } from '../../../state/view.ts'
import { isClean } from '../clean.ts'
import type { GuardState, Moment } from '../guard-state.ts'
import type { LayoutTimes } from '../times.ts'

/** Until when batches of an older layout are looked for: wall-clock time, infinite while a change is not sealed. */
export function alertUntil({ topic }: View, times: LayoutTimes): number {
  if (topic.proposal !== undefined) return Infinity
  const ends = topic.layouts.map(({ change, seal }) => {
    if (change === 'met') return -Infinity
    return seal === undefined ? Infinity : seal.atMs + times.settleMs
  })
  return Math.max(-Infinity, ...ends)
}

/** Whether the instance was shown the newest layout, is clean, and no cut is asked of it: its frames may be opaque again. */
export function canSendNothingLate(
  { view, held, ledgers, times }: GuardState,
  instance: string,
  { atMs, wallMs }: Moment,
): boolean {
  const ledger = ledgers.get(instance)
  if (view === undefined || ledger === undefined || view.topic.proposal !== undefined) return false
  if (held.some(({ batch }) => batch.instance === instance)) return false
  const open = view.topic.layouts.filter((layout) => !isSettled(layout, wallMs, times.settleMs))
  if (!open.every((layout) => layout.gates === 'seal' && layout.seal !== undefined)) return false
  const { epoch } = currentLayout(view.topic)
  return ledger.shown.some((showing) => showing.epoch >= epoch) && isClean(ledger, epoch, atMs, times)
}
