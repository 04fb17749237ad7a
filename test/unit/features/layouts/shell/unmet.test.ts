/** Batches of topics that nobody could find. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProduceLane } from '../../../../../src/editors/produce/lane.ts'
import type { GuardContext } from '../../../../../src/features/layouts/shell/context.ts'
import { Guards } from '../../../../../src/features/layouts/shell/guards.ts'
import type { Topics } from '../../../../../src/features/layouts/shell/topics.ts'
import { Writers } from '../../../../../src/features/layouts/shell/writers.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

const ignored = (): void => undefined

/** What becomes of a batch of a topic that may have a rule, and what the proxy vouches for when it stops after that. */
async function passed(mayBeRuled: boolean) {
  const runtime = new VirtualRuntime()
  const context = {
    runtime,
    writers: new Writers(() => 'w'),
    state: { proxy: 'p', onChange: ignored, mayAct: () => true },
    wake: () => guards.wake(),
  } as unknown as GuardContext
  let isRuled = true
  const topics = {
    onTopic: ignored,
    onNamed: ignored,
    onSeen: ignored,
    find: () => undefined,
    mayBeRuled: () => isRuled,
  } as unknown as Topics
  const guards = new Guards(context, topics)
  const lane = { connection: {} } as unknown as ProduceLane
  const batch = {
    lane,
    topic: 't',
    topicId: '',
    partition: 0,
    transactionalId: null,
    acks: -1,
    records: Buffer.alloc(1),
  }
  const kinds: string[] = []
  guards.admit([batch], (_, { kind }) => kinds.push(kind))
  assert.equal(guards.departure(0), undefined, 'it waits')
  isRuled = mayBeRuled
  await runtime.run(() => kinds.length > 0, 20_000)
  return { kinds, departure: guards.departure(0) }
}

test('a proxy that let a batch pass of a topic it could not find vouches for nothing when it stops', async () => {
  assert.deepEqual(await passed(true), { kinds: ['forward'], departure: undefined })
  assert.deepEqual(await passed(false), { kinds: ['forward'], departure: { wroteTo: [], records: [] } })
})
