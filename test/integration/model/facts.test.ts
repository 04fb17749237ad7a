/**
 * The broker model against Apache Kafka: each fact is a scripted conversation, played on both, whose outcome must be the
 * stated one on both. A fact that fails on Kafka is a wrong fact; one that fails on the model is a wrong model.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { sharedKafka, type SharedKafka } from '../../kafka/shared.ts'
import { commitFacts } from './commits.ts'
import { edgeFacts } from './edges.ts'
import { groupFacts } from './groups.ts'
import { logFacts } from './logs.ts'
import { Side } from './side.ts'
import { transactionFacts } from './transactions.ts'

const suites = {
  groups: groupFacts,
  commits: commitFacts,
  logs: logFacts,
  transactions: transactionFacts,
  edges: edgeFacts,
}
let kafka: SharedKafka
let model: FakeBroker
let sides: { kafka: Side; model: Side }

before(async () => {
  const runtime = await nodeRuntime()
  kafka = await sharedKafka()
  model = await FakeBroker.start(runtime, { autoCreatePartitions: 0, minSessionTimeoutMs: 6000 })
  sides = {
    kafka: new Side(runtime, kafka.bootstrap.split(',')[0] ?? ''),
    model: new Side(runtime, model.bootstrap[0] ?? ''),
  }
})

after(async () => {
  sides.kafka.close()
  sides.model.close()
  await model.stop()
  await kafka.stop()
})

for (const [name, facts] of Object.entries(suites)) {
  describe(name, () => {
    for (const { name: what, outcome, play } of facts) {
      test(what, async () => {
        const [real, modelled] = await Promise.allSettled([play(sides.kafka), play(sides.model)])
        if (real.status === 'rejected') throw new Error('on Kafka', { cause: real.reason })
        assert.deepEqual(real.value, outcome, 'Kafka')
        if (modelled.status === 'rejected') throw new Error('on the model', { cause: modelled.reason })
        assert.deepEqual(modelled.value, outcome, 'the model')
      })
    }
  })
}
