import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreatePartitionsEditor } from '../../../../src/editors/create-partitions/editor.ts'
import type {
  PartitionAnswer,
  PartitionPolicy,
  PartitionRequest,
} from '../../../../src/editors/create-partitions/policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codec } from '../../../../src/protocol/codecs.ts'
import { errorCodes } from '../../../../src/protocol/error-codes.ts'
import type {
  CreatePartitionsRequest,
  CreatePartitionsResponse,
} from '../../../../src/protocol/generated/37-create-partitions.ts'
import { peekBodyStart } from '../../../../src/protocol/peek.ts'
import { Reader } from '../../../../src/protocol/reader.ts'
import { codecRequest, codecResponse, openResponse } from '../../../support/codec-frames.ts'
import { Rig } from '../../../support/rig.ts'

const { CreatePartitions } = apiKeys
const api = codec(CreatePartitions)
type Asked = CreatePartitionsRequest['topics'][number]

/** Guards `orders…`; each change is granted as soon as its partitions are created. */
class TestPolicy implements PartitionPolicy {
  readonly raised: PartitionRequest[] = []
  existing = 3
  answer: () => Promise<PartitionAnswer> = async () => ({ errorCode: 0, errorMessage: null })

  guards(topic: string): boolean {
    return topic.startsWith('orders')
  }

  async exists(): Promise<number> {
    return this.existing
  }

  async raise(request: PartitionRequest): Promise<PartitionAnswer> {
    this.raised.push(request)
    try {
      await request.create()
    } catch (error) {
      return { errorCode: errorCodes.UNKNOWN_SERVER_ERROR, errorMessage: (error as Error).message }
    }
    return this.answer()
  }
}

interface Setting {
  policy?: TestPolicy
  /** What the broker says to a topic. */
  broker?: (topic: Asked, validateOnly: boolean) => { errorCode: number; errorMessage?: string }
  version?: number
}

async function ask(draft: Partial<CreatePartitionsRequest>, setting: Setting = {}) {
  const { policy = new TestPolicy(), broker = () => ({ errorCode: 0 }), version = 3 } = setting
  const seen: CreatePartitionsRequest[] = []
  const rig = await Rig.start({
    handlers: [new CreatePartitionsEditor(policy)],
    broker: (peer) => {
      peer.onFrame = (frame) => {
        const request = api.decodeRequest(new Reader(frame, peekBodyStart(frame, 4, frame.length)), version)
        seen.push(request)
        const results = request.topics.map((topic) => ({ name: topic.name, ...broker(topic, request.validateOnly) }))
        peer.send(codecResponse(CreatePartitions, version, frame.readInt32BE(8), { results }))
      }
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  client.send(codecRequest(CreatePartitions, version, 77, { timeoutMs: 5000, ...draft }))
  await rig.run(() => client.frames.length > 0 || client.closed)
  const frame = client.frames[0]
  assert.ok(frame, 'no answer')
  assert.equal(frame.readInt32BE(4), 77)
  const { results } = openResponse(CreatePartitions, version, frame) as CreatePartitionsResponse
  return { policy, seen, results: results.map(({ name, errorCode, errorMessage }) => [name, errorCode, errorMessage]) }
}

const topic = (name: string, count: number, assignments: Asked['assignments'] = null): Asked => ({
  name,
  count,
  assignments,
})
const steps = (seen: CreatePartitionsRequest[]) =>
  seen.map(({ topics, validateOnly }) => [
    validateOnly ? 'validate' : 'create',
    ...topics.map(({ name, count }) => `${name}=${count}`),
  ])

for (const version of [0, 1, 2, 3]) {
  test(`v${version}: validated first, then changed, and created on the client's own connection`, async () => {
    const { seen, results, policy } = await ask({ topics: [topic('orders', 6)] }, { version })
    assert.deepEqual(results, [['orders', 0, null]])
    assert.deepEqual(steps(seen), [
      ['validate', 'orders=6'],
      ['create', 'orders=6'],
    ])
    assert.deepEqual(
      policy.raised.map(({ topic: name, count, assigned }) => [name, count, assigned]),
      [['orders', 6, false]],
    )
  })
}

test('what the broker does not allow goes back unchanged, and nothing is begun', async () => {
  const broker = () => ({ errorCode: errorCodes.TOPIC_AUTHORIZATION_FAILED, errorMessage: 'no' })
  const { seen, results, policy } = await ask({ topics: [topic('orders', 6)] }, { broker })
  assert.deepEqual(results, [['orders', errorCodes.TOPIC_AUTHORIZATION_FAILED, 'no']])
  assert.equal(policy.raised.length, 0)
  assert.deepEqual(steps(seen), [['validate', 'orders=6']])
})

test('other topics pass, alone or in the same request; answers keep the order asked in', async () => {
  const alone = await ask({ topics: [topic('logs', 4)] })
  assert.deepEqual(steps(alone.seen), [['create', 'logs=4']])
  const mixed = await ask(
    { topics: [topic('a', 4), topic('orders', 6), topic('z', 9)] },
    { broker: ({ name }) => ({ errorCode: name === 'z' ? errorCodes.INVALID_PARTITIONS : 0 }) },
  )
  assert.deepEqual(
    mixed.results.map(([name, code]) => [name, code]),
    [
      ['a', 0],
      ['orders', 0],
      ['z', errorCodes.INVALID_PARTITIONS],
    ],
  )
  assert.deepEqual(
    steps(mixed.seen).filter(([what, ...names]) => what === 'create' && names.length > 1),
    [['create', 'a=4', 'z=9']],
  )
})

test('what is only to be validated passes', async () => {
  const { seen, policy } = await ask({ topics: [topic('orders', 6)], validateOnly: true })
  assert.deepEqual(steps(seen), [['validate', 'orders=6']])
  assert.equal(policy.raised.length, 0)
})

test('hidden partitions that exist are not created again; the right is still asked for', async () => {
  const policy = new TestPolicy()
  policy.existing = 6
  const { seen, results } = await ask({ topics: [topic('orders', 6)] }, { policy })
  assert.deepEqual(results, [['orders', 0, null]])
  assert.deepEqual(steps(seen), [['validate', 'orders=7']])
})

test('assignments go to the broker, for the partitions that are missing', async () => {
  const policy = new TestPolicy()
  policy.existing = 4
  const assignments = [[1], [2], [3]].map((brokerIds) => ({ brokerIds }))
  const { seen } = await ask({ topics: [topic('orders', 6, assignments)] }, { policy })
  assert.equal(policy.raised[0]?.assigned, true)
  assert.deepEqual(
    seen.map(({ topics }) => topics[0]?.assignments?.map(({ brokerIds }) => brokerIds)),
    [
      [[2], [3]],
      [[2], [3]],
    ],
  )
})

test('a creation that fails after all is told', async () => {
  const broker = (_: Asked, validateOnly: boolean) =>
    validateOnly ? { errorCode: 0 } : { errorCode: errorCodes.POLICY_VIOLATION, errorMessage: 'too many' }
  const { results } = await ask({ topics: [topic('orders', 6)] }, { broker })
  assert.deepEqual(results, [['orders', errorCodes.UNKNOWN_SERVER_ERROR, 'POLICY_VIOLATION: too many']])
})

test('a client that does not wait longer is answered as by a broker, and the change goes on', async () => {
  const policy = new TestPolicy()
  policy.answer = () => new Promise(() => undefined)
  const { results } = await ask({ topics: [topic('orders', 6)] }, { policy })
  assert.equal(results[0]?.[1], errorCodes.REQUEST_TIMED_OUT)
  assert.match(String(results[0]?.[2]), /goes on, but not within 5000 ms/)
})

test('a cluster that cannot be asked is no silence', async () => {
  const policy = new TestPolicy()
  policy.exists = () => Promise.reject(new Error('no broker answers'))
  const { results } = await ask({ topics: [topic('orders', 6)] }, { policy })
  assert.deepEqual(results, [['orders', errorCodes.REQUEST_TIMED_OUT, 'no broker answers']])
})
