import assert from 'node:assert/strict'
import test from 'node:test'
import type { CloseReason } from '../../../src/telemetry/meter.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { Prng } from '../../support/prng.ts'
import { type Peer, Rig, type RigOptions } from '../../support/rig.ts'

const CREATE_TOPICS = 19

function echo(peer: Peer): void {
  peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('ok')))
}

async function connected(options: RigOptions = {}): Promise<{ rig: Rig; client: Peer }> {
  const rig = await Rig.start({ broker: echo, ...options })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client }
}

function ended(rig: Rig, client: Peer, reason: CloseReason): void {
  assert.deepEqual(rig.meter.reasons, [reason])
  assert.equal(client.ended || client.closed, true)
  assert.equal(rig.runtime.sockets.size, 0, 'sockets are left open')
  const line = rig.log.lines.at(-1)
  assert.equal(line?.level, 'warn')
  assert.ok(typeof line?.fields.detail === 'string' && line.fields.detail.length > 10, 'the log says what happened')
}

const valid = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 })

function int32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, i) => bytes.writeInt32BE(value, i * 4))
  return bytes
}

const tlsHello = Buffer.concat([
  Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
  Buffer.alloc(506),
])

const cases: [what: string, bytes: Buffer, reason: CloseReason][] = [
  ['a negative size', int32(-1), 'malformed_request'],
  ['the smallest size there is', int32(-(2 ** 31)), 'malformed_request'],
  ['a size of 0', int32(0, 0, 0), 'malformed_request'],
  ['a size shorter than a header', int32(7, 0, 0), 'malformed_request'],
  ['a size above the limit', int32(100 * 1024 * 1024 + 1), 'frame_too_large'],
  ['the largest size there is', int32(2 ** 31 - 1), 'frame_too_large'],
  ['a TLS hello', tlsHello, 'tls_on_plain_port'],
  ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), 'http_on_kafka_port'],
  ['an HTTP/2 preface', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'http_on_kafka_port'],
  ['an unknown api', requestFrame({ apiKey: 999, correlationId: 1 }), 'unsupported_api'],
  ['a negative api', requestFrame({ apiKey: -5, correlationId: 1 }), 'unsupported_api'],
  ['an api between brokers', requestFrame({ apiKey: 4, correlationId: 1 }), 'unsupported_api'],
  ['an unknown version', requestFrame({ apiKey: 3, apiVersion: 99, correlationId: 1 }), 'unsupported_api'],
  ['a negative version', requestFrame({ apiKey: 3, apiVersion: -1, correlationId: 1 }), 'unsupported_api'],
  [
    'a negative version of ApiVersions',
    requestFrame({ apiKey: 18, apiVersion: -1, correlationId: 1 }),
    'unsupported_api',
  ],
  ['a Produce without acks', requestFrame({ apiKey: 0, correlationId: 1 }), 'malformed_request'],
  ['a Produce whose client id is longer than the frame', longClientId(), 'malformed_request'],
]

function longClientId(): Buffer {
  const frame = requestFrame({ apiKey: 0, correlationId: 1, body: Buffer.alloc(8) })
  frame.writeInt16BE(3000, 12)
  return frame
}

for (const [what, bytes, reason] of cases)
  test(`${what} closes the connection: ${reason}`, async () => {
    for (const pieces of [
      [bytes],
      [bytes.subarray(0, 3), bytes.subarray(3)],
      Array.from(bytes, (byte) => Buffer.from([byte])),
    ]) {
      const { rig, client } = await connected()
      for (const piece of pieces) {
        client.send(piece)
        if (pieces.length < 40) await rig.run(undefined, 5)
      }
      await rig.run(undefined, 10_000)
      ended(rig, client, reason)
    }
  })

test('an HTTP client is told what this port is', async () => {
  const { rig, client } = await connected()
  let text = ''
  client.onData = (length) => (text += Buffer.from(client.buffer().subarray(0, length)).toString('latin1'))
  client.send(Buffer.from('GET /metrics HTTP/1.1\r\n\r\n'))
  await rig.run(undefined, 5000)
  assert.match(text, /^HTTP\/1\.1 400 /)
  assert.match(text, /admin port/)
})

test('TLS and HTTP are recognised also where such sizes would be allowed', async () => {
  for (const bytes of [tlsHello, Buffer.from('GET / HTTP/1.1\r\n\r\n')]) {
    const { rig, client } = await connected({ limits: { requestBytes: 2 ** 31 - 1 } })
    client.send(bytes)
    await rig.run(undefined, 5000)
    ended(rig, client, bytes[0] === 0x16 ? 'tls_on_plain_port' : 'http_on_kafka_port')
  }
})

test('requests before the bad one reach the broker', async () => {
  const { rig, client } = await connected()
  client.send(Buffer.concat([valid, valid, int32(-7)]))
  await rig.run(undefined, 5000)
  assert.equal(rig.broker.frames.length, 2)
  ended(rig, client, 'malformed_request')
})

test('random bytes never do more than close their own connection', async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const { rig, client } = await connected({ seed })
    const prng = new Prng(seed)
    const bytes = prng.bytes(prng.between(1, 3000))
    if (prng.below(2) === 0) bytes.writeInt32BE(prng.between(0, 4000), 0)
    if (prng.below(2) === 0 && bytes.length > 8) bytes.writeInt32BE(prng.below(92) << 16, 4)
    client.send(bytes)
    client.socket.end()
    await rig.run(undefined, 60_000)
    assert.ok(client.closed, `seed ${seed}`)
    assert.equal(rig.runtime.sockets.size, 0, `seed ${seed}`)
    for (const reason of rig.meter.reasons) assert.notEqual(reason, 'internal_error', `seed ${seed}`)
  }
})

test('answers that no request asked for, out of order or too short close both sides', async () => {
  const answers: [string, (ids: number[]) => Buffer][] = [
    ['an unknown id', (ids) => responseFrame((ids[0] ?? 0) + 1000, Buffer.from('x'))],
    ['the second before the first', (ids) => responseFrame(ids[1] ?? 0, Buffer.from('x'))],
    ['a long one with an unknown id', () => responseFrame(-3, Buffer.alloc(300_000))],
    [
      'twice the same',
      (ids) =>
        Buffer.concat([responseFrame(ids[0] ?? 0, Buffer.from('x')), responseFrame(ids[0] ?? 0, Buffer.from('x'))]),
    ],
    ['a negative size', () => int32(-1)],
    ['a size of 3', () => Buffer.concat([int32(3), Buffer.alloc(3)])],
  ]
  for (const [what, answer] of answers) {
    const { rig, client } = await connected({
      broker: (peer) => {
        peer.onFrame = () => {
          if (peer.frames.length === 2) peer.send(answer(peer.frames.map((frame) => frame.readInt32BE(8))))
        }
      },
    })
    client.send(Buffer.concat([valid, valid]))
    await rig.run(undefined, 10_000)
    ended(rig, client, 'malformed_response')
    assert.ok(client.frames.length <= 1, what)
    assert.equal(rig.broker.closed, true, what)
    assert.equal(rig.meter.flying, 0, what)
  }
})

test('an answer without any request closes', async () => {
  const { rig, client } = await connected({
    broker: (peer) => (peer.onConnect = () => peer.send(responseFrame(1, Buffer.from('surprise')))),
  })
  await rig.run(undefined, 10_000)
  ended(rig, client, 'malformed_response')
})
