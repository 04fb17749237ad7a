/** Batches of topics that nobody could find. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProduceLane } from '../../../../../src/editors/produce/lane.ts'
import type { GuardContext } from '../../../../../src/features/layouts/shell/context.ts'
import { Guards } from '../../../../../src/features/layouts/shell/guards.ts'
import type { Topics } from '../../../../../src/features/layouts/shell/topics.ts'
import { Writers } from '../../../../../src/features/layouts/shell/writers.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { codec } from '../../../../../src/protocol/codecs.ts'
import { requestBytes } from '../../../../../src/protocol/encode.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

const ignored = (): void => undefined

/** A proxy that knows no topic; whether they may have a rule is for the test to say. */
function unmet() {
  const runtime = new VirtualRuntime()
  const context = {
    runtime,
    writers: new Writers(() => 'w'),
    state: { proxy: 'p', onChange: ignored, mayAct: () => true },
    wake: () => guards.wake(),
  } as unknown as GuardContext
  const known = { isRuled: true, asked: 0 }
  const topics = {
    onTopic: ignored,
    onNamed: ignored,
    onSeen: ignored,
    find: () => undefined,
    mayBeRuled: () => {
      known.asked++
      return known.isRuled
    },
  } as unknown as Topics
  const guards = new Guards(context, topics)
  const lane = { connection: {} } as unknown as ProduceLane
  const verdicts: string[] = []
  const admit = (name: string): void => {
    const records = Buffer.alloc(1)
    const batch = { lane, topic: 't', topicId: '', partition: 0, transactionalId: null, acks: -1, records }
    const [admitted] = guards.admit([batch], (_, { kind }) => verdicts.push(`${name} ${kind}`))
    if (admitted === undefined) verdicts.push(`${name} passes`)
  }
  /** Whether a request with a batch of the topic is opened. */
  const opens = (): boolean => {
    const topicData = [{ name: 't', partitionData: [{ index: 0, records: Buffer.alloc(1) }] }]
    const body = requestBytes(codec(apiKeys.Produce), { acks: -1, topicData }, 8)
    return guards.opens(lane, 8, body, 0, body.length)
  }
  return { runtime, guards, known, verdicts, admit, opens }
}

test('a proxy that let a batch pass of a topic it could not find vouches for nothing when it stops', async () => {
  for (const mayBeRuled of [true, false]) {
    const { runtime, guards, known, verdicts, admit } = unmet()
    admit('a')
    assert.equal(guards.departure(0), undefined, 'it waits')
    known.isRuled = mayBeRuled
    await runtime.run(() => verdicts.length > 0, 20_000)
    assert.deepEqual(verdicts, ['a forward'])
    assert.deepEqual(guards.departure(0), mayBeRuled ? undefined : { wroteTo: [], records: [] })
  }
})

test('what was found to have no rule lets what waits for that go first', () => {
  const { known, verdicts, admit, opens } = unmet()
  admit('a')
  known.isRuled = false
  assert.equal(opens(), false)
  assert.deepEqual(verdicts, ['a forward'])
})

test('as long as one batch of a topic waits, those behind it wait', () => {
  const { known, verdicts, admit, opens } = unmet()
  admit('a')
  admit('b')
  const before = known.asked
  assert.equal(opens(), true)
  admit('c')
  assert.equal(known.asked, before + 1, 'one answer holds for all of them')
  assert.deepEqual(verdicts, [])
  known.isRuled = false
  opens()
  assert.deepEqual(verdicts, ['a forward', 'b forward', 'c forward'])
})
