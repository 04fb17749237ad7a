import assert from 'node:assert/strict'
import test from 'node:test'
import { taken } from '../../../src/pipeline/handler.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { handler } from '../../support/handlers.ts'
import { type Peer, Rig, type RigOptions } from '../../support/rig.ts'

const CREATE_TOPICS = 19
const HEARTBEAT = 12

function echo(peer: Peer): void {
  peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('ok')))
}

async function start(options: RigOptions): Promise<{ rig: Rig; client: Peer }> {
  const rig = await Rig.start({ broker: echo, ...options })
  rig.sweep()
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client }
}

/** Sends one byte every `gapMs`, as a slow-loris does. */
function trickle(rig: Rig, client: Peer, bytes: Buffer, gapMs: number): void {
  bytes.forEach((byte, i) => rig.runtime.timer(i * gapMs, () => client.send(Buffer.from([byte]))))
}

const limits = { headerTimeoutMs: 10_000, progressTimeoutMs: 30_000 }

test('a header that comes byte by byte has one time-out for all of it', async () => {
  const { rig, client } = await start({ limits })
  trickle(rig, client, requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(60) }), 2000)
  await rig.run(() => client.closed, 200_000)
  assert.deepEqual(rig.meter.reasons, ['progress_timeout'])
  assert.ok(rig.runtime.now() < 14_000, `closed after ${rig.runtime.now()} ms`)
})

test('a body may take its time as long as something comes', async () => {
  const { rig, client } = await start({ limits })
  const frame = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(40) })
  client.send(frame.subarray(0, 20))
  trickle(rig, client, frame.subarray(20), 5000)
  await rig.run(() => client.frames.length === 1, 400_000)
  assert.equal(client.frames.length, 1)
})

test('a request, and an answer, that stands still is given up', async () => {
  const still = await start({ limits })
  still.client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(40) }).subarray(0, 30))
  await still.rig.run(() => still.client.closed, 100_000)
  assert.deepEqual(still.rig.meter.reasons, ['progress_timeout'])
  const { rig, client } = await start({
    limits,
    broker: (peer) => {
      peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(100)).subarray(0, 50))
    },
  })
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
  await rig.run(() => client.closed, 100_000)
  assert.deepEqual(rig.meter.reasons, ['progress_timeout'])
})

test('a client and a broker that wait without having begun anything are left alone', async () => {
  const { rig, client } = await start({ limits, broker: () => undefined })
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
  await rig.run(undefined, 600_000)
  assert.deepEqual(rig.meter.reasons, [])
})

test('time in which we do not read does not count', async () => {
  const holder = handler('request', [CREATE_TOPICS], (exchange) => {
    exchange.hold(['all'], 100_000, 'forward')
    return taken
  })
  const { rig, client } = await start({ limits: { ...limits, holdFrames: 1 }, handlers: [holder] })
  const next = requestFrame({ apiKey: HEARTBEAT, correlationId: 3, body: Buffer.alloc(100) })
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
  client.send(requestFrame({ apiKey: HEARTBEAT, correlationId: 2 }))
  client.send(next.subarray(0, 6)) // an incomplete header, read before or during the pause
  await rig.run(undefined, 95_000)
  client.send(next.subarray(6))
  await rig.run(() => client.frames.length === 3, 60_000)
  assert.deepEqual(rig.meter.reasons, [])
  assert.equal(client.frames.length, 3)
})

test('idle connections are closed only where asked for, and not while an answer is owed', async () => {
  const { rig, client } = await start({ limits: { idleTimeoutMs: 60_000 } })
  client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
  await rig.run(undefined, 50_000)
  assert.deepEqual(rig.meter.reasons, [])
  await rig.run(undefined, 20_000)
  assert.deepEqual(rig.meter.reasons, ['idle_timeout'])
  const owed = await start({ limits: { idleTimeoutMs: 60_000 }, broker: () => undefined })
  owed.client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
  await owed.rig.run(undefined, 300_000)
  assert.deepEqual(owed.rig.meter.reasons, [])
})
