import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { CHUNK_BYTES } from '../../../src/net/chunk-pool.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { Prng } from '../../support/prng.ts'
import { checkAsync } from '../../support/property.ts'
import { type Peer, Rig } from '../../support/rig.ts'

const ECHO = 19

interface Load {
  /** Sizes of the requests and of their answers. */
  readonly requests: readonly number[]
  readonly answers: readonly number[]
  /** Bytes a peer reads before it stops for a while, and for how long; 0: it always reads. */
  readonly clientPauseMs: number
  readonly brokerPauseMs: number
  readonly everyBytes: number
  readonly kernelBytes: number
  readonly bufferedBytes: number
}

const sizes = fc.oneof(
  fc.integer({ min: 0, max: 2000 }),
  fc.integer({ min: 10_000, max: 400_000 }),
  fc.constant(1_300_000),
)
const loads: fc.Arbitrary<Load> = fc.record({
  requests: fc.array(sizes, { minLength: 1, maxLength: 12 }),
  answers: fc.array(sizes, { minLength: 12, maxLength: 12 }),
  clientPauseMs: fc.constantFrom(0, 20, 200),
  brokerPauseMs: fc.constantFrom(0, 20, 200),
  everyBytes: fc.integer({ min: 2000, max: 300_000 }),
  kernelBytes: fc.constantFrom(4096, 64 * 1024),
  bufferedBytes: fc.constantFrom(64 * 1024, 512 * 1024),
})

/** The slowest peers read 4 KiB in 200 ms, and a load has up to 30 MB: nothing stands still that takes half an hour. */
const patienceMs = 3_600_000

/** Makes a peer stop reading from time to time. */
function makeSlow(rig: Rig, peer: Peer, load: Load, pauseMs: number): void {
  if (pauseMs === 0) return
  const read = peer.onData.bind(peer)
  let next = load.everyBytes
  peer.onData = (length) => {
    read(length)
    if (peer.receivedBytes < next) return
    next = peer.receivedBytes + load.everyBytes
    peer.socket.pause()
    rig.runtime.timer(pauseMs, () => peer.socket.resume())
  }
}

async function carry(load: Load, seed: number): Promise<void> {
  const rig: Rig = await Rig.start({
    seed,
    limits: { bufferedBytes: load.bufferedBytes },
    broker: (peer) => {
      makeSlow(rig, peer, load, load.brokerPauseMs)
      peer.onFrame = (frame) => {
        const length = load.answers[peer.frames.length - 1] ?? 0
        peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(length, peer.frames.length)))
      }
    },
  })
  rig.runtime.kernelBytes = load.kernelBytes
  const client = rig.connect()
  makeSlow(rig, client, load, load.clientPauseMs)
  const prng = new Prng(seed)
  const bodies = load.requests.map((length) => Buffer.alloc(length, prng.bytes(7)))
  bodies.forEach((body, i) => client.send(requestFrame({ apiKey: ECHO, correlationId: i, clientId: null, body })))
  await rig.run(() => client.frames.length === bodies.length || client.closed, patienceMs)

  assert.deepEqual(rig.meter.reasons, [])
  assert.equal(client.frames.length, bodies.length, 'number of replies')
  bodies.forEach((body, i) => {
    assert.ok(rig.broker.frames[i]?.subarray(14).equals(body), `request ${i}`)
    assert.ok(client.frames[i]?.subarray(8).equals(Buffer.alloc(load.answers[i] ?? 0, i + 1)), `reply ${i}`)
    assert.equal(client.frames[i]?.readInt32BE(4), i)
  })
  // Above the mark by what one read may bring: a chunk, or a scratch buffer full of small frames.
  const most = load.bufferedBytes + 2 * CHUNK_BYTES
  assert.ok(rig.peakBytes <= most, `${rig.peakBytes} bytes were kept, at most ${most} may be`)
  const paused = rig.meter.pauses.every(({ seconds }) => seconds >= 0)
  assert.ok(paused)
}

test('slow peers on both sides: bytes are bounded, nothing is lost, nothing stands still', async () => {
  await checkAsync(fc.asyncProperty(loads, fc.integer({ min: 1 }), carry), 25)
})

test('a client that never reads stops its broker, and the broker its client', async () => {
  const rig: Rig = await Rig.start({
    broker: (peer) => {
      peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.alloc(500_000)))
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected)
  client.socket.pause()
  for (let i = 0; i < 40; i++) client.send(requestFrame({ apiKey: ECHO, correlationId: i }))
  await rig.run(undefined, 60_000)
  assert.ok(rig.peakBytes <= 512 * 1024 + 2 * CHUNK_BYTES, `${rig.peakBytes}`)
  assert.ok(rig.broker.socket.pendingBytes > 15_000_000, 'the rest waits at the broker')
  client.socket.resume()
  await rig.run(() => client.frames.length === 40, 600_000)
  assert.equal(client.frames.length, 40)
  assert.ok(rig.meter.pauses.some(({ what, seconds }) => what === 'downstream' && seconds > 50))

  const mute = await Rig.start()
  const eager = mute.connect()
  await mute.run(() => eager.connected && mute.brokers.length === 1 && mute.broker.connected)
  await mute.run(undefined, 10)
  mute.broker.socket.pause()
  for (let i = 0; i < 40; i++) eager.send(requestFrame({ apiKey: ECHO, correlationId: i, body: Buffer.alloc(500_000) }))
  await mute.run(undefined, 60_000)
  assert.ok(mute.peakBytes <= 512 * 1024 + 2 * CHUNK_BYTES, `${mute.peakBytes}`)
  assert.ok(eager.socket.pendingBytes > 15_000_000, 'the rest waits at the client')
})

test('no more requests in flight than allowed', async () => {
  const held: (() => void)[] = []
  const rig: Rig = await Rig.start({
    limits: { inFlight: 5 },
    broker: (peer) => {
      peer.onFrame = (frame) => held.push(() => peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('ok'))))
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length === 1 && rig.broker.connected)
  let most = 0
  for (let i = 0; i < 60; i++) {
    client.send(requestFrame({ apiKey: ECHO, correlationId: i, body: Buffer.alloc(20_000) }))
    await rig.run(undefined, 20)
    most = Math.max(most, rig.connection.order.length)
  }
  assert.ok(most >= 5 && most <= 5 + 4, `${most} in flight`) // what one read brings may still be taken
  for (let answered = 0; answered < 60; answered++) {
    await rig.run(() => held.length > 0, 1000)
    held.shift()?.()
    await rig.run(undefined, 20)
  }
  assert.equal(client.frames.length, 60)
})
