/** Ids that were deleted, and when the log may forget them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeletedTopics } from '../../../../../src/features/layouts/shell/deleted-topics.ts'
import { GONE_AFTER_MS, GoneTopics } from '../../../../../src/features/layouts/shell/gone-topics.ts'
import { FakeCluster } from '../../../../support/fake-cluster.ts'
import { FakeStateLog } from '../../../../support/fake-state.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

async function knowing(...topicIds: string[]) {
  const runtime = new VirtualRuntime()
  const cluster = new FakeCluster()
  const state = new FakeStateLog(runtime).join()
  await runtime.run(() => state.mayAct())
  for (const topicId of topicIds)
    state.append({ kind: 'topic', proxy: state.proxy, topicId, name: topicId.toLowerCase(), count: 1 })
  await runtime.run(() => state.topicIds().length === topicIds.length)
  return { gone: new GoneTopics(state, cluster), cluster }
}

test('a topic that the cluster has not had for long is gone, after it was asked for by name', async () => {
  const { gone, cluster } = await knowing('A', 'B')
  const there = new Set(['B'])
  await gone.listed(there, 0)
  await gone.listed(there, GONE_AFTER_MS - 1)
  assert.deepEqual([gone.has('A'), cluster.asked], [false, []])
  await gone.listed(there, GONE_AFTER_MS)
  assert.deepEqual([gone.has('A'), gone.has('B')], [true, false])
  await gone.listed(new Set(['A', 'B']), GONE_AFTER_MS + 1)
  assert.equal(gone.has('A'), false, 'it is back')
})

test('a topic that our own user may not see, or that is there after all, is not gone', async () => {
  const { gone, cluster } = await knowing('A')
  cluster.fail = true
  for (let i = 0; i < 4; i++) await gone.listed(new Set(), i * GONE_AFTER_MS)
  cluster.fail = false
  cluster.topic('a', 'A', 1)
  for (let i = 4; i < 8; i++) await gone.listed(new Set(), i * GONE_AFTER_MS)
  assert.equal(gone.has('A'), false)
  cluster.topic('a', 'other', 1)
  await gone.listed(new Set(), 9 * GONE_AFTER_MS)
  assert.equal(gone.has('A'), true)
})

test('a deleted id comes back only after a while, and if nothing contradicts it', () => {
  const deleted = new DeletedTopics()
  deleted.add('A', 'a', 0)
  assert.deepEqual(
    [10_000, 20_000, 29_999].map((ms) => deleted.mayReturn('A', ms)),
    [false, false, false],
  )
  deleted.contradicted('a')
  assert.deepEqual(
    [40_000, 50_000, 60_000].map((ms) => deleted.mayReturn('A', ms)),
    [false, false, true],
  )
  assert.equal(deleted.has('A'), false)
})

test('deleted ids are forgotten: old ones that the log does not know, and the oldest of very many', () => {
  const deleted = new DeletedTopics()
  for (let i = 0; i < 20_000; i++) deleted.add(`id${i}`, 'a', 0)
  assert.equal(deleted.size, 10_000)
  deleted.prune(new Set(['id19999']), 3_599_999)
  assert.equal(deleted.size, 10_000)
  deleted.prune(new Set(['id19999']), 3_600_000)
  assert.deepEqual([deleted.size, deleted.has('id19999')], [1, true])
})
