/**
 * When a snapshot is due, and which keys may be erased. Only a proxy whose view is confirmed up to the end of the log
 * writes either (it then knows that it missed nothing), and tombstones go out only for what a snapshot *read back*
 * from the log replaces: `LogState` knows no other.
 */
import { type FleetState, forgetExpelled } from './fleet.ts'
import type { LogState } from './log-reducer.ts'
import type { ProxyId, SnapshotRecord } from './record.ts'

/** As many expelled proxies are kept before topics at rest get a snapshot only to be rid of them. */
const expelledMax = 64

/**
 * Snapshots for every scope whose tail has grown to `tailLength` entries. Proxies that were expelled before
 * `forgetBeforeMs` are forgotten, once no tail goes back to when they lived: replayed without them, what they wrote
 * would be void. A topic at rest would keep them for ever, so many of them are a reason for a snapshot of it, too.
 * @param isGone whether the cluster has had no such topic for long enough: it gets a snapshot that forgets it
 */
export function dueSnapshots(
  log: LogState,
  proxy: ProxyId,
  tailLength: number,
  forgetBeforeMs: number,
  isGone: (topicId: string) => boolean = () => false,
): SnapshotRecord[] {
  const below = log.position
  const due: SnapshotRecord[] = []
  const oldest = Object.values(log.topics).reduce(
    (first, book) => Math.min(first, book.tail[0]?.offset ?? first),
    below,
  )
  if (log.fleet.tail.length >= tailLength) {
    due.push({ kind: 'fleet-snapshot', proxy, below, state: forgetExpelled(log.fleet.state, oldest, forgetBeforeMs) })
  }
  const old = forgettable(log.fleet.state, forgetBeforeMs)
  const lastOf = old.length < expelledMax ? -1 : Math.max(...old)
  for (const [topicId, book] of Object.entries(log.topics)) {
    const isInTheWay = (book.tail[0]?.offset ?? Infinity) <= lastOf
    if (isGone(topicId)) {
      const isForgotten = book.state === undefined && book.tail.length === 0
      if (!isForgotten) due.push({ kind: 'topic-snapshot', proxy, topicId, below, state: null })
      continue
    }
    if (book.state === undefined || (book.tail.length < tailLength && !isInTheWay)) continue
    due.push({ kind: 'topic-snapshot', proxy, topicId, below, state: book.state })
  }
  return due
}

/** Where proxies were expelled that nobody waits for any more. */
function forgettable(fleet: FleetState, beforeMs: number): number[] {
  return Object.values(fleet.members)
    .filter(({ expelledAtMs }) => (expelledAtMs ?? Infinity) < beforeMs)
    .map(({ expelledAt }) => expelledAt ?? 0)
}

/**
 * Keys that may be erased now: records below an adopted snapshot, and snapshots older than it; last of all the snapshot
 * by which a topic was forgotten, once nothing is left that it replaces.
 */
export function erasableKeys(log: LogState): string[] {
  return [log.fleet, ...Object.values(log.topics)].flatMap((book) => {
    const older = book.snapshots.filter((snapshot) => snapshot.below < book.below)
    const isForgotten = book.state === undefined && book.tail.length === 0
    const erasable = isForgotten && book.obsolete.length === 0 && older.length === 0 ? book.snapshots : older
    return [...book.obsolete, ...erasable.map((snapshot) => snapshot.key)]
  })
}
