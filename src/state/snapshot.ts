/**
 * When a snapshot is due, and which keys may be erased. Only a proxy whose view is confirmed up to the end of the log
 * writes either (it then knows that it missed nothing), and tombstones go out only for what a snapshot *read back*
 * from the log replaces: `LogState` knows no other.
 */
import { forgetExpelled } from './fleet.ts'
import type { LogState } from './log-reducer.ts'
import type { ProxyId, SnapshotRecord } from './record.ts'

/** Snapshots for every scope whose tail has grown to `tailLength` entries. `forgetBeforeMs`: see forgetExpelled. */
export function dueSnapshots(
  log: LogState,
  proxy: ProxyId,
  tailLength: number,
  forgetBeforeMs: number,
): SnapshotRecord[] {
  const below = log.position
  const due: SnapshotRecord[] = []
  if (log.fleet.tail.length >= tailLength) {
    const oldest = Math.min(below, ...Object.values(log.topics).map((book) => book.below))
    due.push({ kind: 'fleet-snapshot', proxy, below, state: forgetExpelled(log.fleet.state, oldest, forgetBeforeMs) })
  }
  for (const [topicId, book] of Object.entries(log.topics)) {
    if (book.state === undefined || book.tail.length < tailLength) continue
    due.push({ kind: 'topic-snapshot', proxy, topicId, below, state: book.state })
  }
  return due
}

/** Keys that may be erased now: records below an adopted snapshot, and snapshots older than it. */
export function erasableKeys(log: LogState): string[] {
  return [log.fleet, ...Object.values(log.topics)].flatMap((book) => [
    ...book.obsolete,
    ...book.snapshots.filter((snapshot) => snapshot.below < book.below).map((snapshot) => snapshot.key),
  ])
}
