/**
 * Hostile clients and a failing upstream against the real binary. All the while a canary connection exchanges requests:
 * nobody else may notice anything. At the end every descriptor is back, no socket is left half closed, and memory is
 * what it was.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { apiKeys, apis } from '../../../src/protocol/api-table.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { Prng } from '../../support/prng.ts'
import { RawClient } from '../../support/raw-client.ts'
import { ScriptedCluster } from '../../support/scripted-cluster.ts'
import { closeWaits, openFiles, residentBytes } from '../../support/sockets.ts'
import { until } from '../../support/until.ts'
import { metrics, type Served, serve } from '../headgate.ts'

const timeout = 200_000
const cluster = new ScriptedCluster()
let served: Served
let pid = 0
let canary: Canary
let filesAtStart = 0

/** A connection that never stops exchanging; `check` fails if it ever missed a beat. */
class Canary {
  exchanged = 0
  private readonly client: RawClient
  private failure: unknown
  private stopped = false
  readonly done: Promise<void>

  constructor(client: RawClient) {
    this.client = client
    this.done = this.run()
  }

  async check(): Promise<void> {
    const before = this.exchanged
    await until(() => this.failure !== undefined || this.exchanged > before + 1)
    assert.equal(this.failure, undefined, 'the canary was disturbed')
  }

  async stop(): Promise<void> {
    this.stopped = true
    await this.done
    this.client.close()
  }

  private async run(): Promise<void> {
    try {
      while (!this.stopped) {
        const body = Buffer.from(`beat ${this.exchanged}`)
        const reply = await this.client.exchange(CREATE_TOPICS, 0, body)
        assert.ok(reply.subarray(8).equals(body))
        this.exchanged++
        await delay(5)
      }
    } catch (error) {
      this.failure = error
    }
  }
}

const CREATE_TOPICS = 19
/** What the scripted broker does badly, by the first byte of a request's body. */
const DELETE_TOPICS = 20

before(async () => {
  await cluster.start(1)
  served = await serve(`127.0.0.1:${cluster.nodes.get(1)?.port ?? 0}`, {
    HEADGATE_LIMITS_HEADER_TIMEOUT: '1s',
    HEADGATE_LIMITS_PROGRESS_TIMEOUT: '3s',
    HEADGATE_LOG_LEVEL: 'warn',
    // Else its memory is also what nobody has collected yet, which is more the busier the machine is.
    NODE_OPTIONS: '--max-old-space-size=48',
  })
  pid = served.child.pid ?? 0
  await until(() => (cluster.nodes.get(1)?.connections ?? 0) > 0)
  const warm = await RawClient.connect(served.bootstrap)
  await warm.exchange(CREATE_TOPICS, 0, Buffer.from('warm'))
  canary = new Canary(await RawClient.connect(served.bootstrap))
  await canary.check()
  warm.close()
  await until(async () => (await active()) === 1)
  filesAtStart = openFiles(pid)
})

after(async () => {
  await canary.stop()
  served.kill('SIGKILL')
  await served.finished
  await cluster.close()
})

function port(): number {
  return Number(served.bootstrap.split(':')[1])
}

async function active(): Promise<number> {
  const page = await metrics(served.admin)
  let sum = 0
  for (const [series, value] of page) if (series.startsWith('headgate_connections_active')) sum += value
  return sum
}

/** Nobody else noticed, and nothing is left of it. */
async function unharmed(): Promise<void> {
  await canary.check()
  await until(async () => (await active()) === 1)
  // What the process itself may open in between (a connection of the metrics page) is not counted against it.
  await until(() => openFiles(pid) <= filesAtStart + 2)
  await until(() => closeWaits([port()]) === 0)
}

/** Waits for `count` such lines, no more: the log comes through a pipe, a moment after what it tells of. */
async function logged(is: (line: Record<string, unknown>) => boolean, count?: number): Promise<void> {
  const found = (): number => served.log.filter(is).length
  await until(() => found() >= (count ?? 1))
  if (count !== undefined) assert.equal(found(), count)
}

/** Until the proxy holds answers for its clients, and all it holds stays as it is while others are served. */
async function untilStill(): Promise<void> {
  let held = 0
  for (let same = 0; same < 20; ) {
    await canary.check()
    const now = (await metrics(served.admin)).get('headgate_buffered_bytes{towards="client"}') ?? 0
    same = now > 0 && now === held ? same + 1 : 0
    held = now
  }
}

async function isClosed(bytes: Buffer, end = false): Promise<RawClient> {
  const client = await RawClient.connect(served.bootstrap)
  client.splitting = false
  client.send(bytes)
  if (end) client.socket.end()
  await client.untilEnd()
  client.close()
  return client
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

describe('hostile clients', { timeout }, () => {
  test('sizes that are negative, huge or too short', async () => {
    for (const size of [-1, -(2 ** 31), 0, 3, 7, 2 ** 31 - 1, 100 * 1024 * 1024 + 1])
      await isClosed(Buffer.concat([int32(size), Buffer.alloc(64)]))
    await unharmed()
    for (const reason of ['frame_too_large', 'malformed_request']) await logged((line) => line.reason === reason)
  })

  test('a TLS hello and HTTP requests, which get a 400', async () => {
    await isClosed(Buffer.concat([Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), Buffer.alloc(506, 7)]))
    for (const request of ['GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n', 'POST / HTTP/1.0\r\n\r\n']) {
      const client = await isClosed(Buffer.from(request))
      assert.match(Buffer.concat(client.received).toString(), /^HTTP\/1\.1 400 [^]*admin port/)
    }
    await unharmed()
    for (const reason of ['tls_on_plain_port', 'http_on_kafka_port'])
      await logged((line) => line.reason === reason && typeof line.detail === 'string')
  })

  test('random bytes, whole and ended at once', async () => {
    for (let seed = 1; seed <= 150; seed++) {
      const prng = new Prng(seed)
      const bytes = prng.bytes(prng.between(1, 4000))
      if (prng.below(2) === 0) bytes.writeUInt32BE(prng.below(3900), 0)
      if (bytes.length > 8 && prng.below(2) === 0) bytes.writeInt32BE(prng.below(92) << 16, 4)
      await isClosed(bytes, true)
    }
    await unharmed()
    assert.ok(!served.log.some((line) => line.reason === 'internal_error'))
  })

  test('frames that end early, at every length', async () => {
    const frame = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(30) })
    for (let length = 0; length < frame.length; length++) await isClosed(frame.subarray(0, length), true)
    const long = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(900_000) })
    for (const length of [300_000, 262_144, 262_143, 800_000]) await isClosed(long.subarray(0, length), true)
    await unharmed()
  })

  test('valid headers with garbage bodies, for every API', async () => {
    const prng = new Prng(7)
    for (const { key, minVersion, maxVersion } of apis)
      for (const version of [minVersion, maxVersion, maxVersion + 1]) {
        const client = await RawClient.connect(served.bootstrap)
        client.splitting = false
        client.send(
          requestFrame({ apiKey: key, apiVersion: version, correlationId: 5, flexible: true, body: prng.bytes(200) }),
        )
        client.socket.end()
        await client.untilEnd()
        client.close()
      }
    await unharmed()
    assert.ok(!served.log.some((line) => line.reason === 'internal_error'))
  })

  test('slow writers: a header byte by byte, and a request that stands still', async () => {
    const frame = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(100) })
    const slow = await RawClient.connect(served.bootstrap)
    const trickle = (async () => {
      for (const byte of frame) {
        if (slow.ended || slow.closed) break
        slow.send(Buffer.from([byte]))
        await delay(400)
      }
    })()
    const stuck = await RawClient.connect(served.bootstrap)
    stuck.send(frame.subarray(0, 60))
    await Promise.all([slow.untilEnd(), stuck.untilEnd(), trickle])
    slow.close()
    stuck.close()
    await unharmed()
    await logged((line) => line.reason === 'progress_timeout', 2)
  })

  test('clients that reset, before, inside and after a request', async () => {
    const frame = requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.alloc(600_000) })
    for (let round = 0; round < 60; round++) {
      const client = await RawClient.connect(served.bootstrap)
      client.send(frame.subarray(0, [0, 2, 100, 300_000, frame.length][round % 5]))
      if (round % 2 === 0) await delay(5)
      client.reset()
    }
    await unharmed()
  })

  test('2,000 connections at once', async (t) => {
    const before = residentBytes(pid)
    const clients = await Promise.all(Array.from({ length: 2000 }, () => RawClient.connect(served.bootstrap)))
    const replies = await Promise.all(
      clients.map((client, i) => client.exchange(CREATE_TOPICS, 0, Buffer.from(`n${i}`))),
    )
    replies.forEach((reply, i) => assert.equal(reply.toString('latin1', 8), `n${i}`))
    await canary.check()
    const grown = residentBytes(pid) - before
    for (const client of clients) client.close()
    await unharmed()
    t.diagnostic(`${Math.round(grown / 2 ** 20)} MiB more`)
    assert.ok(grown < 120 * 1024 * 1024, `2,000 connections took ${Math.round(grown / 2 ** 20)} MiB`)
  })

  test('readers that do not read: memory is bounded, and they get everything in the end', async (t) => {
    cluster.respond = (frame) =>
      responseFrame(frame.readInt32BE(8), frame[5] === DELETE_TOPICS ? Buffer.alloc(4_000_000, 3) : frame.subarray(18))
    const before = residentBytes(pid)
    const clients = await Promise.all(Array.from({ length: 30 }, () => RawClient.connect(served.bootstrap)))
    for (const client of clients) {
      client.socket.pause()
      for (let i = 0; i < 4; i++)
        client.send(requestFrame({ apiKey: DELETE_TOPICS, correlationId: i, body: Buffer.alloc(10) }))
    }
    await untilStill()
    const grown = residentBytes(pid) - before
    for (const client of clients) client.socket.resume()
    await Promise.all(clients.map((client) => client.until(() => client.frames.length === 4)))
    for (const client of clients) client.close()
    cluster.respond = undefined
    await unharmed()
    t.diagnostic(`${Math.round(grown / 2 ** 20)} MiB more`)
    assert.ok(grown < 100 * 1024 * 1024, `480 MB of answers that nobody reads took ${Math.round(grown / 2 ** 20)} MiB`)
  })
})

describe('a failing upstream', { timeout }, () => {
  /** How a broker spoils its answer to DeleteTopics; everything else is echoed. */
  const spoiled: [what: string, spoil: (frame: Buffer, socket: Socket) => Buffer | undefined][] = [
    ['half an answer and FIN', (frame, socket) => (socket.end(answer(frame, 1000).subarray(0, 500)), undefined)],
    [
      'half an answer and RST',
      (frame, socket) => (
        socket.write(answer(frame, 1000).subarray(0, 500), () => socket.resetAndDestroy()), undefined
      ),
    ],
    [
      'half a long answer and FIN',
      (frame, socket) => (socket.end(answer(frame, 900_000).subarray(0, 500_000)), undefined),
    ],
    ['a size alone and FIN', (_frame, socket) => (socket.end(int32(100)), undefined)],
    ['FIN instead of an answer', (_frame, socket) => (socket.end(), undefined)],
    ['RST instead of an answer', (_frame, socket) => (socket.resetAndDestroy(), undefined)],
    ['a wrong correlation id', (frame) => responseFrame(frame.readInt32BE(8) + 1, Buffer.from('x'))],
    ['a negative size', () => int32(-1)],
    ['a size of 2', () => Buffer.concat([int32(2), Buffer.alloc(2)])],
    ['random bytes', () => new Prng(3).bytes(500)],
    ['text', () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
    ['the answer twice', (frame) => Buffer.concat([answer(frame, 10), answer(frame, 10)])],
    ['an answer that stands still', (frame) => answer(frame, 1000).subarray(0, 500)],
  ]

  function answer(frame: Buffer, bytes: number): Buffer {
    return responseFrame(frame.readInt32BE(8), Buffer.alloc(bytes, 5))
  }

  for (const [what, spoil] of spoiled)
    test(`${what}: that client's connection ends, and no other`, async () => {
      cluster.respond = (frame, socket) =>
        frame[5] === DELETE_TOPICS ? spoil(frame, socket) : responseFrame(frame.readInt32BE(8), frame.subarray(18))
      const clients = await Promise.all(Array.from({ length: 5 }, () => RawClient.connect(served.bootstrap)))
      for (const client of clients) {
        client.splitting = false
        client.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1, body: Buffer.from('good') }))
        await client.until(() => client.received.length > 0)
        client.send(requestFrame({ apiKey: DELETE_TOPICS, correlationId: 2 }))
      }
      await Promise.all(clients.map((client) => client.untilEnd()))
      for (const client of clients) client.close()
      cluster.respond = undefined
      await unharmed()
    })

  test('it half-closes while a request is on its way: the client sees the end, and its own is carried over', async () => {
    const client = await RawClient.connect(served.bootstrap)
    await client.exchange(CREATE_TOPICS, 0, Buffer.from('x'))
    client.socket.end()
    await client.untilEnd()
    client.close()
    await unharmed()
  })

  test('Metadata that names addresses nobody can dial does no harm', async () => {
    for (const [id, address] of [
      [2, { host: '127.0.0.1', port: 70_000 }],
      [3, { host: '', port: 9092 }],
      [-5, { host: 'x', port: 9 }],
      [3, { host: 'a'.repeat(3000), port: 9092 }],
    ] as const) {
      cluster.named.set(id, address)
      const client = await RawClient.connect(served.bootstrap)
      await client.call(apiKeys.Metadata, 9, { topics: null })
      const base = port() + 1
      const node = await RawClient.connect(`127.0.0.1:${base + Math.max(0, id)}`)
      node.send(requestFrame({ apiKey: CREATE_TOPICS, correlationId: 1 }))
      client.close()
      node.close()
      cluster.named.delete(id)
    }
    await unharmed()
  })
})

test('after all of it the memory is bounded', { timeout }, async (t) => {
  await canary.check()
  const resident = Math.round(residentBytes(pid) / 2 ** 20)
  t.diagnostic(`${resident} MiB`)
  assert.ok(resident < 200, `${resident} MiB`)
  assert.ok(canary.exchanged > 100)
})
