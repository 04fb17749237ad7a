/** What client programs saw as a history that the checker judges. */
import type { HistoryEvent } from '../../checker/history.ts'
import { checkEvent, merge } from '../../checker/parse.ts'
import type { ClientEvent, Run } from '../client.ts'

/** One command of a run; `crashedAt`: its program was killed then. */
export interface Part {
  readonly run: Run
  readonly who:
    | { producer: string; idempotent: boolean; ordered: boolean }
    | { member: string; group: string; isolation: string }
  readonly crashedAt?: number
}

const own = new Set(['error', 'end', 'result'])

/** The parts as one history in the order of time, each with its begin and end. */
export function historyOf(parts: readonly Part[], more: readonly HistoryEvent[]): HistoryEvent[] {
  const histories = parts.map(({ run, who, crashedAt }) => {
    const name = 'member' in who ? { member: who.member, group: who.group } : { producer: who.producer }
    const seen = run.events.filter(({ event }) => !own.has(event))
    const first = seen[0]?.at ?? 0
    const last = crashedAt ?? run.events.at(-1)?.at ?? first
    const end = { event: crashedAt === undefined ? 'closed' : 'crashed', ...name, at: last }
    const all: unknown[] = [{ event: 'started', ...who, at: first }, ...seen.map(withoutNothing), end]
    return all.map((event, index) => checkEvent(event, `${run.id}:${index}`))
  })
  return merge([...histories, more])
}

/** Absent fields are absent, not null; only a key may be null. */
function withoutNothing(event: ClientEvent): unknown {
  const fields = Object.entries(event).filter(([name, value]) => name === 'key' || value != null)
  return Object.fromEntries(fields)
}
