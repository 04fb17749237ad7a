import assert from 'node:assert/strict'
import test from 'node:test'
import type { Exchange } from '../../../src/pipeline/exchange.ts'
import { type Handler, taken } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { handler } from '../../support/handlers.ts'
import { type Peer, Rig } from '../../support/rig.ts'

const CREATE_TOPICS = 19
const HEARTBEAT = 12

function echo(peer: Peer): void {
  peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('ok')))
}

const fail = (): never => {
  throw new TypeError('a bug')
}

/** A handler with a bug; where it is met, and by what. */
const buggy: [where: string, handler: (rig: () => Rig) => Handler][] = [
  ['in onRequest', () => handler('request', [CREATE_TOPICS], fail)],
  ['in onResponse', () => handler('response', [CREATE_TOPICS], fail)],
  [
    'after a hold',
    () => {
      let asked = false
      return {
        name: 'buggy',
        interests: [
          { apiKey: CREATE_TOPICS, side: 'request', depth: 'full' },
          { apiKey: CREATE_TOPICS, side: 'response', depth: 'full' },
        ],
        onRequest: (exchange: Exchange) => {
          if (asked) fail()
          asked = true
          exchange.hold(['x'], 50, 'forward')
          return taken
        },
        onResponse: fail,
      }
    },
  ],
  [
    'after a promise',
    (rig) =>
      handler('response', [CREATE_TOPICS], (exchange) => {
        rig().runtime.timer(20, () => {
          // What the next handler does with it is met inside finish, outside any socket's event.
          exchange.finish('forward')
        })
        return taken
      }),
  ],
]

for (const [where, make] of buggy)
  test(`a bug ${where} costs its own connection and no other`, async () => {
    const last = handler('response', [CREATE_TOPICS], fail, 'first in line, last to see answers')
    const rig: Rig = await Rig.start({ handlers: [last, make(() => rig)], broker: echo })
    const [bad, good] = [rig.connect(), rig.connect()]
    await rig.run(() => bad.connected && good.connected && rig.brokers.length === 2)
    bad.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
    good.send(requestFrame({ apiKey: HEARTBEAT, correlationId: 2 }))
    await rig.run(() => bad.closed, 10_000)
    good.send(requestFrame({ apiKey: HEARTBEAT, correlationId: 3 }))
    await rig.run(() => good.frames.length === 2)
    assert.deepEqual(
      good.frames.map((frame) => frame.readInt32BE(4)),
      [2, 3],
    )
    assert.deepEqual(rig.meter.reasons, ['internal_error'])
    assert.equal(rig.open.size, 1)
  })

test('a bug in onClose does not keep the connection from closing', async () => {
  const rig = await Rig.start({ handlers: [{ name: 'buggy', interests: [], onClose: fail }], broker: echo })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length === 1)
  client.socket.end()
  await rig.run(() => client.closed, 10_000)
  assert.equal(client.closed, true)
  assert.equal(rig.open.size, 0)
  assert.equal(rig.runtime.sockets.size, 0)
})

test('a long request that handlers want is counted once', async () => {
  const rig = await Rig.start({ handlers: [handler('request', [CREATE_TOPICS], () => undefined)], broker: echo })
  const client = rig.connect()
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(400_000) }))
  await rig.run(() => client.frames.length === 1)
  assert.equal(rig.meter.requests.length, 1)
  assert.equal(rig.connection.requestCount, 1)
})

test('the latency of a small request does not depend on the long one behind it', async () => {
  const rig: Rig = await Rig.start({ broker: echo })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length === 1 && rig.broker.connected)
  const long = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 2, body: Buffer.alloc(900_000) })
  await rig.run(undefined, 3_600_000)
  client.send(Buffer.concat([requestFrame({ apiKey: HEARTBEAT, correlationId: 1 }), long.subarray(0, 400_000)]))
  await rig.run(undefined, 10_000)
  client.send(long.subarray(400_000))
  await rig.run(() => client.frames.length === 2)
  const [first] = rig.meter.latencies
  assert.ok(first !== undefined && first.brokerMs < 100 && first.proxyMs < 100, JSON.stringify(first))
})
