import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isClean, newLedger, reduceLedger, type LedgerEvent } from '../../../../src/features/layouts/clean.ts'
import { departure, waitedUntil } from '../../../../src/features/layouts/departure.ts'
import { type GuardEvent, reduceGuard } from '../../../../src/features/layouts/guard.ts'
import { type GuardState, newGuard } from '../../../../src/features/layouts/guard-state.ts'
import { defaultTimes as times } from '../../../../src/features/layouts/times.ts'
import type { FleetState } from '../../../../src/state/fleet.ts'
import type { LeftRecord } from '../../../../src/state/record.ts'
import type { View } from '../../../../src/state/view.ts'
import type { Layout, TopicState } from '../../../../src/state/topic-state.ts'
import { layout } from '../../../support/layout-states.ts'

const at = (ms: number) => ({ atMs: ms, wallMs: ms })
type Event = LedgerEvent & { atMs: number }
const open: Event[] = [
  { type: 'connected', connection: '1', epoch: 0, boundMs: 0, atMs: 0 },
  { type: 'arrived', mark: 'm', age: 0, atMs: 0 },
]
const close: Event = { type: 'lost', connection: '1', boundMs: times.comeBackMs, atMs: 10_000 }
const shown: Event = { type: 'shown', epoch: 1, atMs: 1000 }
const topicOf = (...layouts: Layout[]): TopicState => ({
  topicId: 'T',
  name: 't',
  layouts: [layout(0, 3), ...layouts],
  cuts: [],
})
const view: View = { topic: topicOf(layout(1, 6)), fleet: { members: {} }, position: 9 }

function guard(instances: Record<string, Event[]>): GuardState {
  const ledgers = Object.entries(instances).map(
    ([name, events]) => [name, events.reduce(reduceLedger, newLedger(name, 0))] as const,
  )
  return { ...newGuard('b', times), view, ledgers: new Map(ledgers), ends: { 0: 4 } }
}

void test('a proxy that stops names who wrote, by which layout each is clean, and who was gone before', () => {
  const said = departure(guard({ old: [...open, close], new: [...open, shown, close] }), 10_001, at(12_000))
  assert.deepEqual(said?.instances, { old: 0, new: 1 })
  assert.deepEqual(said?.gone, ['old', 'new'])
  assert.deepEqual(said?.ends, { 0: 4 })
  assert.deepEqual(departure(guard({ old: [...open, close] }), 9999, at(12_000))?.gone, [])
})

void test('it says nothing of those that left long ago', () => {
  const later = 10_000 + times.goneAfterMs
  assert.deepEqual(departure(guard({ old: [...open, close] }), later, at(later))?.instances, {})
})

void test('it vouches for nothing while a connection is open or a batch is held, unanswered or to come back', () => {
  assert.equal(departure(guard({ x: open }), 0, at(12_000)), undefined)
  const owing: Event = { type: 'refused', mark: 'n', age: 0, oldest: 0, atMs: 9000 }
  assert.equal(departure(guard({ x: [...open, owing, close] }), 0, at(12_000)), undefined)
  const batch = {
    id: '1',
    instance: 'x',
    partition: 0,
    connection: 'c',
    mark: '',
    hashes: [],
    hasRoom: true,
    mayRefuse: true,
  }
  const flying = new Map([['1', { batch, age: 0 }]])
  assert.equal(departure({ ...guard({ x: [...open, close] }), flying }, 0, at(12_000)), undefined)
})

void test('it is waited for until its writers are seen elsewhere, and as long as they may reconnect in part', () => {
  const left: LeftRecord = {
    kind: 'left',
    proxy: 'b',
    topicId: 'T',
    sinceMs: 0,
    instances: { x: 0 },
    gone: [],
    ends: {},
  }
  const { topicId } = view.topic
  const member = { host: '', registeredAt: 0, expelledAt: 8, expelledAtMs: 5000, hasLeft: true } as const
  const until = (instances: string[], fleet: FleetState): number => {
    const votes = { a: { at: 9, ballot: 1, instances, ends: {} } }
    const changed = { ...layout(1, 6), votes }
    const state = { ...topicOf(changed), left: { b: { ...left, at: 7, atMs: 5000 } } }
    return waitedUntil({ topic: state, fleet, position: 9 }, changed, 'b', times)
  }
  const fleet = (wroteTo?: string[]): FleetState => ({
    members: { b: { ...member, ...(wroteTo === undefined ? {} : { wroteTo }) } },
  })
  assert.equal(until([], fleet([topicId])), 5000 + times.goneAfterMs)
  assert.equal(until(['x'], fleet([topicId])), 5000 + times.comeBackMs)
  assert.equal(until([], fleet([])), -Infinity)
  assert.equal(until(['x'], fleet()), 5000 + times.goneAfterMs)
})

void test('one that left another proxy a moment ago is quiet only when it had time to make all its connections', () => {
  const at = 200_000
  const left = { at: 7, atMs: at - 30_000, sinceMs: 0, instances: { x: 0, y: 0 }, gone: ['y'], ends: {} }
  const guarded: GuardState = { ...guard({}), view: { ...view, topic: { ...view.topic, left: { a: left } } } }
  const since = (instance: string, atMs: number): boolean => {
    const events: GuardEvent[] = [
      { type: 'connected', instance, connection: '1' },
      { type: 'writer', instance, wrote: true },
      { type: 'shown', instance, epoch: 1 },
    ]
    const state = events.reduce((sum, event) => reduceGuard(sum, { ...event, atMs: at })[0], guarded)
    return isClean(state.ledgers.get(instance) ?? assert.fail(), 1, atMs, times)
  }
  const { comeBackMs, quietMs } = times
  assert.deepEqual([since('x', at + quietMs), since('y', at + quietMs), since('z', at + quietMs)], [false, true, true])
  assert.equal(since('x', at + comeBackMs + quietMs), true)
})
