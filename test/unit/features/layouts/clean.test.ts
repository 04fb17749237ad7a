import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isClean,
  type Ledger,
  type LedgerEvent,
  newLedger,
  reduceLedger,
} from '../../../../src/features/layouts/clean.ts'
import { defaultTimes as times } from '../../../../src/features/layouts/times.ts'

const after = (...events: (LedgerEvent & { atMs: number })[]): Ledger =>
  events.reduce((ledger, event) => reduceLedger(ledger, event), newLedger('i', 0))
const connected = { type: 'connected', connection: '1', epoch: 0, boundMs: 10_000, atMs: 0 } as const
const wrote = { type: 'arrived', mark: 'm0', age: 0, atMs: 0 } as const
const shown = { type: 'shown', epoch: 1, atMs: 1000 } as const

void test('clean three seconds after it was shown the new count, if nothing late came since', () => {
  const ledger = after(connected, wrote, shown)
  assert.equal(isClean(ledger, 1, 3999, times), false)
  assert.equal(isClean(ledger, 1, 4000, times), true)
  const late = reduceLedger(ledger, { type: 'arrived', mark: 'm1', age: 0, atMs: 3000 })
  assert.equal(isClean(late, 1, 5999, times), false)
  assert.equal(isClean(late, 1, 6000, times), true)
  const fresh = reduceLedger(ledger, { type: 'arrived', mark: 'm1', age: 1, atMs: 3000 })
  assert.equal(isClean(fresh, 1, 4000, times), true)
})

void test('a refused batch comes back inside others of a client that places its records anew', () => {
  const refused = { type: 'refused', mark: 'm', age: 0, oldest: 0, atMs: 1500 } as const
  const ledger = after(connected, wrote, shown, refused)
  const other = reduceLedger(ledger, { type: 'arrived', mark: 'x', others: new Set(['y']), age: 1, atMs: 2000 })
  assert.equal(isClean(other, 1, 8000, times), false)
  const back = reduceLedger(other, { type: 'arrived', mark: 'x', others: new Set(['m', 'y']), age: 1, atMs: 2000 })
  assert.equal(isClean(back, 1, 4999, times), false)
  assert.equal(isClean(back, 1, 5000, times), true)
})

void test('never shown: never clean; never wrote: nothing to wait for', () => {
  assert.equal(isClean(after(connected, wrote), 1, 1e6, times), false)
  assert.equal(isClean(after(connected), 1, 0, times), true)
})

void test('a producer that was shown the old count may have placed records by it, before it wrote anything', () => {
  const writer = { type: 'writer', wrote: false, atMs: 0 } as const
  assert.equal(isClean(after(connected, writer), 1, 0, times), true)
  const old = after(connected, writer, { type: 'shown', epoch: 0, atMs: 0 })
  assert.equal(isClean(old, 1, 60_000, times), false)
  const refreshed = reduceLedger(old, { type: 'shown', epoch: 1, atMs: 60_000 })
  assert.equal(isClean(refreshed, 1, 62_999, times), false)
  assert.equal(isClean(refreshed, 1, 63_000, times), true)
  const consumer = after(connected, { type: 'shown', epoch: 0, atMs: 0 })
  assert.equal(isClean(consumer, 1, 0, times), true)
})

void test('one that wrote while its batches were not looked at is waited for like one that was seen to', () => {
  assert.equal(isClean(after(connected, { type: 'writer', wrote: true, atMs: 0 }), 1, 60_000, times), false)
})

void test('an unanswered old batch keeps it unclean, and the quiet begins with its answer', () => {
  const flying = after(connected, wrote, shown, {
    type: 'forwarded',
    id: 'x',
    mark: 'm',
    age: 0,
    oldest: 0,
    atMs: 1000,
  })
  assert.equal(isClean(flying, 1, 60_000, times), false)
  const answered = reduceLedger(flying, { type: 'answered', id: 'x', atMs: 60_000 })
  assert.equal(isClean(answered, 1, 62_999, times), false)
  assert.equal(isClean(answered, 1, 63_000, times), true)
})

void test('a batch that failed is waited for until it returns, ten seconds at most', () => {
  const failed = after(
    connected,
    wrote,
    shown,
    { type: 'forwarded', id: 'x', mark: 'm', age: 0, oldest: 0, atMs: 1000 },
    { type: 'failed', id: 'x', atMs: 2000 },
  )
  assert.equal(isClean(failed, 1, 11_999, times), false)
  assert.equal(isClean(failed, 1, 12_000, times), true)
  const back = reduceLedger(failed, { type: 'arrived', mark: 'm', age: 0, atMs: 7000 })
  assert.equal(isClean(back, 1, 10_000, times), true)
})

void test('its clock stands still while an old partition has no leader', () => {
  const stopped = after(connected, wrote, shown, { type: 'stopped', reason: 'leader 2', atMs: 2000 })
  assert.equal(isClean(stopped, 1, 60_000, times), false)
  const resumed = reduceLedger(stopped, { type: 'resumed', reason: 'leader 2', atMs: 60_000 })
  assert.equal(isClean(resumed, 1, 61_999, times), false)
  assert.equal(isClean(resumed, 1, 62_000, times), true)
})

void test('a connection that is lost and not made again stops it, for the bound only', () => {
  const other = { type: 'connected', connection: '2', epoch: 0, boundMs: 10_000, atMs: 0 } as const
  const lost = after(connected, other, wrote, shown, { type: 'lost', connection: '2', boundMs: 10_000, atMs: 2000 })
  assert.equal(isClean(lost, 1, 13_999, times), false)
  assert.equal(isClean(lost, 1, 14_000, times), true)
})

void test('one that was gone makes its connections again one by one: each may hold a queue until it does', () => {
  const second = { ...connected, connection: '2' }
  const lost = (connection: string, atMs: number) => ({ type: 'lost', connection, boundMs: 10_000, atMs }) as const
  const back = after(connected, second, wrote, shown, lost('1', 2000), lost('2', 2000), { ...connected, atMs: 50_000 })
  assert.equal(isClean(back, 1, 61_999, times), false)
  assert.equal(isClean(back, 1, 62_000, times), true)
  const whole = reduceLedger(back, { ...second, atMs: 51_000 })
  assert.equal(isClean(whole, 1, 52_999, times), false)
  assert.equal(isClean(whole, 1, 53_000, times), true)
})

void test('leaving is not clean: only time, another proxy, or having been clean before ends the wait', () => {
  const lost = { type: 'lost', connection: '1', boundMs: 10_000 } as const
  const unclean = after(connected, wrote, shown, { ...lost, atMs: 2000 })
  assert.equal(isClean(unclean, 1, 121_999, times), false)
  assert.equal(isClean(unclean, 1, 122_000, times), true)
  assert.equal(isClean(reduceLedger(unclean, { type: 'takenOver', atMs: 5000 }), 1, 5000, times), true)
  assert.equal(isClean(after(connected, wrote, shown, { ...lost, atMs: 4500 }), 1, 5000, times), true)
})

void test('what it still owes after leaving may come to its new proxy: ten seconds more', () => {
  const owing = after(
    connected,
    wrote,
    shown,
    { type: 'refused', mark: 'm', age: 0, oldest: 0, atMs: 1500 },
    { type: 'lost', connection: '1', boundMs: 10_000, atMs: 2000 },
    { type: 'takenOver', atMs: 5000 },
  )
  assert.equal(isClean(owing, 1, 14_999, times), false)
  assert.equal(isClean(owing, 1, 15_000, times), true)
})

void test('a batch that fits both layouts and is owed keeps older ones in the queue behind it', () => {
  const alike = { mark: 'm', age: 1, oldest: 0 }
  const failed = after(
    connected,
    wrote,
    shown,
    { type: 'forwarded', id: 'x', ...alike, atMs: 1000 },
    { type: 'failed', id: 'x', atMs: 1100 },
  )
  assert.equal(isClean(failed, 1, 9000, times), false)
  const back = reduceLedger(failed, { type: 'arrived', mark: 'm', age: 1, atMs: 6000 })
  assert.equal(isClean(back, 1, 8999, times), false)
  assert.equal(isClean(back, 1, 9000, times), true)
})

void test('one that never left, because the rest of its request waits, is owed by the new layout only', () => {
  const alike = { type: 'forwarded', id: 'x', mark: 'm', age: 1, oldest: 0, atMs: 1000 } as const
  const withheld = after(connected, wrote, shown, alike, { type: 'withheld', id: 'x', atMs: 1000 })
  assert.equal(isClean(withheld, 1, 4000, times), true)
  assert.equal(withheld.owed.length, 1)
})

void test('one that is answered slowly does so too, one that is answered at once does not', () => {
  const flying = after(connected, wrote, shown, {
    type: 'forwarded',
    id: 'x',
    mark: 'm',
    age: 1,
    oldest: 0,
    atMs: 4000,
  })
  assert.equal(isClean(flying, 1, 4499, times), true)
  assert.equal(isClean(flying, 1, 4500, times), false)
  const quick = reduceLedger(flying, { type: 'answered', id: 'x', atMs: 4100 })
  assert.equal(isClean(quick, 1, 4100, times), true)
  const slow = reduceLedger(flying, { type: 'answered', id: 'x', atMs: 6000 })
  assert.equal(isClean(slow, 1, 8999, times), false)
  assert.equal(isClean(slow, 1, 9000, times), true)
})

void test('what comes back as part of another batch has come back', () => {
  const owing = after(connected, wrote, shown, { type: 'refused', mark: 'm', age: 0, oldest: 0, atMs: 1500 })
  assert.equal(isClean(owing, 1, 9000, times), false)
  const back = reduceLedger(owing, { type: 'arrived', mark: 'x', others: new Set(['y', 'm']), age: 1, atMs: 2000 })
  assert.equal(isClean(back, 1, 4999, times), false)
  assert.equal(isClean(back, 1, 5000, times), true)
})
