/** What happened at a violation's partition before and between its events, in few lines: for the message of a failed run. */
import type { HistoryEvent } from './history.ts'
import type { Violation } from './rule.ts'

/** Before the first event of the violation. */
const beforeMs = 5000
const mostLines = 80

interface Span {
  readonly what: string
  readonly from: number
  first?: number
  last?: number
}

/** Runs of one member's (or producer's) deliveries are one line; the latest lines, if there are too many. */
export function around(history: readonly HistoryEvent[], { events }: Violation): string[] {
  const place = events.find((event) => 'partition' in event)
  const [first, last] = [events[0], events.at(-1)]
  if (place === undefined || first === undefined || last === undefined) return []
  const spans: Span[] = []
  for (const event of history) {
    if (event.at < first.at - beforeMs || event.at > last.at) continue
    const isHere = 'partition' in event && event.topic === place.topic && event.partition === place.partition
    if (!isHere && 'partition' in event) continue
    if (event.event === 'sent' || event.event === 'done') continue
    const what = `${nameOf(event)} ${event.event}${detailsOf(event)}`
    const offset = 'offset' in event ? event.offset : undefined
    const before = spans.at(-1)
    if (before?.what === what && offset !== undefined && before.last === offset - 1) before.last = offset
    else spans.push({ what, from: event.at, ...(offset === undefined ? {} : { first: offset, last: offset }) })
  }
  return spans.slice(-mostLines).map(({ what, from, first: low, last: high }) => {
    const offsets = low === undefined ? '' : low === high ? ` ${low}` : ` ${low}-${high}`
    return `${from - first.at} ms: ${what}${offsets}`
  })
}

function nameOf(event: HistoryEvent): string {
  if ('member' in event && event.member !== undefined) return event.member
  return 'producer' in event && event.producer !== undefined ? event.producer : 'run'
}

function detailsOf(event: HistoryEvent): string {
  if (event.event === 'fault') return ` (${event.kind}, for ${(event.until ?? event.at) - event.at} ms)`
  return 'partitions' in event ? ` ${event.partitions.map(([, partition]) => partition).join(',')}` : ''
}
