/** Brokers that appear, move, go, are named wrongly or are not there yet, on real sockets. */
import assert from 'node:assert/strict'
import net from 'node:net'
import { afterEach, test } from 'node:test'
import { freePorts } from '../../../scripts/kafka/ports.ts'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { RawClient } from '../../support/raw-client.ts'
import { portRange, type Running, run, type RunningOptions } from '../../support/running.ts'
import { ScriptedCluster } from '../../support/scripted-cluster.ts'
import { until } from '../../support/until.ts'

const ECHO = 19
const options = { timeout: 200_000 }
const cleanups: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function startProxy(options_: RunningOptions): Promise<Running> {
  const running = await run(options_)
  cleanups.push(() => running.proxy.close())
  return running
}

function startCluster(): ScriptedCluster {
  const cluster = new ScriptedCluster()
  cleanups.push(() => cluster.close())
  return cluster
}

async function connect(address: string): Promise<RawClient> {
  const client = await RawClient.connect(address)
  cleanups.push(() => client.close())
  return client
}

interface Shown {
  nodeId: number
  host: string
  port: number
}

async function brokersSeen(address: string): Promise<Shown[]> {
  const client = await connect(address)
  const { brokers } = (await client.call(apiKeys.Metadata, 9, { topics: null })) as { brokers: Shown[] }
  client.close()
  return brokers.map(({ nodeId, host, port }) => ({ nodeId, host, port }))
}

/** Which node answers behind an address: each counts its requests. */
async function servedBy(cluster: ScriptedCluster, address: string): Promise<number | undefined> {
  const before = new Map([...cluster.nodes].map(([id, node]) => [id, node.requests.length]))
  const client = await connect(address)
  await client.exchange(ECHO, 0, Buffer.from('who'))
  client.close()
  for (const [id, node] of cluster.nodes)
    if (node.requests.slice(before.get(id)).some((frame) => frame[5] === ECHO)) return id
  return undefined
}

function reasons(running: Running): string[] {
  return running.meters.all.reasons
}

test('a broker that appears has its port before any client hears of it', options, async () => {
  const cluster = startCluster()
  const first = await cluster.start(1)
  const running = await startProxy({ upstream: [`127.0.0.1:${first.port}`] })
  assert.deepEqual(
    (await brokersSeen(running.bootstrap)).map(({ nodeId }) => nodeId),
    [1],
  )
  for (const id of [7, 15]) {
    await cluster.start(id)
    const shown = (await brokersSeen(running.bootstrap)).find(({ nodeId }) => nodeId === id)
    assert.deepEqual(shown, { nodeId: id, host: '127.0.0.1', port: running.basePort + id })
    assert.equal(await servedBy(cluster, running.node(id)), id, 'at once')
  }
  assert.deepEqual(
    running.proxy.nodes().map(({ nodeId }) => nodeId),
    [-1, 0, 1, 2, 3, 7, 15],
  )
})

test('a broker that moves: new connections go to its new address', options, async () => {
  const cluster = startCluster()
  const first = await cluster.start(1)
  await cluster.start(2)
  const running = await startProxy({ upstream: [`127.0.0.1:${first.port}`] })
  await brokersSeen(running.bootstrap)
  const old = await connect(running.node(2))
  await old.exchange(ECHO, 0, Buffer.from('x'))
  const elsewhere = await cluster.start(9, { name: false })
  cluster.named.set(2, { host: '127.0.0.1', port: elsewhere.port })
  await brokersSeen(running.bootstrap)
  assert.equal(await servedBy(cluster, running.node(2)), 9)
  await old.exchange(ECHO, 0, Buffer.from('the old connection lives'))
})

test('a broker that is gone refuses its own clients only, and is found again', options, async () => {
  const cluster = startCluster()
  const first = await cluster.start(1)
  const second = await cluster.start(2)
  const running = await startProxy({ upstream: [`127.0.0.1:${first.port}`] })
  await brokersSeen(running.bootstrap)
  const canary = await connect(running.node(1))
  await canary.exchange(ECHO, 0, Buffer.from('x'))
  const victim = await connect(running.node(2))
  await victim.exchange(ECHO, 0, Buffer.from('x'))
  await cluster.stop(2)
  await victim.untilEnd()
  const refused = await connect(running.node(2))
  await refused.untilEnd()
  assert.ok(reasons(running).includes('broker_unreachable'))
  await canary.exchange(ECHO, 0, Buffer.from('y'))
  await cluster.start(2, { port: second.port })
  assert.equal(await servedBy(cluster, running.node(2)), 2)
})

test('the first bootstrap server is dead: many clients at once are all served', options, async () => {
  const cluster = startCluster()
  const live = await cluster.start(1)
  const [dead = 0, alsoDead = 0] = await freePorts(2)
  const running = await startProxy({
    upstream: [`127.0.0.1:${dead}`, `127.0.0.1:${alsoDead}`, `127.0.0.1:${live.port}`],
  })
  const clients = await Promise.all(Array.from({ length: 40 }, () => connect(running.bootstrap)))
  await Promise.all(clients.map((client) => client.exchange(ECHO, 0, Buffer.from('x'))))
  await until(() => running.proxy.readiness().ready)
  assert.deepEqual(reasons(running), [])
})

test('all bootstrap servers die: clients still get in through the brokers that are known', options, async () => {
  const cluster = startCluster()
  const seed = await cluster.start(1)
  await cluster.start(2)
  const running = await startProxy({ upstream: [`127.0.0.1:${seed.port}`] })
  await until(() => running.proxy.readiness().ready)
  await cluster.stop(1)
  assert.equal(await servedBy(cluster, running.bootstrap), 2)
})

test('no broker is there at first: not ready, and it says so; then all goes well', options, async () => {
  const cluster = startCluster()
  const [port = 0] = await freePorts(1)
  const running = await startProxy({ upstream: [`127.0.0.1:${port}`] })
  await until(() => running.log.lines.filter(({ level }) => level === 'warn').length > 0)
  const { ready, reasons: why } = running.proxy.readiness()
  assert.equal(ready, false)
  assert.match(why.join(), new RegExp(`127\\.0\\.0\\.1:${port}`))
  const early = await connect(running.bootstrap)
  await early.untilEnd()
  assert.deepEqual(reasons(running), ['broker_unreachable'])
  await cluster.start(1, { port })
  await until(() => running.proxy.readiness().ready)
  assert.equal(await servedBy(cluster, running.bootstrap), 1)
  const warnings = running.log.lines.filter(({ message }) => message.includes('cannot ask the upstream cluster'))
  assert.equal(warnings.length, 1, 'said once, not at every attempt')
})

test('after a restart a client of a broker that is not known yet is held, not refused', options, async () => {
  const cluster = startCluster()
  const [port = 0] = await freePorts(1)
  const running = await startProxy({ upstream: [`127.0.0.1:${port}`] })
  const client = await connect(running.node(1))
  const reply = client.exchange(ECHO, 0, Buffer.from('patient'))
  await until(() => running.log.lines.some(({ level }) => level === 'warn'))
  assert.equal(client.ended, false)
  await cluster.start(1, { port })
  assert.equal((await reply).toString('latin1', 8), 'patient')
})

test(
  'a broker that nobody names is waited for, but not for ever; one that joins meanwhile is found',
  options,
  async () => {
    const cluster = startCluster()
    const seed = await cluster.start(1)
    const running = await startProxy({ upstream: [`127.0.0.1:${seed.port}`], settings: { dialTimeout: '5s' } })
    await until(() => running.proxy.readiness().ready)
    const [never, joins] = [await connect(running.node(3)), await connect(running.node(2))]
    const reply = joins.exchange(ECHO, 0, Buffer.from('late'))
    await cluster.start(2)
    assert.equal((await reply).toString('latin1', 8), 'late')
    await never.untilEnd()
    assert.deepEqual(reasons(running), ['broker_unreachable'])
  },
)

test(
  'several listeners advertise different names for the same brokers; bind, advertise and dial are apart',
  options,
  async () => {
    const cluster = startCluster()
    const seed = await cluster.start(1)
    const real = await cluster.start(2, { name: false })
    cluster.named.set(2, { host: 'broker-2.invalid', port: 9092 })
    const [inner, outer] = [await portRange(), await portRange()]
    await startProxy({
      upstream: [`127.0.0.1:${seed.port}`],
      listeners: [
        { basePort: inner, bind: '0.0.0.0', advertise: 'kafka.inner', dial: { 2: `127.0.0.1:${real.port}` } },
        { basePort: outer, advertise: 'kafka.outer', advertisePort: 40_000, dial: { 2: `127.0.0.1:${real.port}` } },
      ],
    })
    assert.deepEqual(
      await brokersSeen(`127.0.0.1:${inner - 1}`),
      [1, 2].map((nodeId) => ({ nodeId, host: 'kafka.inner', port: inner + nodeId })),
    )
    assert.deepEqual(
      await brokersSeen(`127.0.0.1:${outer - 1}`),
      [1, 2].map((nodeId) => ({ nodeId, host: 'kafka.outer', port: 40_000 + nodeId })),
    )
    assert.equal(await servedBy(cluster, `127.0.0.1:${inner + 2}`), 2)
    assert.equal(await servedBy(cluster, `127.0.0.1:${outer + 2}`), 2)
  },
)

test('a port in use at the start is one clear error, and nothing is left listening', options, async () => {
  const basePort = await portRange()
  const holder = net.createServer()
  await new Promise<void>((resolve) => holder.listen(basePort + 2, '127.0.0.1', resolve))
  cleanups.push(() => new Promise((resolve) => holder.close(() => resolve())))
  await assert.rejects(run({ upstream: ['127.0.0.1:9'], basePort }), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'HG_PORT_UNAVAILABLE')
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${basePort + 2}.*in use`))
    return true
  })
  for (const port of [-1, 0, 1, 3].map((n) => basePort + n)) {
    const probe = net.createServer()
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen(port, '127.0.0.1', resolve)
    })
    await new Promise<void>((resolve) => probe.close(() => resolve()))
  }
})

test(
  'a port that cannot be had while it runs: that broker is left out, said once, and shown when the port is free',
  options,
  async () => {
    const cluster = startCluster()
    const seed = await cluster.start(1)
    const running = await startProxy({ upstream: [`127.0.0.1:${seed.port}`] })
    const holder = net.createServer()
    await new Promise<void>((resolve) => holder.listen(running.basePort + 11, '127.0.0.1', resolve))
    await cluster.start(11)
    await cluster.start(60_000, { name: true }) // beyond the last port there is
    for (let i = 0; i < 3; i++)
      assert.deepEqual(
        (await brokersSeen(running.bootstrap)).map(({ nodeId }) => nodeId),
        [1],
      )
    assert.equal(running.log.lines.filter(({ level }) => level === 'error').length, 1)
    await new Promise<void>((resolve) => holder.close(() => resolve()))
    await until(async () => (await brokersSeen(running.bootstrap)).some(({ nodeId }) => nodeId === 11))
    assert.equal(await servedBy(cluster, running.node(11)), 11)
  },
)

test('a name with several addresses, of which the first does not answer', options, async () => {
  const cluster = startCluster()
  const seed = await cluster.start(1)
  const running = await startProxy({ upstream: [`localhost:${seed.port}`] })
  const client = await connect(running.bootstrap)
  await client.exchange(ECHO, 0, Buffer.alloc(100_000, 1))
})

test('read through data events, where sockets cannot be adopted, all is the same', options, async () => {
  const cluster = startCluster()
  const seed = await cluster.start(1)
  const running = await startProxy({ upstream: [`127.0.0.1:${seed.port}`], onread: false })
  const client = await connect(running.bootstrap)
  const bodies = [10, 70_000, 262_144, 900_000, 0, 5].map((length, i) => Buffer.alloc(length, i + 1))
  for (const body of bodies) assert.ok((await client.exchange(ECHO, 0, body)).subarray(8).equals(body))
  client.socket.end()
  await client.untilEnd()
  await until(() => running.proxy.connections === 0)
  assert.deepEqual(reasons(running), ['client_closed'])
})
