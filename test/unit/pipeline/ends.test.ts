import assert from 'node:assert/strict'
import test from 'node:test'
import { taken } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { answerOf, bodyText, handler } from '../../support/handlers.ts'
import { type Peer, Rig } from '../../support/rig.ts'

const CREATE_TOPICS = 19
const PRODUCE = 0

function request(id: number, bytes = 10): Buffer {
  return requestFrame({ apiKey: CREATE_TOPICS, correlationId: id, body: Buffer.alloc(bytes, id) })
}

function echo(peer: Peer, delayMs = 0, rig?: () => Rig): void {
  peer.onFrame = (frame) => {
    const answer = responseFrame(frame.readInt32BE(8), Buffer.from('ok'))
    if (rig === undefined) peer.send(answer)
    else rig().runtime.timer(delayMs, () => peer.send(answer))
  }
}

async function connected(rig: Rig): Promise<Peer> {
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return client
}

/** As the shutdown does. */
function drain(rig: Rig): void {
  rig.connection.drain()
  if (rig.connection.closed === undefined) rig.runtime.timer(20, () => drain(rig))
}

function allClosed(rig: Rig): void {
  assert.equal(rig.runtime.sockets.size, 0, 'sockets are left open')
  assert.equal(rig.open.size, 0)
  assert.equal(rig.meter.openedCount, rig.meter.reasons.length)
  assert.equal(rig.meter.flying, 0)
}

test('a client that ends after its request still gets the reply', async () => {
  const rig: Rig = await Rig.start({ broker: (peer) => echo(peer, 300, () => rig) })
  const client = await connected(rig)
  client.send(request(1))
  client.socket.end()
  rig.broker.onEndDo = () => undefined
  await rig.run(() => client.frames.length === 1)
  assert.equal(rig.broker.ended, true, 'the end was carried over, behind the request')
  rig.broker.socket.end()
  await rig.run(undefined, 5000)
  assert.equal(client.ended, true)
  assert.deepEqual(rig.meter.reasons, ['client_closed'])
  allClosed(rig)
})

test('a request that a handler still has goes upstream before the end does', async () => {
  const late = handler('request', [CREATE_TOPICS], (exchange) => {
    rig.runtime.timer(200, () => exchange.finish('forward'))
    return taken
  })
  const rig: Rig = await Rig.start({ handlers: [late], broker: (peer) => echo(peer) })
  const client = await connected(rig)
  client.send(request(1))
  client.socket.end()
  await rig.run(undefined, 5000)
  assert.deepEqual(
    client.frames.map((frame) => bodyText(frame)),
    ['ok'],
  )
  assert.deepEqual(rig.meter.reasons, ['client_closed'])
  allClosed(rig)
})

test('a client that ends inside a long request ends it upstream too', async () => {
  const rig = await Rig.start({ broker: () => undefined })
  const client = await connected(rig)
  client.send(request(1, 900_000).subarray(0, 500_000))
  client.socket.end()
  await rig.run(() => rig.broker.ended, 5000)
  assert.equal(rig.broker.ended, true)
  await rig.run(undefined, 5000)
  allClosed(rig)
})

test('a broker that ends inside an answer: the client gets the half and the end', async () => {
  const rig = await Rig.start({
    broker: (peer) => {
      peer.onFrame = (frame) => {
        peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(700_000, 1)).subarray(0, 400_000))
        peer.socket.end()
      }
    },
  })
  const client = await connected(rig)
  client.send(request(1))
  await rig.run(undefined, 5000)
  assert.equal(client.ended, true)
  assert.equal(client.frames.length, 0)
  assert.ok(client.receivedBytes >= 256 * 1024, `${client.receivedBytes} bytes of the half came`)
  assert.deepEqual(rig.meter.reasons, ['broker_closed'])
  allClosed(rig)
})

test('an answer that a handler still has reaches the client after the broker has ended', async () => {
  const late = handler('response', [CREATE_TOPICS], (exchange) => {
    rig.runtime.timer(200, () => exchange.finish('forward'))
    return taken
  })
  const rig: Rig = await Rig.start({
    handlers: [late],
    broker: (peer) => {
      peer.onFrame = (frame) => {
        peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('last words')))
        peer.socket.end()
      }
    },
  })
  const client = await connected(rig)
  client.send(request(1))
  await rig.run(undefined, 5000)
  assert.deepEqual(
    client.frames.map((frame) => bodyText(frame)),
    ['last words'],
  )
  allClosed(rig)
})

test('a reset is carried over in both directions', async () => {
  for (const from of ['client', 'broker'] as const) {
    const rig = await Rig.start()
    const client = await connected(rig)
    client.send(request(1))
    await rig.run(() => rig.broker.frames.length === 1)
    const [source, other] = from === 'client' ? [client, rig.broker] : [rig.broker, client]
    source.socket.destroy(true)
    await rig.run(undefined, 1000)
    assert.equal(other.error?.code, 'ECONNRESET')
    assert.deepEqual(rig.meter.reasons, [`${from}_error`])
    allClosed(rig)
  }
})

test('a broker that never ends does not keep a client that has ended', async () => {
  const rig = await Rig.start({ broker: (peer) => (peer.onEndDo = () => undefined) })
  rig.sweep()
  const client = await connected(rig)
  client.socket.end()
  await rig.run(() => client.closed, 60_000)
  assert.equal(client.closed, true)
  assert.equal(rig.open.size, 0)
})

test('a reader who is slow to take the last answer gets all of it', async () => {
  const bytes = 700_000
  const rig = await Rig.start({
    broker: (peer) => {
      peer.onFrame = (frame) => {
        peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(bytes, 7)))
        peer.socket.end()
      }
    },
  })
  const client = await connected(rig)
  client.send(request(1))
  client.socket.end()
  client.socket.pause()
  await rig.run(undefined, 10_000)
  client.socket.resume()
  await rig.run(undefined, 10_000)
  assert.equal(client.frames[0]?.length, bytes + 8)
  allClosed(rig)
})

test('acks=0 expects no reply; a refused one closes the connection', async () => {
  const produce = (acks: number, id: number): Buffer => {
    const body = Buffer.alloc(10)
    body.writeInt16BE(acks, 0)
    return requestFrame({ apiKey: PRODUCE, correlationId: id, body })
  }
  let refuse = false
  const gate = handler('request', [PRODUCE], () => (refuse ? answerOf('no') : undefined))
  const rig = await Rig.start({
    handlers: [gate],
    broker: (peer) => {
      peer.onFrame = (frame) => {
        if (frame.readInt16BE(18) !== 0) peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('stored')))
      }
    },
  })
  const client = await connected(rig)
  client.send(Buffer.concat([produce(0, 1), produce(0, 2), produce(1, 3), produce(0, 4), produce(1, 5)]))
  await rig.run(() => client.frames.length === 2)
  assert.deepEqual(
    client.frames.map((frame) => frame.readInt32BE(4)),
    [3, 5],
  )
  assert.equal(rig.broker.frames.length, 5)
  assert.equal(rig.connection.sent.length + rig.connection.order.length, 0)
  refuse = true
  client.send(produce(1, 6))
  await rig.run(() => client.frames.length === 3)
  assert.equal(bodyText(client.frames[2]), 'no')
  client.send(produce(0, 7))
  await rig.run(undefined, 5000)
  assert.deepEqual(rig.meter.reasons, ['refused_produce'])
  assert.equal(client.frames.length, 3)
  allClosed(rig)
})

test('what was sent before the connection drained is delivered, and a client that never pauses is drained too', async () => {
  const rig: Rig = await Rig.start({ broker: (peer) => echo(peer, 20, () => rig) })
  const client = await connected(rig)
  let id = 0
  const sendMore = (): void => client.send(request(++id))
  client.onFrame = sendMore
  for (let i = 0; i < 5; i++) sendMore()
  await rig.run(() => client.frames.length > 50)
  drain(rig)
  await rig.run(() => client.ended, 1000)
  assert.equal(client.ended, true, 'the connection ended although there was always a request in flight')
  assert.deepEqual(rig.meter.reasons, ['drained'])
  assert.deepEqual(
    client.frames.map((frame) => frame.readInt32BE(4)),
    client.frames.map((_, i) => i + 1),
  )
  assert.equal(rig.broker.frames.length, client.frames.length, 'every request that was sent upstream was answered')
})

test('a long request is finished before the connection drains', async () => {
  const rig: Rig = await Rig.start({ broker: (peer) => echo(peer) })
  const client = await connected(rig)
  const long = request(1, 900_000)
  client.send(long.subarray(0, 400_000))
  await rig.run(undefined, 200)
  drain(rig)
  await rig.run(undefined, 200)
  assert.equal(rig.connection.closed, undefined)
  client.send(long.subarray(400_000))
  await rig.run(() => client.ended, 2000)
  assert.deepEqual(
    client.frames.map((frame) => bodyText(frame)),
    ['ok'],
  )
  assert.deepEqual(rig.meter.reasons, ['drained'])
})
