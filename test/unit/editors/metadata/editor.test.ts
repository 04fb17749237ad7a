import assert from 'node:assert/strict'
import test from 'node:test'
import { AddressEditor } from '../../../../src/editors/metadata/editor.ts'
import { apiByKey, apiKeys, apiName, carriesAddresses, isFlexible } from '../../../../src/protocol/api-table.ts'
import {
  type AnswerShape,
  clusterAnswer,
  coordinatorAnswer,
  metadataAnswer,
  quorumAnswer,
  shareAcknowledgeAnswer,
  shareFetchAnswer,
} from '../../../support/answers.ts'
import { replyTo } from '../../../support/answering-rig.ts'
import { codecResponse, openResponse } from '../../../support/codec-frames.ts'
import { FakeAddresses } from '../../../support/fake-addresses.ts'
import { sized } from '../../../support/frames.ts'
import { Prng } from '../../../support/prng.ts'

interface Node {
  nodeId?: number
  brokerId?: number
  host: string
  port: number
}

type Replace = (node: Node) => Node | undefined

/** What is done to each kind of answer, on its decoded form. */
const kinds: [
  apiKey: number,
  make: (prng: Prng, version: number, shape: AnswerShape) => object,
  replace: (body: never, to: Replace) => void,
][] = [
  [
    apiKeys.Metadata,
    metadataAnswer,
    (body: { brokers: Node[] }, to) => (body.brokers = body.brokers.flatMap((node) => to(node) ?? [])),
  ],
  [
    apiKeys.DescribeCluster,
    clusterAnswer,
    (body: { brokers: Node[] }, to) => (body.brokers = body.brokers.flatMap((node) => to(node) ?? [])),
  ],
  [apiKeys.FindCoordinator, coordinatorAnswer, replaceCoordinators],
  [apiKeys.DescribeQuorum, quorumAnswer, replaceQuorum],
  [
    apiKeys.ShareFetch,
    shareFetchAnswer,
    (body: { nodeEndpoints: Node[] }, to) =>
      (body.nodeEndpoints = body.nodeEndpoints.flatMap((node) => to(node) ?? [])),
  ],
  [
    apiKeys.ShareAcknowledge,
    shareAcknowledgeAnswer,
    (body: { nodeEndpoints: Node[] }, to) =>
      (body.nodeEndpoints = body.nodeEndpoints.flatMap((node) => to(node) ?? [])),
  ],
]

type Coordinator = Node & { errorCode: number }

function replaceCoordinators(body: Coordinator & { coordinators: Coordinator[] }, to: Replace): void {
  const change = (one: Coordinator): void => {
    if (one.host === '') return
    Object.assign(one, to(one) ?? { nodeId: -1, host: '', port: -1, errorCode: 15 })
  }
  change(body)
  body.coordinators.forEach(change)
}

function replaceQuorum(body: { nodes: { nodeId: number; listeners: Node[] }[] }, to: Replace): void {
  for (const node of body.nodes)
    node.listeners = node.listeners.flatMap((one) => {
      const shown = to({ ...one, nodeId: node.nodeId })
      return shown === undefined ? [] : [{ ...one, host: shown.host, port: shown.port }]
    })
}

for (const [apiKey, make, replace] of kinds) {
  const { minVersion, maxVersion } = apiByKey(apiKey) ?? { minVersion: 0, maxVersion: -1 }
  for (let version = minVersion; version <= maxVersion; version++)
    test(`${apiName(apiKey)} v${version}: addresses are replaced, everything else is as it was`, async () => {
      for (let seed = 1; seed <= 20; seed++) {
        const nodes = [1, 2, 3, 7000].slice(0, 1 + (seed % 4))
        const addresses = new FakeAddresses(seed % 3 === 0 ? nodes.slice(1) : nodes, `p${'x'.repeat(seed)}`)
        const shape = { nodes, tags: isFlexible(apiKey, version), recordBytes: 2000, endpoints: true }
        const frame = codecResponse(apiKey, version, 0, make(new Prng(seed), version, shape))
        const expected = openResponse(apiKey, version, frame)
        replace(expected as never, (node) => {
          const shown = addresses.shown.get(node.nodeId ?? node.brokerId ?? -9)
          return shown === undefined ? undefined : { ...node, ...shown }
        })
        const { reply, rig } = await replyTo([new AddressEditor(addresses)], apiKey, version, frame, { seed })
        assert.ok(reply !== undefined, `seed ${seed}: ${JSON.stringify(rig.log.lines.at(-1))}`)
        assert.deepEqual(openResponse(apiKey, version, reply), expected, `seed ${seed}`)
        assert.ok(!carriesAddresses(apiKey, version) || !reply.includes('.internal'), `seed ${seed}: an address leaks`)
        assert.equal(reply.readInt32BE(0), reply.length - 4)
        assert.equal(reply.readInt32BE(4), 77)
      }
    })
}

const metadata = codecResponse(
  apiKeys.Metadata,
  12,
  0,
  metadataAnswer(new Prng(5), 12, { nodes: [1, 2], tags: true, recordBytes: 0, endpoints: true }),
)

test('brokers are learned from the answer, and clients see it when their ports are bound', async () => {
  const addresses = new FakeAddresses([1])
  let bound = (): void => undefined
  addresses.binding = () =>
    new Promise((resolve) => {
      bound = () => {
        addresses.shown.set(2, { host: 'late.example', port: 5 })
        resolve()
      }
    })
  const { rig, client, reply } = await replyTo([new AddressEditor(addresses)], apiKeys.Metadata, 12, metadata)
  assert.equal(reply, undefined)
  assert.deepEqual(
    addresses.learned.map(({ nodeId, host }) => [nodeId, host]),
    [
      [1, 'broker-1.internal'],
      [2, 'broker-2.internal'],
    ],
  )
  bound()
  await rig.run(() => client.frames.length === 1)
  const body = openResponse(apiKeys.Metadata, 12, client.frames[0] ?? Buffer.alloc(0)) as { brokers: Node[] }
  assert.deepEqual(
    body.brokers.map(({ nodeId, host }) => [nodeId, host]),
    [
      [1, 'proxy.example'],
      [2, 'late.example'],
    ],
  )
})

test("nothing is learned from the controllers' addresses (DescribeCluster with endpoint type 2)", async () => {
  for (const endpointType of [1, 2]) {
    const addresses = new FakeAddresses([1])
    const brokers = [1, 2].map((brokerId) => ({ brokerId, host: 'controller.internal', port: 9093 }))
    const frame = codecResponse(apiKeys.DescribeCluster, 2, 0, { clusterId: 'c', endpointType, brokers })
    const { reply } = await replyTo([new AddressEditor(addresses)], apiKeys.DescribeCluster, 2, frame)
    assert.ok(reply !== undefined && !reply.includes('.internal'))
    assert.equal(addresses.learned.length, endpointType === 1 ? 2 : 0)
  }
})

test('a port that cannot be bound closes the connection that would have been told of it', async () => {
  const addresses = new FakeAddresses([1])
  addresses.binding = () => Promise.reject(new Error('no port'))
  const { reply, rig } = await replyTo([new AddressEditor(addresses)], apiKeys.Metadata, 12, metadata)
  assert.equal(reply, undefined)
  assert.deepEqual(rig.meter.reasons, ['address_unavailable'])
})

test('the connection may close while a port is being bound', async () => {
  const addresses = new FakeAddresses([1])
  let bound = (): void => undefined
  addresses.binding = () => new Promise((resolve) => (bound = resolve))
  const { rig, client } = await replyTo([new AddressEditor(addresses)], apiKeys.Metadata, 12, metadata)
  client.socket.destroy(true)
  await rig.run(() => rig.open.size === 0)
  bound()
  await rig.run(undefined, 1000)
  assert.deepEqual(rig.meter.reasons, ['client_error'])
})

test('an answer with addresses that cannot be read closes the connection, cut wherever', async () => {
  for (const [apiKey, make] of kinds) {
    const version = apiByKey(apiKey)?.maxVersion ?? 0
    const shape = { nodes: [1, 2], tags: false, recordBytes: 20, endpoints: true }
    const frame = codecResponse(apiKey, version, 0, make(new Prng(1), version, shape))
    const addressAt = frame.indexOf('.internal')
    for (let end = 8; end < Math.max(9, addressAt); end++) {
      const cut = sized(Buffer.from(frame.subarray(0, end)))
      const { reply, rig } = await replyTo([new AddressEditor(new FakeAddresses([1, 2]))], apiKey, version, cut)
      assert.equal(reply, undefined, `${apiName(apiKey)} cut at ${end}`)
      assert.deepEqual(rig.meter.reasons, ['malformed_response'], `${apiName(apiKey)} cut at ${end}`)
    }
  }
})

test('random bytes as an answer never leak, loop or cost more than their connection', async () => {
  for (let seed = 1; seed <= 120; seed++) {
    const prng = new Prng(seed)
    const [apiKey] = kinds[seed % kinds.length] ?? [3]
    const { minVersion = 0, maxVersion = 0 } = apiByKey(apiKey) ?? {}
    const version = prng.between(minVersion, maxVersion)
    const frame = sized(Buffer.concat([Buffer.alloc(8), prng.bytes(prng.below(400))]))
    const { rig } = await replyTo([new AddressEditor(new FakeAddresses([1]))], apiKey, version, frame, { seed })
    assert.ok(
      rig.meter.reasons.every((reason) => reason === 'malformed_response'),
      `seed ${seed}: ${rig.meter.reasons.join()}`,
    )
  }
})

test('1,000 topics of 10 partitions: how long the rewriting takes', async (t) => {
  const topics = Array.from({ length: 1000 }, (_, i) => ({
    name: `topic-number-${i}`,
    topicId: new Prng(i).bytes(16).toString('base64url'),
    partitions: Array.from({ length: 10 }, (_unused, partitionIndex) => ({
      partitionIndex,
      leaderId: 1,
      replicaNodes: [1, 2, 3],
      isrNodes: [1, 2, 3],
    })),
  }))
  const brokers = [1, 2, 3].map((nodeId) => ({ nodeId, host: `broker-${nodeId}.internal`, port: 9092, rack: 'a' }))
  const frame = codecResponse(apiKeys.Metadata, 12, 0, { brokers, topics, clusterId: 'c' })
  const editor = new AddressEditor(new FakeAddresses([1, 2, 3]))
  const response = { bytes: frame, at: 0, total: frame.length, owned: true }
  const exchange = { apiKey: apiKeys.Metadata, apiVersion: 12, response, connection: {} }
  const times: number[] = []
  for (let i = 0; i < 200; i++) {
    exchange.response = response
    const startedAt = performance.now()
    assert.equal(editor.onResponse(exchange as never), undefined)
    times.push(performance.now() - startedAt)
  }
  times.sort((a, b) => a - b)
  t.diagnostic(`${frame.length} bytes: median ${times[100]?.toFixed(3)} ms, slowest ${times.at(-1)?.toFixed(3)} ms`)
  assert.ok(exchange.response.total > 100_000)
})
