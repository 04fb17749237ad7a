import assert from 'node:assert/strict'
import test from 'node:test'
import type { Exchange } from '../../../src/pipeline/exchange.ts'
import { type Handler, taken, type Verdict } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { answerOf, bodyText, handler } from '../../support/handlers.ts'
import { Rig, type RigOptions } from '../../support/rig.ts'

const CREATE_TOPICS = 19
const DELETE_TOPICS = 20

function request(id: number, text: string, apiKey = CREATE_TOPICS): Buffer {
  return requestFrame({ apiKey, correlationId: id, clientId: null, body: Buffer.from(text) })
}

function textOf(exchange: Exchange): string {
  const { request: frame } = exchange
  return frame === undefined ? '' : frame.bytes.toString('latin1', frame.at + 14, frame.at + frame.total)
}

/** A rig whose broker echoes bodies at once and remembers their order. */
async function start(options: RigOptions): Promise<{ rig: Rig; seen: string[]; send: (...frames: Buffer[]) => void }> {
  const seen: string[] = []
  const rig = await Rig.start({
    ...options,
    broker: (peer) => {
      peer.onFrame = (frame) => {
        seen.push(frame.toString('latin1', 14))
        peer.send(responseFrame(frame.readInt32BE(8), frame.subarray(14)))
      }
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected)
  return { rig, seen, send: (...frames) => client.send(Buffer.concat(frames)) }
}

function replies(rig: Rig): string[] {
  return (rig.clients[0]?.frames ?? []).map((frame) => bodyText(frame))
}

/** Holds every request whose text begins with `H` in the lane named by its second letter, for `ms`. */
function laneHolder(ms: number, outcome: 'forward' | ReturnType<typeof answerOf> = 'forward'): Handler {
  return handler('request', [CREATE_TOPICS], (exchange) => {
    const text = textOf(exchange)
    const lanes = [text[1] ?? '']
    if (exchange.queue(lanes)) return taken
    if (!text.startsWith('H')) return undefined
    exchange.hold(lanes, ms, outcome)
    return taken
  })
}

test('the same lane waits behind a held request, other lanes overtake it, replies keep their order', async () => {
  const { rig, seen, send } = await start({ handlers: [laneHolder(500)] })
  send(request(1, 'Ha1'), request(2, '-a2'), request(3, '-b3'), request(4, 'x', DELETE_TOPICS), request(5, '-a5'))
  await rig.run(undefined, 400)
  assert.deepEqual(seen, ['-b3', 'x'])
  assert.deepEqual(replies(rig), [], 'the reply owed first has not come')
  await rig.run(() => replies(rig).length === 5, 1000)
  assert.deepEqual(seen, ['-b3', 'x', 'Ha1', '-a2', '-a5'])
  assert.deepEqual(replies(rig), ['Ha1', '-a2', '-b3', 'x', '-a5'])
  assert.equal(rig.connection.holds.size, 0)
})

test('a deadline does what it was told to, and only what waited behind it goes on', async () => {
  const { rig, seen, send } = await start({ handlers: [laneHolder(100, answerOf('too late'))] })
  send(request(1, 'Ha1'), request(2, 'Hb2'), request(3, '-a3'))
  await rig.run(() => replies(rig).length === 3, 1000)
  assert.deepEqual(replies(rig), ['too late', 'too late', '-a3'])
  assert.deepEqual(seen, ['-a3'])
})

test('a queued request may be held itself when it is free, and keeps its turn', async () => {
  const { rig, seen, send } = await start({ handlers: [laneHolder(100)] })
  send(request(1, 'Ha1'), request(2, 'Ha2'), request(3, '-a3'))
  await rig.run(undefined, 150)
  assert.deepEqual(seen, ['Ha1'])
  await rig.run(() => replies(rig).length === 3, 1000)
  assert.deepEqual(seen, ['Ha1', 'Ha2', '-a3'])
})

test('two handlers hold the same request one after the other', async () => {
  const second = handler('request', [CREATE_TOPICS], (exchange) => {
    if (!textOf(exchange).startsWith('H')) return undefined
    exchange.hold(['second'], 300, 'forward')
    return taken
  })
  const { rig, seen, send } = await start({ handlers: [laneHolder(100), second] })
  send(request(1, 'Ha1'), request(2, '-a2'), request(3, '-b3'))
  await rig.run(undefined, 350)
  assert.deepEqual(seen, ['-b3'], 'the lane of the first hold is kept during the second')
  await rig.run(() => replies(rig).length === 3, 1000)
  assert.deepEqual(seen, ['-b3', 'Ha1', '-a2'])
  assert.deepEqual(replies(rig), ['Ha1', '-a2', '-b3'])
})

test('a request taken without a hold keeps the lanes it named', async () => {
  let go = (): void => undefined
  const patient = handler('request', [CREATE_TOPICS], (exchange): Verdict => {
    if (!textOf(exchange).startsWith('H')) return undefined
    go = () => exchange.finish('forward')
    return taken
  })
  const { rig, seen, send } = await start({ handlers: [laneHolder(50), patient] })
  send(request(1, 'Ha1'), request(2, '-a2'))
  await rig.run(undefined, 500)
  assert.deepEqual(seen, [])
  go()
  await rig.run(() => replies(rig).length === 2, 1000)
  assert.deepEqual(seen, ['Ha1', '-a2'])
})

test('the deadline of a hold that has ended does nothing, and ending twice neither', async () => {
  const exchanges: Exchange[] = []
  const holder = handler('request', [CREATE_TOPICS], (exchange) => {
    exchanges.push(exchange)
    exchange.hold(['a'], 200, answerOf('deadline'))
    return taken
  })
  const { rig, send } = await start({ handlers: [holder] })
  send(request(1, 'one'))
  await rig.run(() => exchanges.length === 1, 100)
  exchanges[0]?.finish('forward')
  exchanges[0]?.finish('forward')
  exchanges[0]?.finish(answerOf('again'))
  await rig.run(undefined, 1000)
  assert.deepEqual(replies(rig), ['one'])
})

test('during a hold the client is read only so far, and it goes on afterwards', async () => {
  const { rig, seen, send } = await start({ handlers: [laneHolder(500)], limits: { holdFrames: 4 } })
  const frames = Array.from({ length: 40 }, (_, i) => request(i + 2, `x${i}`.padEnd(2000, '.'), DELETE_TOPICS))
  send(request(1, 'Ha1'))
  await rig.run(undefined, 50)
  for (const frame of frames) {
    send(frame)
    await rig.run(undefined, 5)
  }
  assert.ok(seen.length <= 4, `${seen.length} requests overtook the held one`)
  assert.equal(replies(rig).length, 0)
  await rig.run(() => replies(rig).length === 41, 5000)
  assert.equal(replies(rig).length, 41)
  assert.ok(rig.meter.pauses.some(({ what, seconds }) => what === 'hold' && seconds > 0))
})

test('answers that overtook a held request do not pile up', async () => {
  const big = 300_000
  const rig = await Rig.start({
    handlers: [laneHolder(2000)],
    limits: { bufferedBytes: 512 * 1024 },
    broker: (peer) => {
      peer.onFrame = (frame) =>
        peer.send(
          responseFrame(frame.readInt32BE(8), frame[5] === CREATE_TOPICS ? Buffer.from('held') : Buffer.alloc(big)),
        )
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected)
  client.send(
    Buffer.concat([request(1, 'Ha1'), ...Array.from({ length: 14 }, (_, i) => request(i + 2, 'x', DELETE_TOPICS))]),
  )
  await rig.run(undefined, 1500)
  const taken_ = rig.broker.socket.pendingBytes
  assert.ok(taken_ > 8 * big, `only ${taken_} bytes of answers still wait at the broker: the proxy has read the rest`)
  await rig.run(() => client.frames.length === 15, 20_000)
  assert.equal(client.frames.length, 15)
  assert.equal(bodyText(client.frames[0]), 'held')
})

test('when the connection closes, held requests are dropped and their timers with them', async () => {
  const { rig, seen, send } = await start({ handlers: [laneHolder(500)] })
  send(request(1, 'Ha1'), request(2, '-a2'))
  await rig.run(undefined, 100)
  rig.connection.close('shutdown')
  await rig.run(undefined, 2000)
  assert.deepEqual(seen, [])
  assert.equal(rig.connection.holds.size, 0)
})
