/**
 * Which layout an instance is shown. A wider one at once; a narrower one only when it is announced, and then only to
 * instances that were never shown a wider one here: living producers of two families never take a smaller count, and
 * what others have queued for a hidden partition would be stuck. What was shown is forgotten with the last connection.
 * A live shrink is shown to living instances too: what they cannot follow then fails where it can be seen.
 */
import { currentLayout, type Layout, type TopicState } from '../../state/topic-state.ts'
import type { Ledger } from './clean.ts'

/** The layout whose count Metadata shows to this instance now. */
export function countShown(topic: TopicState, ledger: Ledger | undefined): Layout {
  const shown = new Set(ledger?.goneSinceMs === undefined ? ledger?.shownNow : [])
  let layout = topic.layouts[0] ?? currentLayout(topic)
  for (const next of topic.layouts.slice(1)) {
    const isWider = next.count > layout.count
    const keepsWider =
      next.isLive !== true &&
      topic.layouts.some((other) => shown.has(other.epoch) && other.epoch < next.epoch && other.count > next.count)
    if (isWider || (next.announcedAt !== undefined && !keepsWider)) layout = next
  }
  return layout
}

/** Instances that keep a wider layout until they restart: the ones to name to the operator. */
export function stillWide(topic: TopicState, ledgers: Iterable<Ledger>): string[] {
  const current = currentLayout(topic)
  return [...ledgers]
    .filter((ledger) => ledger.goneSinceMs === undefined && countShown(topic, ledger).count > current.count)
    .map((ledger) => ledger.instance)
}
