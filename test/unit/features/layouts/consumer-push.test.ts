import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MemberShare } from '../../../../src/editors/groups/policy.ts'
import { FETCHES_MS, learnerOf, pushAtHeartbeat } from '../../../../src/features/layouts/consumer-push.ts'
import { withMissing } from '../../../../src/features/layouts/missing-partitions.ts'

const learner = 'refreshes-when-refused'
/** The leader of three members, stale for long, whose assignment leaves new partitions out. */
const facts = { learner, isStale: true, forMs: FETCHES_MS, leads: 3, leavesOut: true, isIdle: false } as const

test('families are told apart by what they say of themselves, kafkajs by its assignor', () => {
  const names = ['sarama', 'confluent-kafka-python', 'librdkafka', 'platformatic-kafka', 'kgo', 'apache-kafka-java', '']
  const join = 'refreshes-at-join'
  assert.deepEqual(
    names.map((name) => learnerOf(name, 'range')),
    [join, join, join, 'fails-on-unknown', 'refreshes-at-fetch', learner, learner],
  )
  assert.equal(learnerOf('', 'RoundRobinAssigner'), join)
})

test('a leader that refreshes as it joins is made to at once, and only while its assignment leaves something out', () => {
  const eager = { ...facts, learner: 'refreshes-at-join', forMs: 0 } as const
  assert.equal(pushAtHeartbeat(eager), 'rejoin')
  assert.equal(pushAtHeartbeat({ ...eager, leavesOut: false }), undefined)
  assert.equal(pushAtHeartbeat({ ...eager, leads: 0 }), undefined)
})

test('others are left to their Fetch, unless they have none', () => {
  assert.equal(pushAtHeartbeat({ ...facts, forMs: 0 }), undefined)
  assert.equal(pushAtHeartbeat({ ...facts, forMs: 0, isIdle: true }), 'close')
  assert.equal(pushAtHeartbeat({ ...facts, forMs: 0, isIdle: true, learner: 'refreshes-at-fetch' }), 'complete')
  assert.equal(pushAtHeartbeat(facts), 'close')
  assert.equal(pushAtHeartbeat({ ...facts, isStale: false, forMs: 0 }), undefined)
  assert.equal(pushAtHeartbeat({ ...facts, isStale: false }), 'rejoin')
  assert.equal(pushAtHeartbeat({ ...facts, leads: 0, isIdle: true }), undefined)
})

test('one that fails on what it does not know refreshes first, and joins again only if it is alone', () => {
  const frail = { ...facts, learner: 'fails-on-unknown', leads: 1 } as const
  assert.equal(pushAtHeartbeat({ ...frail, forMs: 0 }), undefined)
  assert.equal(pushAtHeartbeat({ ...frail, forMs: 0, isIdle: true, leads: 0 }), 'refresh')
  assert.equal(pushAtHeartbeat(frail), 'refresh')
  assert.equal(pushAtHeartbeat({ ...frail, isStale: false }), 'rejoin')
  assert.equal(pushAtHeartbeat({ ...frail, isStale: false, leads: 2 }), undefined)
})

test('missing partitions go to subscribers with least to do', () => {
  const share = (member: string, partitions: number[], topics = ['t']): MemberShare => ({
    member,
    topics,
    assigned: { t: partitions },
    owned: {},
  })
  const shares = [share('a', [0, 1]), share('b', [2]), share('c', [], ['other'])]
  assert.deepEqual(
    withMissing(shares, 't', 6).map(({ assigned }) => assigned['t']),
    [[0, 1, 4], [2, 3, 5], []],
  )
  assert.equal(withMissing(shares, 't', 3), shares)
  assert.equal(withMissing(shares, 'other', 3), shares)
})

test('a partition that a cooperative leader leaves out while it moves is given to nobody else', () => {
  const owner = { member: 'a', topics: ['t'], assigned: { t: [0] }, owned: { t: [0, 1] } }
  const starter = { member: 'b', topics: ['t'], assigned: {}, owned: {} }
  assert.deepEqual(
    withMissing([owner, starter], 't', 4).map(({ assigned }) => assigned['t']),
    [[0, 3], [2]],
  )
})
