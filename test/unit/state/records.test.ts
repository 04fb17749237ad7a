import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StateError } from '../../../src/state/errors.ts'
import type { StateRecord } from '../../../src/state/record.ts'
import type { Layout } from '../../../src/state/topic-state.ts'
import { decodeRecord, encodeRecord, keyOf, scopeOf, scopeOfKey } from '../../../src/state/records.ts'

const topicId = 'T1'
const proxy = 'p1'
const layout: Layout = {
  epoch: 0,
  count: 3,
  change: 'met',
  order: 'key',
  gates: 'seal',
  openedAt: 1,
  openedAtMs: 2,
  starts: {},
  leaderEpochs: {},
  unsettled: [],
  votes: {},
  withdrawn: {},
  lastVote: -1,
}
const samples: StateRecord[] = [
  { kind: 'register', proxy, host: 'a:1' },
  { kind: 'expel', proxy, expelled: 'p2' },
  { kind: 'topic', proxy, topicId, name: 't', count: 3 },
  { kind: 'proposal', proxy, topicId, proposal: 'x', after: 0, change: 'expand', to: 6, order: 'key', gates: 'seal' },
  { kind: 'preparing', proxy, topicId, proposal: 'x' },
  { kind: 'ready', proxy, topicId, proposal: 'x' },
  { kind: 'open', proxy, topicId, proposal: 'x', starts: { 3: 0 }, leaderEpochs: { 3: 7 }, unsettled: [0] },
  { kind: 'aborted', proxy, topicId, proposal: 'x', reason: 'slow' },
  { kind: 'vote', proxy, topicId, epoch: 1, ballot: 1, instances: ['i'], ends: { 0: 12 } },
  { kind: 'withdrawal', proxy, topicId, epoch: 1, ballot: 1 },
  { kind: 'sealed', proxy, topicId, epoch: 1, lastVote: 9, boundaries: { 0: 12 }, gaveUp: ['p2'], forced: false },
  { kind: 'announced', proxy, topicId, epoch: 1 },
  { kind: 'cut', proxy, topicId, cut: 'c', layouts: [0, 1], ends: { 0: 12 } },
  { kind: 'cut-read', proxy, topicId, cut: 'c' },
  { kind: 'fleet-snapshot', proxy, below: 10, state: { members: {} } },
  { kind: 'topic-snapshot', proxy, topicId, below: 10, state: { topicId, name: 't', layouts: [layout], cuts: [] } },
  { kind: 'left', proxy, topicId, sinceMs: 7, instances: { '10.0.0.1/c': 1 }, gone: ['10.0.0.1/c'], ends: { 0: 3 } },
]

void test('every kind of record survives the way to bytes and back', () => {
  const orderly: StateRecord = { kind: 'expel', proxy, expelled: proxy, wroteTo: [topicId] }
  for (const record of [...samples, orderly]) assert.deepEqual(decodeRecord(encodeRecord(record)), record)
})

void test('keys are unique per record, and a snapshot is named by what it stands for', () => {
  const keys = samples.map((record, index) => keyOf(record, `${proxy}:${index}`))
  assert.equal(new Set(keys).size, samples.length)
  assert.equal(keyOf(samples[15] as StateRecord, 'p1:1'), keyOf(samples[15] as StateRecord, 'p2:9'))
  for (const [index, record] of samples.entries()) assert.equal(scopeOfKey(keys[index] ?? ''), scopeOf(record))
})

const refuses = (value: unknown, code: string): void => {
  const bytes =
    typeof value === 'string' ? new TextEncoder().encode(value) : new TextEncoder().encode(JSON.stringify(value))
  assert.throws(
    () => decodeRecord(bytes),
    (error) => error instanceof StateError && error.code === code,
  )
}

void test('what something else wrote is named as foreign', () => {
  refuses('not json', 'HG_STATE_FOREIGN')
  refuses('[1]', 'HG_STATE_FOREIGN')
  refuses('null', 'HG_STATE_FOREIGN')
})

void test('unknown versions and kinds are refused, not guessed', () => {
  refuses({ v: 2, kind: 'ready', proxy, topicId, proposal: 'x' }, 'HG_STATE_VERSION')
  refuses({ v: 1, kind: 'merge', proxy }, 'HG_STATE_VERSION')
  refuses({ v: 1, kind: 'toString', proxy }, 'HG_STATE_VERSION')
})

void test('a field that is missing or of the wrong type is refused', () => {
  for (const record of samples) {
    for (const field of Object.keys(record).filter((name) => name !== 'kind')) {
      refuses({ v: 1, ...record, [field]: undefined }, 'HG_STATE_INVALID')
    }
  }
  refuses({ v: 1, ...(samples[3] as object), gates: 'both' }, 'HG_STATE_INVALID')
  refuses({ v: 1, ...(samples[6] as object), starts: { 3: 0.5 } }, 'HG_STATE_INVALID')
  refuses({ v: 1, ...(samples[11] as object), live: 'yes' }, 'HG_STATE_INVALID')
  refuses({ v: 1, ...(samples[1] as object), wroteTo: 'T1' }, 'HG_STATE_INVALID')
})

void test('a snapshot that is not whole is refused: the state would be built on it', () => {
  const snapshot = (state: object) => ({ v: 1, kind: 'topic-snapshot', proxy, topicId, below: 1, state })
  const whole = { topicId, name: 't', layouts: [layout], cuts: [] }
  assert.ok(decodeRecord(new TextEncoder().encode(JSON.stringify(snapshot(whole)))))
  refuses(snapshot({}), 'HG_STATE_INVALID')
  refuses(snapshot({ ...whole, layouts: [] }), 'HG_STATE_INVALID')
  refuses(snapshot({ ...whole, layouts: [{ ...layout, votes: 1 }] }), 'HG_STATE_INVALID')
  refuses(snapshot({ ...whole, cuts: [{}] }), 'HG_STATE_INVALID')
  refuses({ v: 1, kind: 'fleet-snapshot', proxy, below: 1, state: { members: { a: {} } } }, 'HG_STATE_INVALID')
})
