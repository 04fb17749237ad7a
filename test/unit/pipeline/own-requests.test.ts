import assert from 'node:assert/strict'
import test from 'node:test'
import type { Exchange } from '../../../src/pipeline/exchange.ts'
import { taken } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { bodyText, handler } from '../../support/handlers.ts'
import { BROKER_PORT, type Peer, Rig, type RigOptions } from '../../support/rig.ts'

const CREATE_TOPICS = 19
const DELETE_GROUPS = 42
const SASL_HANDSHAKE = 17

function echo(peer: Peer): void {
  peer.onFrame = (frame) => {
    const clientIdBytes = Math.max(0, frame.readInt16BE(12))
    peer.send(responseFrame(frame.readInt32BE(8), frame.subarray(14 + clientIdBytes)))
  }
}

async function connected(options: RigOptions = {}): Promise<{ rig: Rig; client: Peer }> {
  const rig = await Rig.start({ broker: echo, ...options })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client }
}

async function settled<T>(rig: Rig, promise: Promise<T>): Promise<PromiseSettledResult<T>> {
  let done = false
  const result = Promise.allSettled([promise]).then(([first]) => {
    done = true
    return first
  })
  await rig.run(() => done)
  assert.ok(done, 'the promise is still open')
  return result
}

test('an own request goes between those of the client, whose replies and ids it does not touch', async () => {
  const { rig, client } = await connected()
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 5, body: Buffer.from('one') }))
  await rig.run(() => rig.broker.frames.length === 1)
  const reply = rig.connection.ask(DELETE_GROUPS, 0, Buffer.from('ours'))
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 5, body: Buffer.from('two') }))
  const result = await settled(rig, reply)
  assert.equal(result.status, 'fulfilled')
  if (result.status === 'fulfilled')
    assert.equal(result.value.frame.bytes.toString('latin1', result.value.bodyAt, result.value.frame.total), 'ours')
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(
    client.frames.map((frame) => [frame.readInt32BE(4), bodyText(frame)]),
    [
      [5, 'one'],
      [5, 'two'],
    ],
  )
  assert.equal(rig.meter.requests.length, 2, "the client's requests alone are counted")
  const clientIds = rig.broker.frames.map((frame) => frame.toString('latin1', 14, 14 + frame.readInt16BE(12)))
  assert.deepEqual(
    clientIds,
    ['test', 'test', 'test'],
    "ours goes under the client's id: quotas and logs see the client",
  )
})

test('an own request made while a long request streams waits for its end', async () => {
  const { rig, client } = await connected()
  const long = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(900_000, 1) })
  client.send(long.subarray(0, 500_000))
  await rig.run(undefined, 500)
  const reply = rig.connection.ask(DELETE_GROUPS, 0, Buffer.from('ours'))
  await rig.run(undefined, 500)
  assert.equal(rig.broker.frames.length, 0)
  client.send(long.subarray(500_000))
  const result = await settled(rig, reply)
  assert.equal(result.status, 'fulfilled')
  assert.deepEqual(
    rig.broker.frames.map((frame) => frame.readInt16BE(4)),
    [CREATE_TOPICS, DELETE_GROUPS],
  )
  assert.ok(rig.broker.frames[0]?.subarray(18).equals(long.subarray(18)), 'the long request was not torn apart')
})

test('requests that stop the reading of the client do not stop a long one that an own request waits for', async () => {
  const exchanges: Exchange[] = []
  const asker = handler('request', [DELETE_GROUPS], (exchange) => {
    exchanges.push(exchange)
    return taken
  })
  const { rig, client } = await connected({ handlers: [asker], limits: { holdFrames: 1, inFlight: 2 } })
  const long = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 2, body: Buffer.alloc(900_000, 1) })
  client.send(requestFrame({ apiKey: DELETE_GROUPS, correlationId: 1 }))
  client.send(long.subarray(0, 300_000))
  await rig.run(undefined, 500)
  const reply = rig.connection.ask(CREATE_TOPICS, 0, Buffer.from('ours')).then(() => exchanges[0]?.finish('forward'))
  client.send(long.subarray(300_000))
  await settled(rig, reply)
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(
    client.frames.map((frame) => frame.readInt32BE(4)),
    [1, 2],
  )
})

test('a long answer to an own request is gathered', async () => {
  const { rig } = await connected({
    broker: (peer) => {
      peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(700_000, 9)))
    },
  })
  const result = await settled(rig, rig.connection.ask(DELETE_GROUPS, 0, Buffer.alloc(0)))
  assert.ok(result.status === 'fulfilled' && result.value.frame.total === 700_008)
})

test('own requests are rejected when the connection closes, when it is closed, and for versions nobody knows', async () => {
  const { rig, client } = await connected({ broker: () => undefined })
  const waiting = rig.connection.ask(DELETE_GROUPS, 0, Buffer.alloc(0))
  assert.equal((await settled(rig, rig.connection.ask(DELETE_GROUPS, 77, Buffer.alloc(0)))).status, 'rejected')
  client.socket.destroy(true)
  assert.equal((await settled(rig, waiting)).status, 'rejected')
  assert.equal((await settled(rig, rig.connection.ask(DELETE_GROUPS, 0, Buffer.alloc(0)))).status, 'rejected')
  assert.equal(rig.meter.flying, 0)
})

test('an own request with a too long or headless answer closes the connection', async () => {
  for (const [version, body] of [
    [0, Buffer.alloc(300_000)],
    [2, Buffer.from([0xff, 0xff])],
  ] as const) {
    const { rig } = await connected({
      limits: { responseBytes: 280_000 },
      broker: (peer) => (peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), body))),
    })
    assert.equal((await settled(rig, rig.connection.ask(DELETE_GROUPS, version, Buffer.alloc(1)))).status, 'rejected')
    assert.deepEqual(rig.meter.reasons, [version === 0 ? 'frame_too_large' : 'malformed_response'])
  }
})

test('a second connection to the same broker, but not where the client has authenticated', async () => {
  const { rig, client } = await connected()
  const opened = await settled(rig, rig.connection.side())
  assert.ok(opened.status === 'fulfilled' && opened.value !== 'cannot-authenticate')
  const link = opened.value
  assert.equal(rig.brokers.length, 2)
  const reply = await settled(rig, link.request(DELETE_GROUPS, 0, Buffer.from('aside'), 1000))
  assert.ok(reply.status === 'fulfilled')
  assert.equal(reply.value.bytes.toString('latin1', reply.value.bodyAt), 'aside')
  link.close()
  client.send(requestFrame({ apiKey: SASL_HANDSHAKE, correlationId: 1, body: Buffer.from('\0\x05PLAIN') }))
  await rig.run(() => client.frames.length === 1)
  const refused = await settled(rig, rig.connection.side())
  assert.ok(refused.status === 'fulfilled' && refused.value === 'cannot-authenticate')
})

test('a second connection that the broker does not answer is given up, its requests with it', async () => {
  const { rig } = await connected({ broker: () => undefined })
  const opened = await settled(rig, rig.connection.side())
  assert.ok(opened.status === 'fulfilled' && opened.value !== 'cannot-authenticate')
  const link = opened.value
  const [first, second] = [
    link.request(DELETE_GROUPS, 0, Buffer.alloc(0), 500),
    link.request(DELETE_GROUPS, 0, Buffer.alloc(0), 900),
  ]
  assert.equal((await settled(rig, first)).status, 'rejected')
  assert.equal((await settled(rig, second)).status, 'rejected')
  assert.equal(link.closed, true)
  await rig.run(undefined, 1000)
  assert.equal(rig.broker.ended || rig.broker.closed, true)
})

test('brokers are tried in turn, and the client waits meanwhile', async () => {
  const targets = [9, 10, BROKER_PORT].map((port) => ({ host: '127.0.0.1', port }))
  const rig = await Rig.start({ broker: echo, target: (tried) => targets[tried.length] })
  const client = rig.connect()
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.from('early') }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(bodyText(client.frames[0]), 'early')
})

test('no broker, an address that cannot be dialled, and a failing look-up close that connection only', async () => {
  const targets: RigOptions['target'][] = [
    () => undefined,
    () => Promise.resolve(undefined),
    (tried) => (tried.length === 0 ? { host: '127.0.0.1', port: 9 } : undefined),
    () => Promise.reject(new Error('the look-up failed')),
    () => {
      throw new RangeError('port out of range')
    },
  ]
  for (const target of targets) {
    const rig = await Rig.start(target === undefined ? {} : { target })
    const client = rig.connect()
    client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
    await rig.run(undefined, 5000)
    assert.deepEqual(rig.meter.reasons, ['broker_unreachable'])
    assert.equal(client.closed, true)
    assert.equal(rig.runtime.sockets.size, 0)
  }
})
