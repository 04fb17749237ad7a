/** Letting clients go, on real sockets: long polls are answered early, what is in flight is finished, the rest is cut. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import type { FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import { codecRequest, openResponse } from '../../support/codec-frames.ts'
import { requestFrame, responseFrame } from '../../support/frames.ts'
import { RawClient } from '../../support/raw-client.ts'
import { run } from '../../support/running.ts'
import { ScriptedCluster } from '../../support/scripted-cluster.ts'
import { until } from '../../support/until.ts'

const ECHO = 19
const SLOW = 20
const NEVER = 37
const options = { timeout: 200_000 }
/** Far beyond the time-out of the tests: what does not end by itself fails them. */
const graceMs = 3_600_000

/** `finish` sends the answers to the slow requests that came. */
async function start() {
  const cluster = new ScriptedCluster()
  const seed = await cluster.start(1)
  const slow: (() => void)[] = []
  cluster.respond = (frame, socket) => {
    const [apiKey, id] = [frame.readInt16BE(4), frame.readInt32BE(8)]
    if (apiKey === ECHO) return responseFrame(id, frame.subarray(18))
    if (apiKey === SLOW) slow.push(() => socket.write(responseFrame(id, Buffer.from('finished'))))
    return undefined // a Fetch that waits, and what is never answered
  }
  const running = await run({ upstream: [`127.0.0.1:${seed.port}`] })
  await until(() => running.proxy.readiness().ready)
  const finish = (): void => {
    for (const answer of slow.splice(0)) answer()
  }
  return { cluster, running, seed, finish }
}

test('long polls, requests in flight and idle connections', options, async () => {
  const { cluster, running, seed, finish } = await start()
  const [polling, busy, idle] = await Promise.all([1, 1, -1].map((node) => RawClient.connect(running.node(node))))
  assert.ok(polling !== undefined && busy !== undefined && idle !== undefined)
  await idle.exchange(ECHO, 0, Buffer.from('x'))
  const topic = { topic: 't', partitions: [{ partition: 3, fetchOffset: 77, partitionMaxBytes: 1000 }] }
  polling.send(codecRequest(apiKeys.Fetch, 11, 900, { maxWaitMs: 600_000, minBytes: 1, topics: [topic] }))
  busy.send(requestFrame({ apiKey: SLOW, correlationId: 4 }))
  await until(() => seed.requests.filter((frame) => [1, SLOW].includes(frame.readInt16BE(4))).length === 2)
  const drained = running.proxy.drain(graceMs)
  await Promise.all([polling, idle].map((client) => client.untilEnd()))
  assert.equal(busy.ended, false, 'its request is still in flight')
  finish()
  await drained
  await busy.untilEnd()
  const [empty] = polling.frames
  assert.equal(empty?.readInt32BE(4), 900)
  const body = openResponse(apiKeys.Fetch, 11, empty ?? Buffer.alloc(0)) as FetchResponse
  assert.deepEqual(
    body.responses.map(({ partitions }) =>
      partitions.map(({ partitionIndex, errorCode }) => [partitionIndex, errorCode]),
    ),
    [[[3, 0]]],
  )
  assert.equal(busy.frames[0]?.toString('latin1', 8), 'finished')
  assert.deepEqual(running.meters.all.reasons, ['drained', 'drained', 'drained'])
  await assert.rejects(RawClient.connect(running.bootstrap), 'nobody is accepted any more')
  await running.proxy.close()
  await cluster.close()
})

test('a long poll behind a request that is still finished', options, async () => {
  const { cluster, running, seed, finish } = await start()
  const [client, idle] = await Promise.all([1, 1].map((node) => RawClient.connect(running.node(node))))
  assert.ok(client !== undefined && idle !== undefined)
  await idle.exchange(ECHO, 0, Buffer.from('x'))
  const topic = { topic: 't', partitions: [{ partition: 3, fetchOffset: 77, partitionMaxBytes: 1000 }] }
  client.send(requestFrame({ apiKey: SLOW, correlationId: 4 }))
  for (const id of [900, 901])
    client.send(codecRequest(apiKeys.Fetch, 11, id, { maxWaitMs: 600_000, minBytes: 1, topics: [topic] }))
  await until(() => seed.requests.filter((frame) => frame.readInt16BE(4) === 1).length === 2)
  const drained = running.proxy.drain(graceMs)
  await idle.untilEnd() // all connections to this broker were looked at
  assert.deepEqual([client.ended, client.frames.length], [false, 0])
  finish()
  await drained
  await client.untilEnd()
  assert.deepEqual(
    client.frames.map((frame) => frame.readInt32BE(4)),
    [4, 900, 901],
  )
  assert.deepEqual(running.meters.all.reasons, ['drained', 'drained'])
  await running.proxy.close()
  await cluster.close()
})

test('what is not finished by the deadline is cut', options, async () => {
  const { cluster, running, seed } = await start()
  const client = await RawClient.connect(running.node(1))
  client.send(requestFrame({ apiKey: NEVER, correlationId: 1 }))
  await until(() => seed.requests.some((frame) => frame.readInt16BE(4) === NEVER))
  await running.proxy.drain(300)
  assert.equal(running.proxy.connections, 1)
  assert.equal(client.ended, false)
  await running.proxy.close()
  await client.untilEnd()
  assert.deepEqual(running.meters.all.reasons, ['shutdown'])
  await until(() => [...seed.sockets].length === 0)
  await cluster.close()
})

test('a client with ever more requests is drained too, with an answer to each that was taken', options, async () => {
  const { cluster, running } = await start()
  const client = await RawClient.connect(running.node(1))
  let sent = 0
  const more = (): void => {
    if (client.ended || client.closed) return
    for (let i = 0; i < 20; i++)
      client.send(requestFrame({ apiKey: ECHO, correlationId: ++sent, body: Buffer.alloc(3000, 1) }))
    setImmediate(more)
  }
  more()
  await client.until(() => client.frames.length > 200)
  await running.proxy.drain(graceMs)
  await client.untilEnd()
  assert.deepEqual(running.meters.all.reasons, ['drained'])
  client.frames.forEach((frame, i) => assert.equal(frame.readInt32BE(4), i + 1))
  await running.proxy.close()
  await cluster.close()
})
