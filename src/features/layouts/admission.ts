/**
 * What becomes of a batch: forwarded, held, or answered retriably. A late batch is forwarded (a refusal would reorder
 * the records of a producer that pipelines without idempotence); only a vote of this proxy that must be taken back
 * first holds it. A batch of a newer layout than its instance's last waits for a cut where the change needs one.
 */
import type { Layout } from '../../state/topic-state.ts'
import { cuttingOf, goesToAndFro } from './cuts.ts'
import { type Batch, type CountReason, explainBatch, type HoldReason, openLayouts, type Turn } from './guard-state.ts'
import { type Explanation, sinceWhen } from './staleness.ts'
import { mayStand, unsealed } from './votes.ts'
import type { View } from '../../state/view.ts'

export type Verdict =
  | { type: 'forward'; age: number; oldest: number; layout: number; counts: CountReason[] }
  | {
      type: 'hold'
      reason: HoldReason
      age: number
      oldest: number
      target?: number
      isMixed?: boolean
      /** It waits for what its instance sent before it, which waits too: the same cut does not serve both. */
      isBehind?: boolean
      withdraw?: Layout[]
    }

export function judge(turn: Turn, batch: Batch, isGranted: boolean): Verdict {
  const view = turn.state.view
  if (view === undefined) return { type: 'hold', reason: 'no view', age: 0, oldest: 0 }
  const explained = explainBatch(turn, view, batch)
  // Placed by a layout we have not read yet: catch up, never refuse.
  if (explained === undefined) return { type: 'hold', reason: 'ahead', age: Infinity, oldest: Infinity }
  if (isOfProposal(view, batch, explained))
    return { type: 'hold', reason: 'preparing', age: Infinity, oldest: Infinity }
  const blocking = unsealed(view).filter((layout) => explained.age < layout.epoch && mayStand(turn, layout))
  const { age } = explained
  const oldest = explained.epochs[0] ?? age
  if (blocking.length > 0) return { type: 'hold', reason: 'withdrawal', age, oldest, withdraw: blocking }
  return judgeLayout(turn, view, batch, explained, isGranted)
}

/** Only the layout that is being prepared explains it. */
function isOfProposal(view: View, batch: Batch, explained: Explanation): boolean {
  const to = view.topic.proposal?.to
  if (to === undefined || explained.epochs.length > 0 || batch.hashes === undefined) return false
  return batch.hashes.every((hash) => hash % to === batch.partition)
}

function judgeLayout(turn: Turn, view: View, batch: Batch, explained: Explanation, isGranted: boolean): Verdict {
  const { epochs, age } = explained
  const oldest = epochs[0] ?? age
  const cutting = cuttingOf(turn, view, batch.instance)
  const { layout: last, reached } = cutting
  const waits = !isGranted && !goesToAndFro(cutting)
  const open = openLayouts(view, turn.wallMs, turn.state.times)
  const current = open.at(-1)?.epoch ?? age
  const sealed = isLateAfterSeal(view, age) ? (['late after the seal'] as CountReason[]) : []
  if (epochs.length === 0) {
    const isCut = crossesCut(open, age, current)
    if (isCut && waits) return { type: 'hold', reason: 'cut', age, oldest, target: current, isMixed: true }
    // Its old records lie above the cut, if one was taken, and its producer is cut again.
    const counts: CountReason[] = isCut ? ['mixed layouts in one batch', ...sealed] : sealed
    return { type: 'forward', age, oldest, layout: age, counts }
  }
  const newest = epochs.at(-1) ?? last
  const since = sinceWhen(open, epochs)
  const counts = [...sealed]
  // Some record fits an older and a newer layout, but not one between: old or new, it may be on the wrong side of a cut.
  if (crossesCut(open, Math.min(last, oldest), Math.max(explained.need, since)) && explained.need > oldest) {
    counts.push('old and new alike')
  }
  if (waits && crossesCut(open, olderBefore(turn, batch, since), since))
    return { type: 'hold', reason: 'cut', age, oldest: since, target: since, isBehind: true }
  if (last >= since) {
    // A batch of a newer layout went before it, and nothing gates it.
    if (crossesCut(open, newest, reached)) counts.push('late after its cut')
    return { type: 'forward', age, oldest, layout: Math.min(last, newest), counts }
  }
  if (crossesCut(open, last, since)) {
    // It waits itself: while it is away to come back nothing older stands behind it.
    if (waits) return { type: 'hold', reason: 'cut', age, oldest: since, target: since }
    if (!isGranted) counts.push('to and fro')
  }
  return { type: 'forward', age, oldest, layout: since, counts }
}

/** The oldest layout of what its instance sent before it and still waits; `since` if nothing does. */
function olderBefore({ state }: Turn, { id, instance }: Batch, since: number): number {
  const own = state.held.findIndex(({ batch }) => batch.id === id)
  const before = own < 0 ? state.held : state.held.slice(0, own)
  const waiting = before.filter(({ batch }) => batch.instance === instance)
  return Math.min(since, ...waiting.map(({ age }) => age))
}

/** Whether one of the changes after layout `from` up to `to` is gated by cuts. */
function crossesCut(open: readonly Layout[], from: number, to: number): boolean {
  return open.some((layout) => layout.epoch > from && layout.epoch <= to && layout.gates === 'cuts')
}

function isLateAfterSeal(view: View, age: number): boolean {
  return view.topic.layouts.some((layout) => layout.epoch > age && layout.gates === 'seal' && layout.seal !== undefined)
}
