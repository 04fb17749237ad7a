import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyEntries, applyEntry, emptyLog, fleetOf, type LogState, topicOf } from '../../../src/state/log-reducer.ts'
import type { StateRecord } from '../../../src/state/record.ts'
import { keyOf } from '../../../src/state/records.ts'
import { dueSnapshots, erasableKeys } from '../../../src/state/snapshot.ts'

const later = 1_000_000

function append(log: LogState, ...records: StateRecord[]): LogState {
  const first = log.position
  const entries = records.map((record, i) => ({
    offset: first + i,
    atMs: 1,
    key: keyOf(record, `${first + i}`),
    record,
  }))
  return applyEntries(log, entries)
}

/** A topic at rest, and `count` proxies that came and were expelled after it was met. */
function restlessFleet(count: number): LogState {
  const met: StateRecord[] = [
    { kind: 'register', proxy: 'leader', host: 'h' },
    { kind: 'register', proxy: 'first', host: 'h' },
    { kind: 'topic', proxy: 'first', topicId: 'T', name: 't', count: 3 },
    { kind: 'expel', proxy: 'leader', expelled: 'first' },
  ]
  const passing = Array.from({ length: count }, (_, i): StateRecord[] => [
    { kind: 'register', proxy: `p${i}`, host: 'h' },
    { kind: 'expel', proxy: 'leader', expelled: `p${i}` },
  ])
  return append(emptyLog(), ...met, ...passing.flat())
}

test('a scope with a long tail gets a snapshot; what it replaces may be erased once it was read back', () => {
  const log = restlessFleet(3)
  assert.deepEqual(dueSnapshots(log, 'leader', 20, 0), [])
  const due = dueSnapshots(log, 'leader', 5, 0)
  assert.deepEqual(
    due.map(({ kind, below }) => [kind, below]),
    [['fleet-snapshot', log.position]],
  )
  assert.deepEqual(erasableKeys(log), [])
  const after = append(log, ...due)
  assert.equal(erasableKeys(after).length, 9)
  assert.deepEqual(fleetOf(after), fleetOf(log))
})

test('expelled proxies are kept as long as a tail goes back to when they lived', () => {
  const log = restlessFleet(10)
  const [snapshot] = dueSnapshots(log, 'leader', 5, later)
  assert.ok(snapshot?.kind === 'fleet-snapshot' && snapshot.state.members['first'] !== undefined)
  const replayed = append(log, snapshot)
  assert.equal(topicOf(replayed, 'T')?.name, 't')
})

test('topics at rest get a snapshot once many expelled proxies wait to be forgotten, and then they are', () => {
  const log = restlessFleet(100)
  assert.deepEqual(
    dueSnapshots(log, 'leader', 1000, later).map(({ kind }) => kind),
    ['topic-snapshot'],
  )
  assert.deepEqual(dueSnapshots(log, 'leader', 1000, 0), [], 'not before their time')
  const rested = append(log, ...dueSnapshots(log, 'leader', 1000, later))
  assert.deepEqual(dueSnapshots(rested, 'leader', 1000, later), [], 'once')
  const forgotten = append(rested, ...dueSnapshots(rested, 'leader', 5, later))
  assert.deepEqual(Object.keys(fleetOf(forgotten).members), ['leader'])
  assert.deepEqual(topicOf(forgotten, 'T'), topicOf(log, 'T'))
})

test('an entry that cannot be applied changes nothing and is told; the others count', () => {
  const log = restlessFleet(1)
  const at = log.position
  const entries = [
    {
      offset: at,
      atMs: 1,
      key: 'fleet-snapshot/fleet/1',
      record: { kind: 'fleet-snapshot', proxy: 'x', below: at, state: null } as never,
    },
    {
      offset: at + 1,
      atMs: 1,
      key: 'register/fleet/1',
      record: { kind: 'register', proxy: 'new', host: 'h' } as const,
    },
  ]
  const told: number[] = []
  const after = applyEntries(log, entries, ({ offset }) => told.push(offset))
  assert.deepEqual(told, [at])
  assert.equal(after.position, at + 2)
  assert.ok(fleetOf(after).members['new'] !== undefined)
  const [first] = entries
  assert.throws(() => applyEntry(log, first as never))
})

/** As `append`, of tombstones. */
function erase(log: LogState, keys: readonly string[]): LogState {
  const first = log.position
  return applyEntries(
    log,
    keys.map((key, i) => ({ offset: first + i, atMs: 1, key })),
  )
}

test('a topic that is gone is forgotten: first by a snapshot, then its records go, and the snapshot last', () => {
  const log = append(restlessFleet(0), { kind: 'topic', proxy: 'leader', topicId: 'U', name: 'u', count: 1 })
  const isGone = (topicId: string): boolean => topicId === 'T'
  const due = dueSnapshots(log, 'leader', 20, 0, isGone)
  assert.deepEqual(due, [{ kind: 'topic-snapshot', proxy: 'leader', topicId: 'T', below: log.position, state: null }])
  const forgotten = append(log, ...due)
  assert.equal(topicOf(forgotten, 'T'), undefined)
  assert.equal(topicOf(forgotten, 'U')?.name, 'u')
  assert.deepEqual(dueSnapshots(forgotten, 'leader', 20, 0, isGone), [])
  const records = erasableKeys(forgotten)
  assert.deepEqual(records, [`topic/T/2`])
  const erased = erase(forgotten, records)
  const last = erasableKeys(erased)
  assert.deepEqual(last, [`topic-snapshot/T/${log.position}`])
  const clean = erase(erased, last)
  assert.deepEqual(Object.keys(clean.topics), ['U'])
  assert.deepEqual(erasableKeys(clean), [])
})

test('what comes after a topic was forgotten is forgotten too, or begins it anew', () => {
  const met: StateRecord = { kind: 'topic', proxy: 'leader', topicId: 'T', name: 't', count: 5 }
  const log = restlessFleet(0)
  const forgotten = append(log, ...dueSnapshots(log, 'leader', 20, 0, () => true))
  const late = append(forgotten, { kind: 'withdrawal', proxy: 'leader', topicId: 'T', epoch: 0, ballot: 1 })
  assert.equal(topicOf(late, 'T'), undefined)
  const again = append(late, ...dueSnapshots(late, 'leader', 20, 0, () => true))
  const keys = erasableKeys(again)
  assert.deepEqual(erasableKeys(erase(again, keys)), [`topic-snapshot/T/${late.position}`])
  const back = append(late, met)
  assert.equal(topicOf(back, 'T')?.layouts[0]?.count, 5)
  // A reader that comes after compaction sees the same.
  const tail = append({ ...emptyLog(), position: back.position - 1, fleet: back.fleet }, met)
  assert.deepEqual(topicOf(tail, 'T'), topicOf(back, 'T'))
})
