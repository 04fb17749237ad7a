import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerAddresses } from '../../../../src/editors/addresses.ts'
import { FetchEditor } from '../../../../src/editors/fetch/editor.ts'
import type { PartitionPolicy } from '../../../../src/editors/fetch/policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codec } from '../../../../src/protocol/codecs.ts'
import type { FetchRequest, FetchResponse } from '../../../../src/protocol/generated/01-fetch.ts'
import { Reader } from '../../../../src/protocol/reader.ts'
import { Writer } from '../../../../src/protocol/writer.ts'
import { readRecords } from '../../../../src/records/read.ts'
import { requestFrame, responseFrame } from '../../../support/frames.ts'
import { type Peer, Rig } from '../../../support/rig.ts'
import { batch, only } from './reading.ts'

const VERSION = 11
const HEARTBEAT = 12
const api = codec(apiKeys.Fetch)

type Answering = (request: FetchRequest, at: number) => Parameters<typeof api.encodeResponse>[1] | 'silence' | 'garbage'

/** A broker that answers Fetch as told, waiting as long as it was asked to where there are no records, one by one. */
class Broker {
  readonly fetches: FetchRequest[] = []
  readonly apis: { apiKey: number; atMs: number }[] = []
  private readonly rig: () => Rig
  private readonly answering: Answering
  private queue: Buffer[] = []
  private busy = false

  constructor(rig: () => Rig, answering: Answering) {
    this.rig = rig
    this.answering = answering
  }

  serve(peer: Peer): void {
    peer.onFrame = (frame) => {
      this.apis.push({ apiKey: frame.readInt16BE(4), atMs: this.rig().runtime.now() })
      this.queue.push(frame)
      this.next(peer)
    }
  }

  private next(peer: Peer): void {
    const frame = this.busy ? undefined : this.queue.shift()
    if (frame === undefined) return
    this.busy = true
    const reply = (body: Buffer): void => {
      this.busy = false
      peer.send(responseFrame(frame.readInt32BE(8), body))
      this.next(peer)
    }
    if (frame.readInt16BE(4) !== apiKeys.Fetch) return reply(Buffer.from('ok'))
    const bodyAt = 14 + Math.max(0, frame.readInt16BE(12))
    const request = api.decodeRequest(new Reader(frame, bodyAt, frame.length), VERSION)
    this.fetches.push(request)
    const answer = this.answering(request, this.fetches.length)
    if (answer === 'silence') return
    if (answer === 'garbage') return reply(Buffer.alloc(3))
    const found = answer.responses?.some(({ partitions = [] }) =>
      partitions.some(({ records, errorCode }) => (records?.length ?? 0) > 0 || (errorCode ?? 0) !== 0),
    )
    const writer = new Writer(256)
    api.encodeResponse(writer, answer, VERSION)
    const body = writer.finish()
    if (found === true) reply(body)
    else this.rig().runtime.timer(request.maxWaitMs, () => reply(body))
  }
}

const addresses: BrokerAddresses = { advertised: () => ({ host: 'proxy', port: 1 }), learn: () => undefined }

async function start(policy: PartitionPolicy | undefined, answering: Answering) {
  const editor = new FetchEditor({
    policies: [{ view: () => ({ partition: () => policy }) }],
    addresses,
    maxInflatedBytes: 1 << 20,
  })
  const broker = new Broker(() => rig, answering)
  const rig = await Rig.start({ handlers: [editor], broker: (peer) => broker.serve(peer) })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client, broker }
}

interface Asked {
  readonly offset?: number
  readonly maxWaitMs?: number
  readonly session?: readonly [id: number, epoch: number]
}

function fetchFrame({ offset = 0, maxWaitMs = 5000, session = [0, 0] }: Asked = {}): Buffer {
  const writer = new Writer(256)
  const [sessionId, sessionEpoch] = session
  const topics = [{ topic: 't', partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1 << 20 }] }]
  api.encodeRequest(writer, { maxWaitMs, minBytes: 1, maxBytes: 1 << 20, sessionId, sessionEpoch, topics }, VERSION)
  return requestFrame({ apiKey: apiKeys.Fetch, apiVersion: VERSION, correlationId: 9, body: writer.finish() })
}

function read(frame: Buffer | undefined): FetchResponse {
  assert.ok(frame !== undefined, 'no answer')
  return api.decodeResponse(new Reader(frame, 8, frame.length), VERSION)
}

function records(bytes?: Buffer, more: object = {}): Parameters<typeof api.encodeResponse>[1] {
  const partition = { partitionIndex: 0, highWatermark: 50, records: bytes ?? null, ...more }
  return { sessionId: 7, responses: [{ topic: 't', partitions: [partition] }] }
}

test('the broker is asked in short waits without a session until there is something, and other requests pass between', async () => {
  const { rig, client, broker } = await start(only('a'), (_, at) => records(at === 8 ? batch(0, 'ba') : undefined))
  const began = rig.runtime.now()
  client.send(fetchFrame())
  client.send(requestFrame({ apiKey: HEARTBEAT, correlationId: 10, body: Buffer.from('beat') }))
  await rig.run(() => client.frames.length === 2)
  const answer = read(client.frames[0])
  assert.equal(answer.sessionId, 0)
  const bytes = answer.responses[0]?.partitions[0]?.records ?? Buffer.alloc(0)
  assert.deepEqual(
    readRecords(bytes, 1000).map(({ offset }) => offset),
    [1],
  )
  for (const { maxWaitMs, sessionId, sessionEpoch } of broker.fetches)
    assert.ok(maxWaitMs <= 250 && sessionId === 0 && sessionEpoch === -1)
  const beat = broker.apis.find(({ apiKey }) => apiKey === HEARTBEAT)
  assert.ok(beat !== undefined && beat.atMs - began < 300, 'the heartbeat did not wait for the long poll')
})

test('with nothing to find the client waits as long as it asked, and gets zero bytes', async () => {
  const { rig, client } = await start(only('a'), () => records())
  const began = rig.runtime.now()
  client.send(fetchFrame({ maxWaitMs: 1000 }))
  await rig.run(() => client.frames.length === 1)
  const waited = rig.runtime.now() - began
  assert.ok(waited >= 1000 && waited < 1300, `${waited} ms`)
  assert.equal(read(client.frames[0]).responses[0]?.partitions[0]?.records?.length, 0)
})

test('a running session is refused once; after that an epoch of 0 or −1 is a full Fetch, whatever the id', async () => {
  const { rig, client, broker } = await start(only('a'), () => records(batch(0, 'a')))
  for (const session of [
    [7, 3],
    [7, 0],
    [7, -1],
  ] as const)
    client.send(fetchFrame({ session }))
  await rig.run(() => client.frames.length === 3)
  const answers = client.frames.map(read)
  assert.deepEqual(
    answers.map(({ errorCode, sessionId, responses }) => [errorCode, sessionId, responses.length]),
    [
      [70, 0, 0],
      [0, 0, 1],
      [0, 0, 1],
    ],
  )
  assert.equal(broker.fetches.length, 2)
  assert.deepEqual(rig.meter.errors, [70])
})

test('a Fetch in which nothing is edited passes, without a session', async () => {
  const { rig, client, broker } = await start(undefined, () => records(batch(0, 'b')))
  client.send(fetchFrame({ maxWaitMs: 4000 }))
  await rig.run(() => client.frames.length === 1)
  const [asked] = broker.fetches
  assert.deepEqual([asked?.sessionEpoch, asked?.maxWaitMs], [-1, 4000])
})

test('draining ends the wait', async () => {
  const { rig, client } = await start(only('a'), () => records())
  client.send(fetchFrame({ maxWaitMs: 60_000 }))
  await rig.run(undefined, 1000)
  rig.connection.drain()
  await rig.run(() => client.frames.length === 1, 300)
  assert.equal(read(client.frames[0]).errorCode, 0)
})

test('a connection that closes ends the reading', async () => {
  const { rig, client, broker } = await start(only('a'), () => records())
  client.send(fetchFrame({ maxWaitMs: 600_000 }))
  await rig.run(undefined, 1000)
  rig.connection.close('client_closed')
  const asked = broker.fetches.length
  await rig.run(undefined, 5000)
  assert.equal(broker.fetches.length, asked)
})

for (const [what, policy] of [
  ['keep', { keep: () => fail() }],
  ['limit', { limit: () => fail() }],
  ['count', { count: () => fail() }],
] as [string, PartitionPolicy][]) {
  test(`a bug in a policy's ${what} costs the connection, not the process`, async () => {
    const { rig, client } = await start(policy, () => records(batch(0, 'a')))
    client.send(fetchFrame())
    await rig.run(() => client.closed)
    assert.deepEqual(rig.meter.reasons, ['internal_error'])
  })
}

function fail(): never {
  throw new Error('a bug')
}

test('a broker that answers nonsense costs the connection', async () => {
  const { rig, client } = await start(only('a'), () => 'garbage')
  client.send(fetchFrame())
  await rig.run(() => client.closed)
  assert.deepEqual(rig.meter.reasons, ['malformed_response'])
})

test('a corrupt batch is answered with 2, counted each time, and logged once', async () => {
  const broken = batch(0, 'aaaa')
  broken[broken.length - 1]! ^= 1
  const { rig, client } = await start(only('a'), () => records(broken))
  client.send(fetchFrame())
  client.send(fetchFrame())
  await rig.run(() => client.frames.length === 2)
  assert.equal(read(client.frames[1]).responses[0]?.partitions[0]?.errorCode, 2)
  assert.deepEqual(rig.meter.errors, [2, 2])
  const lines = rig.log.lines.filter(({ message }) => message.includes('CORRUPT_MESSAGE'))
  assert.deepEqual(
    lines.map(({ fields: { topic, partition, offset } }) => [topic, partition, offset]),
    [['t', 0, 0]],
  )
})
