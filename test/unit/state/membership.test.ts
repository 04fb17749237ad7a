import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyFleet, emptyFleet } from '../../../src/state/fleet.ts'
import {
  assign,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
} from '../../../src/state/group-protocol.ts'
import { type MembershipEvent, newMembership, reduceMembership } from '../../../src/state/membership.ts'

const fleetOf = (...proxies: string[]) =>
  proxies.reduce((fleet, proxy, at) => applyFleet(fleet, { kind: 'register', proxy, host: proxy }, at, 0), emptyFleet)
const assigned = (...members: string[]): MembershipEvent => ({ type: 'assigned', assignment: { leader: 'a', members } })

function run(events: (MembershipEvent & { atMs: number })[]) {
  let state = newMembership({ proxy: 'a', host: 'host' }, 10_000, 1000)
  return events.map((event) => {
    const [next, effects] = reduceMembership(state, event)
    state = next
    return effects
  })
}

void test('registers until its registration is read back', () => {
  const effects = run([
    { type: 'fleet', fleet: emptyFleet, atMs: 0 },
    { type: 'tick', atMs: 500 },
    { type: 'tick', atMs: 1000 },
    { type: 'fleet', fleet: fleetOf('a'), atMs: 2000 },
  ])
  const register = [{ type: 'append', record: { kind: 'register', proxy: 'a', host: 'host' } }]
  assert.deepEqual(effects, [register, [], register, []])
})

void test('the leader expels a member a full time-out after it first missed it, not sooner', () => {
  const effects = run([
    { type: 'fleet', fleet: fleetOf('a', 'b'), atMs: 0 },
    { ...assigned('a', 'b'), atMs: 0 },
    { ...assigned('a'), atMs: 5000 },
    { type: 'tick', atMs: 14_999 },
    { type: 'tick', atMs: 15_000 },
  ])
  assert.deepEqual(effects.slice(0, 4), [[], [], [], []])
  assert.deepEqual(effects[4], [{ type: 'append', record: { kind: 'expel', proxy: 'a', expelled: 'b' } }])
})

void test('one that comes back, or a leader that loses its own place, starts the wait again', () => {
  const effects = run([
    { type: 'fleet', fleet: fleetOf('a', 'b'), atMs: 0 },
    { ...assigned('a'), atMs: 0 },
    { ...assigned('a', 'b'), atMs: 5000 },
    { ...assigned('a'), atMs: 8000 },
    { type: 'lost', atMs: 12_000 },
    { ...assigned('a'), atMs: 13_000 },
    { type: 'tick', atMs: 22_999 },
  ])
  assert.deepEqual(effects.flat(), [])
})

void test('who is not the leader expels nobody', () => {
  const effects = run([
    { type: 'fleet', fleet: fleetOf('a', 'b'), atMs: 0 },
    { type: 'assigned', assignment: { leader: 'c', members: ['a', 'c'] }, atMs: 0 },
    { type: 'tick', atMs: 60_000 },
  ])
  assert.deepEqual(effects.flat(), [])
})

void test('an expelled proxy begins anew and writes nothing', () => {
  const fleet = applyFleet(fleetOf('a', 'b'), { kind: 'expel', proxy: 'b', expelled: 'a' }, 5, 0)
  assert.deepEqual(run([{ type: 'fleet', fleet, atMs: 0 }]), [[{ type: 'restart' }]])
})

void test('contents of the group protocol survive, foreign ones are refused', () => {
  const subscription = { proxy: 'a', host: 'h:1' }
  assert.deepEqual(decodeSubscription(encodeSubscription(subscription)), subscription)
  const assignment = assign('b', [{ proxy: 'b', host: '' }, subscription])
  assert.deepEqual(assignment, { leader: 'b', members: ['a', 'b'] })
  assert.deepEqual(decodeAssignment(encodeAssignment(assignment)), assignment)
  const bytes = (text: string) => new TextEncoder().encode(text)
  assert.throws(() => decodeAssignment(bytes('\u0000')), { code: 'HG_STATE_FOREIGN' })
  assert.throws(() => decodeAssignment(bytes('{"v":2,"leader":"a","members":[]}')), { code: 'HG_STATE_VERSION' })
  assert.throws(() => decodeAssignment(bytes('{"v":1,"leader":"a"}')), { code: 'HG_STATE_INVALID' })
  assert.throws(() => decodeSubscription(bytes('{"v":1}')), { code: 'HG_STATE_INVALID' })
})
