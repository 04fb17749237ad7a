import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MemberShare } from '../../../../../src/editors/groups/policy.ts'
import { MarkedBalance } from '../../../../../src/features/layouts/shell/marked.ts'
import type { LayoutTopic, LayoutTopics } from '../../../../../src/features/layouts/topic-rule.ts'
import { RecordingLog } from '../../../../support/telemetry.ts'

function topics(counts: readonly number[]): LayoutTopics {
  const layouts = counts.map((count, epoch) => ({ epoch, count }))
  const topic = { name: 't', topicId: 'T', view: () => ({ topic: { layouts, cuts: [] } }) } as unknown as LayoutTopic
  const rule = (): undefined => undefined
  return {
    isLoaded: true,
    mayBeRuled: () => false,
    onNamed: () => undefined,
    rule,
    find: (name) => (name === 't' ? topic : undefined),
    all: () => [topic],
  }
}

const share = (member: string, partitions: number[]): MemberShare => ({
  member,
  topics: ['t'],
  assigned: { t: partitions },
  owned: {},
})
const shares = [share('a', [0, 1, 2]), share('b', [3, 4]), share('c', [5])]

void test('marked are the partitions that only an earlier layout had', () => {
  const log = new RecordingLog()
  assert.equal(new MarkedBalance(topics([3, 6]), log).watches(), false)
  const balance = new MarkedBalance(topics([6, 3]), log)
  assert.equal(balance.watches(), true)
  const after = balance.plan('g', 'roundrobin', shares).map(({ assigned }) => assigned.t)
  assert.deepEqual(after, [
    [0, 4],
    [1, 3],
    [2, 5],
  ])
})

void test('other assignors are left alone, which is said once for each group', () => {
  const log = new RecordingLog()
  const balance = new MarkedBalance(topics([6, 3]), log)
  assert.equal(balance.plan('g', 'my-own', shares), shares)
  assert.equal(balance.plan('g', 'my-own', shares), shares)
  assert.equal(log.lines.length, 1)
})
