/** Reads histories: JSON lines to checked events, and several files to one history in the order of time. */
import { readFileSync } from 'node:fs'
import type { EventName, HistoryEvent } from './history.ts'

type Kind = 'text' | 'number' | 'integer' | 'nullableText' | 'partitions' | 'numbersByName'

const place = { topic: 'text', partition: 'integer', offset: 'integer' } as const
const origin = { producer: 'text', sequence: 'integer', key: 'nullableText' } as const
const byMember = { member: 'text', group: 'text' } as const
const assignment = { ...byMember, partitions: 'partitions' } as const

const required: Record<EventName, Readonly<Record<string, Kind>>> = {
  run: {},
  fault: { kind: 'text' },
  layout: { topic: 'text', from: 'integer', to: 'integer', boundaries: 'numbersByName' },
  trimmed: place,
  truncated: place,
  drained: { group: 'text', topic: 'text' },
  started: {},
  closed: {},
  crashed: {},
  sent: { ...origin, topic: 'text' },
  acknowledged: { ...origin, ...place },
  failed: { ...origin, topic: 'text' },
  transaction: { producer: 'text', transaction: 'text', outcome: 'text' },
  delivered: { ...byMember, ...origin, ...place },
  done: { ...byMember, ...place },
  committed: { ...byMember, ...place },
  assigned: assignment,
  revoked: assignment,
  lost: assignment,
  sought: { ...byMember, ...place },
}
const requiredFields = new Map(
  Object.entries(required).map(([event, fields]) => [event, Object.entries({ at: 'number' as Kind, ...fields })]),
)
const lives = new Set(['started', 'closed', 'crashed'])

/** A line that is not an event of a history; the message names file, line and field. */
export class HistoryError extends Error {
  readonly code = 'HG_HISTORY_INVALID'
}

/** Parses one line. `where` (file:line) is used in errors only. */
export function parseEvent(line: string, where: string): HistoryEvent {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw new HistoryError(`${where}: not JSON: ${line.slice(0, 120)}`, { cause })
  }
  return checkEvent(value, where)
}

/** Checks that a value has the fields its event needs. */
export function checkEvent(value: unknown, where: string): HistoryEvent {
  if (typeof value !== 'object' || value === null) throw new HistoryError(`${where}: not an object`)
  const fields = value as Record<string, unknown>
  const name = typeof fields.event === 'string' ? fields.event : ''
  const needed = requiredFields.get(name)
  if (needed === undefined) throw new HistoryError(`${where}: unknown event ${JSON.stringify(fields.event)}`)
  for (const [field, kind] of needed) {
    if (!hasKind(fields[field], kind)) {
      throw new HistoryError(`${where}: ${name}: ${field} must be ${kind}, not ${JSON.stringify(fields[field])}`)
    }
  }
  if (lives.has(name) && (typeof fields.member === 'string') === (typeof fields.producer === 'string')) {
    throw new HistoryError(`${where}: ${name}: exactly one of member and producer`)
  }
  return value as HistoryEvent
}

function hasKind(value: unknown, kind: Kind): boolean {
  switch (kind) {
    case 'text':
      return typeof value === 'string'
    case 'nullableText':
      return value === null || typeof value === 'string'
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    case 'integer':
      return Number.isSafeInteger(value)
    case 'numbersByName':
      return typeof value === 'object' && value !== null && Object.values(value).every(Number.isSafeInteger)
    case 'partitions':
      return (
        Array.isArray(value) &&
        value.every((p: unknown) => Array.isArray(p) && typeof p[0] === 'string' && Number.isSafeInteger(p[1]))
      )
  }
}

/** Reads one file of JSON lines; empty lines are skipped, a last line cut short by a kill too. */
export function readHistory(path: string): HistoryEvent[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  const events: HistoryEvent[] = []
  for (const [at, line] of lines.entries()) {
    if (line.trim() === '') continue
    if (at === lines.length - 1 && !line.trimEnd().endsWith('}')) continue
    events.push(parseEvent(line, `${path}:${at + 1}`))
  }
  return events
}

/**
 * One history out of several, by time; events of one history keep their order even where its clock jumped back, and
 * equal times keep the order of the arguments.
 */
export function merge(histories: readonly (readonly HistoryEvent[])[]): HistoryEvent[] {
  const total = histories.reduce((sum, history) => sum + history.length, 0)
  const times = new Float64Array(total)
  const events: HistoryEvent[] = []
  for (const history of histories) {
    let latest = Number.NEGATIVE_INFINITY
    for (const event of history) {
      latest = Math.max(latest, event.at)
      times[events.length] = latest
      events.push(event)
    }
  }
  const order = Uint32Array.from(events.keys()).sort((a, b) => (times[a] ?? 0) - (times[b] ?? 0) || a - b)
  return Array.from(order, (index) => events[index] as HistoryEvent)
}
