/**
 * State records to bytes and back. A value is JSON `{"v":1,"kind":…}`; a key is `kind/scope/id`, unique per record so
 * that compaction never erases what was decided: only tombstones do, after a snapshot was read back. A snapshot's id
 * is the offset it stands for. Unknown versions, kinds and fields of the wrong type are refused.
 */
import { StateError } from './errors.ts'
import type { SnapshotRecord, StateRecord } from './record.ts'

const version = 1

type Kind = 'text' | 'integer' | 'flag' | 'texts' | 'integers' | 'offsets' | 'object' | 'object?' | 'objects'

const topic = { topicId: 'text' } as const
const proposal = { ...topic, proposal: 'text' } as const
const epoch = { ...topic, epoch: 'integer' } as const
const cut = { ...topic, cut: 'text' } as const

const fieldsOf: Record<StateRecord['kind'], Readonly<Record<string, Kind>>> = {
  register: { host: 'text' },
  expel: { expelled: 'text' },
  topic: { ...topic, name: 'text', count: 'integer' },
  proposal: { ...proposal, after: 'integer', change: 'text', to: 'integer', order: 'text', gates: 'text' },
  preparing: proposal,
  ready: proposal,
  open: { ...proposal, starts: 'offsets', leaderEpochs: 'offsets', unsettled: 'integers' },
  aborted: { ...proposal, reason: 'text' },
  vote: { ...epoch, ballot: 'integer', instances: 'texts', ends: 'offsets' },
  withdrawal: { ...epoch, ballot: 'integer' },
  sealed: { ...epoch, lastVote: 'integer', boundaries: 'offsets', gaveUp: 'texts', forced: 'flag' },
  announced: epoch,
  cut: { ...cut, layouts: 'integers', ends: 'offsets' },
  'cut-read': cut,
  pruned: { ...topic, upTo: 'integer' },
  split: { ...topic, instance: 'text' },
  left: { ...topic, sinceMs: 'integer', instances: 'offsets', gone: 'texts', ends: 'offsets' },
  'fleet-snapshot': { below: 'integer', state: 'object' },
  'topic-snapshot': { ...topic, below: 'integer', state: 'object?' },
}
const optionalFields: Readonly<Record<string, Kind>> = {
  live: 'flag',
  assigned: 'flag',
  seen: 'integer',
  rules: 'text',
  wroteTo: 'texts',
  serves: 'texts',
}
/** What a snapshot holds: the parts whose absence would break who replays on it. */
const shapes = {
  member: { host: 'text', registeredAt: 'integer' },
  topic: { topicId: 'text', name: 'text', layouts: 'objects', cuts: 'objects' },
  layout: {
    epoch: 'integer',
    count: 'integer',
    change: 'text',
    order: 'text',
    gates: 'text',
    openedAt: 'integer',
    openedAtMs: 'integer',
    starts: 'offsets',
    leaderEpochs: 'offsets',
    unsettled: 'integers',
    votes: 'object',
    withdrawn: 'offsets',
    lastVote: 'integer',
  },
  cut: {
    id: 'text',
    proxy: 'text',
    at: 'integer',
    atMs: 'integer',
    layouts: 'integers',
    ends: 'offsets',
    readers: 'offsets',
  },
} as const satisfies Record<string, Readonly<Record<string, Kind>>>
const words: Readonly<Record<string, readonly string[]>> = {
  change: ['expand', 'shrink', 'external'],
  order: ['key', 'producer'],
  gates: ['seal', 'cuts'],
}

/** What a record belongs to: one topic, or the fleet. Snapshots and tombstones go by it. */
export function scopeOf(record: StateRecord): string {
  return 'topicId' in record ? record.topicId : 'fleet'
}

/** The key of a record. `id` must be unique to its writer (proxy id and a counter); snapshots do not use it. */
export function keyOf(record: StateRecord, id: string): string {
  const unique = 'below' in record ? String(record.below) : id
  return `${record.kind}/${scopeOf(record)}/${unique}`
}

/** The scope that a key names, to place a tombstone, which has no value. */
export function scopeOfKey(key: string): string {
  return key.split('/')[1] ?? ''
}

export function encodeRecord(record: StateRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ v: version, ...record }))
}

/** Throws StateError: HG_STATE_FOREIGN (not ours), HG_STATE_VERSION (a newer Headgate wrote it), HG_STATE_INVALID. */
export function decodeRecord(value: Uint8Array): StateRecord {
  let parsed: unknown
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(value))
  } catch (cause) {
    throw new StateError(
      'HG_STATE_FOREIGN',
      'a record of the state topic is not JSON: did something else write there?',
      {
        cause,
      },
    )
  }
  if (typeof parsed !== 'object' || parsed === null || !('v' in parsed)) {
    throw new StateError(
      'HG_STATE_FOREIGN',
      'a record of the state topic has no version: did something else write there?',
    )
  }
  const { v, ...fields } = parsed as Record<string, unknown>
  if (v !== version) {
    throw new StateError(
      'HG_STATE_VERSION',
      `a record of the state topic has version ${JSON.stringify(v)}, this Headgate knows ${version}: update it`,
    )
  }
  checkFields(fields)
  const record = fields as unknown as StateRecord
  if ('below' in record && !isWholeSnapshot(record)) {
    throw new StateError('HG_STATE_INVALID', `${record.kind} record: its state is not whole`)
  }
  return record
}

function isWholeSnapshot({ kind, state }: SnapshotRecord): boolean {
  if (kind === 'fleet-snapshot') {
    return isObject(state.members) && Object.values(state.members).every((member) => hasShape(member, shapes.member))
  }
  return (
    state === null ||
    (hasShape(state, shapes.topic) &&
      state.layouts.length > 0 &&
      state.layouts.every((layout) => hasShape(layout, shapes.layout)) &&
      state.cuts.every((one) => hasShape(one, shapes.cut)))
  )
}

function hasShape(value: unknown, shape: Readonly<Record<string, Kind>>): boolean {
  if (!isObject(value)) return false
  const fields = value as Readonly<Record<string, unknown>>
  return Object.entries(shape).every(([field, kind]) => hasKind(fields[field], kind))
}

function checkFields(fields: Record<string, unknown>): void {
  const kind = typeof fields.kind === 'string' ? fields.kind : ''
  if (!Object.hasOwn(fieldsOf, kind)) {
    throw new StateError(
      'HG_STATE_VERSION',
      `a record of the state topic is of the unknown kind ${JSON.stringify(fields.kind)}`,
    )
  }
  for (const [field, type] of Object.entries(optionalFields)) {
    if (fields[field] === undefined || hasKind(fields[field], type)) continue
    throw new StateError('HG_STATE_INVALID', `${kind} record: ${field} must be ${type}`)
  }
  const needed = { proxy: 'text' as Kind, ...fieldsOf[kind as StateRecord['kind']] }
  for (const [field, type] of Object.entries(needed)) {
    const allowed = words[field]
    if (hasKind(fields[field], type) && (allowed === undefined || allowed.includes(String(fields[field])))) continue
    throw new StateError('HG_STATE_INVALID', `${kind} record: ${field} must be ${allowed?.join(' or ') ?? type}`)
  }
}

function hasKind(value: unknown, kind: Kind): boolean {
  switch (kind) {
    case 'text':
      return typeof value === 'string'
    case 'integer':
      return Number.isSafeInteger(value)
    case 'flag':
      return typeof value === 'boolean'
    case 'texts':
      return Array.isArray(value) && value.every((item) => typeof item === 'string')
    case 'integers':
      return Array.isArray(value) && value.every(Number.isSafeInteger)
    case 'offsets':
      return isObject(value) && Object.values(value).every(Number.isSafeInteger)
    case 'object':
      return isObject(value)
    case 'object?':
      return value === null || isObject(value)
    case 'objects':
      return Array.isArray(value) && value.every(isObject)
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
