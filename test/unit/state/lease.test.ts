import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseHolds, newLease, reduceLease } from '../../../src/state/lease.ts'

const at = (ms: number, wallMs = ms) => ({ monotonicMs: ms, wallMs })
const fresh = () => {
  let lease = reduceLease(newLease(10_000), { type: 'member', member: true })
  lease = reduceLease(lease, { type: 'read', sent: at(1_000) })
  return reduceLease(lease, { type: 'heartbeat', sent: at(1_000) })
}

void test('the lease lasts half a session after the last read and heartbeat were sent', () => {
  assert.equal(leaseHolds(fresh(), at(5_999)), true)
  assert.equal(leaseHolds(fresh(), at(6_000)), false)
})

void test('a read alone, or a heartbeat alone, does not extend it', () => {
  assert.equal(leaseHolds(reduceLease(fresh(), { type: 'read', sent: at(5_000) }), at(7_000)), false)
  assert.equal(leaseHolds(reduceLease(fresh(), { type: 'heartbeat', sent: at(5_000) }), at(7_000)), false)
})

void test('both clocks count: a machine that slept has lost its lease', () => {
  assert.equal(leaseHolds(fresh(), at(2_000, 9_000)), false)
  assert.equal(leaseHolds(fresh(), at(9_000, 2_000)), false)
})

void test('an answer that overtook another does not set the lease back', () => {
  const lease = reduceLease(fresh(), { type: 'read', sent: at(500) })
  assert.equal(leaseHolds(lease, at(5_999)), true)
})

void test('without a registration read back, or after an expulsion, there is none', () => {
  assert.equal(leaseHolds(reduceLease(fresh(), { type: 'member', member: false }), at(1_001)), false)
  assert.equal(leaseHolds(reduceLease(newLease(10_000), { type: 'member', member: true }), at(0)), false)
})
