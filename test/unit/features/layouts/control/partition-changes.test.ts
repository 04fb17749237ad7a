import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PartitionChanges } from '../../../../../src/features/layouts/control/partition-changes.ts'
import { errorCodes } from '../../../../../src/protocol/error-codes.ts'
import { Fleet } from './fleet.ts'

const create = async () => undefined

test('an admin client changes the layout, also to a count that is no multiple', async () => {
  for (const count of [6, 5]) {
    const fleet = await Fleet.of(2)
    const changes = new PartitionChanges(fleet.proxy(1).control)
    assert.equal(changes.guards('orders'), true)
    assert.equal(changes.guards('other'), false)
    assert.equal(await changes.exists('orders'), 3)
    const answer = changes.raise({ client: 'h/admin', topic: 'orders', count, assigned: false, create })
    assert.deepEqual(await fleet.settled(answer), { errorCode: 0, errorMessage: null })
    assert.equal(fleet.proxy(1).count, count)
  }
})

test('each refusal is the error that Kafka has for it, with what to do', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  const changes = new PartitionChanges(a.control)
  const raise = (count: number) =>
    fleet.settled(changes.raise({ client: 'h/admin', topic: 'orders', count, assigned: false, create }))
  assert.equal((await raise(3)).errorCode, errorCodes.INVALID_PARTITIONS)
  assert.equal((await raise(2)).errorCode, errorCodes.INVALID_PARTITIONS)
  b.isReady = false
  const aborted = raise(6)
  const second = await raise(9)
  assert.equal(second.errorCode, errorCodes.REASSIGNMENT_IN_PROGRESS)
  assert.match(second.errorMessage ?? '', /has just been asked for/)
  const first = await aborted
  assert.equal(first.errorCode, errorCodes.REQUEST_TIMED_OUT)
  assert.match(first.errorMessage ?? '', /nothing was changed: these proxies were not ready in time: p1-/)
  b.isReady = true
  b.votes = false
  assert.equal((await raise(6)).errorCode, 0)
  const unsealed = await raise(8)
  assert.equal(unsealed.errorCode, errorCodes.POLICY_VIOLATION)
  assert.match(unsealed.errorMessage ?? '', /is not sealed yet/)
  a.state.disconnect()
  assert.equal((await raise(12)).errorCode, errorCodes.REQUEST_TIMED_OUT)
})
