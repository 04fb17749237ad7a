/** Starting, probing and stopping `headgate serve` as a user and as Kubernetes do, with the real binary. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import { freePorts } from '../../../scripts/kafka/ports.ts'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { until } from '../../support/until.ts'
import { getJson, headgate, metrics, type Served, serve, status } from '../headgate.ts'

const timeout = 200_000
let broker: FakeBroker
let upstream = ''

before(async () => {
  broker = await FakeBroker.start(await nodeRuntime())
  upstream = broker.bootstrap.join(',')
})
after(() => broker.stop())

/** A kafkajs consumer that has a Fetch of up to ten minutes parked at the broker. */
async function parkedConsumer(served: Served, topic: string) {
  const kafka = new Kafka({
    clientId: 'ops',
    brokers: [served.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
  })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic }] })
  await admin.disconnect()
  const consumer = kafka.consumer({ groupId: `g-${topic}`, maxWaitTimeInMs: 600_000, retry: { retries: 0 } })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic] })
  await consumer.run({ eachMessage: async () => undefined })
  await until(async () => {
    const series = await metrics(served.admin)
    const fetches = [...series].filter(
      ([name]) => name.startsWith('headgate_requests_total') && name.includes('api="Fetch"'),
    )
    return fetches.some(([, value]) => value > 0)
  })
  return consumer
}

describe('headgate serve', { timeout }, () => {
  test('needs nothing but UPSTREAM_BOOTSTRAP, says where clients connect, counts what passes', async () => {
    const served = await serve(upstream)
    await until(async () => (await status(`${served.admin}/readyz`)) === 200)
    const kafka = new Kafka({ clientId: 'ops', brokers: [served.bootstrap], logLevel: logLevel.NOTHING })
    const producer = kafka.producer()
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic: 'counted' }] })
    await producer.connect()
    await producer.send({ topic: 'counted', messages: [{ value: 'a' }] })
    const open = [...(await metrics(served.admin))].filter(([name]) => name.startsWith('headgate_connections_active'))
    assert.ok(open.reduce((sum, [, value]) => sum + value, 0) >= 2)
    await producer.disconnect()
    await admin.disconnect()
    await until(async () => (await active(served)) === 0)
    const series = await metrics(served.admin)
    const sum = (prefix: string) =>
      [...series].filter(([name]) => name.startsWith(prefix)).reduce((total, [, value]) => total + value, 0)
    assert.equal(sum('headgate_connections_opened_total'), sum('headgate_connections_closed_total'))
    assert.equal(sum('headgate_requests_total{listener="default",node="1",api="Produce"'), 1)
    assert.equal(sum('headgate_requests_total'), sum('headgate_responses_total'))
    assert.equal(sum('headgate_requests_in_flight'), 0)
    assert.equal(series.get('headgate_ready'), 1)
    await checkMetricsPage(served)
    served.kill('SIGTERM')
    assert.deepEqual(await served.finished, { code: 0, signal: null })
    assert.equal(served.stderr, '')
    const messages = served.log.map(({ msg }) => String(msg))
    assert.ok(
      messages.some((text) => text.includes(`bootstrap.servers=${served.bootstrap}`)),
      served.stdout,
    )
    assert.ok(
      messages.some((text) => text.includes(`node 1 → ${upstream}`)),
      served.stdout,
    )
  })

  test('an upstream that is not there yet: alive, not ready, says so, and ready when it comes', async () => {
    const [port = 0] = await freePorts(1)
    const served = await serve(`127.0.0.1:${port}`)
    assert.equal(await status(`${served.admin}/readyz`), 503)
    await until(async () => {
      const { reasons } = (await getJson(`${served.admin}/readyz`)) as { reasons: string[] }
      return reasons.some((reason) => reason.includes(`127.0.0.1:${port}`) && reason.includes('ECONNREFUSED'))
    })
    const warned = () => served.log.filter(({ level, msg }) => level === 'warn' && String(msg).includes('ECONNREFUSED'))
    await until(() => warned().length > 0)
    const late = await FakeBroker.start(await nodeRuntime(), { port: () => port })
    await until(async () => (await status(`${served.admin}/readyz`)) === 200)
    await late.stop()
    // Sticky: an outage of Kafka must not take the pod out of its Services.
    assert.equal(await status(`${served.admin}/readyz`), 200)
    served.kill('SIGINT')
    assert.equal((await served.finished).code, 0)
  })

  test('idle: SIGTERM ends it although the delay is an hour', async () => {
    const served = await serve(upstream, { HEADGATE_SHUTDOWN_DELAY: '1h', HEADGATE_SHUTDOWN_GRACE: '2h' })
    served.kill('SIGTERM')
    assert.deepEqual(await served.finished, { code: 0, signal: null })
    assert.equal(served.log.at(-1)?.msg, 'stopped')
  })

  test('busy: not ready but serving during the delay; a parked Fetch is answered early; exit 0', async () => {
    const served = await serve(upstream, { HEADGATE_SHUTDOWN_DELAY: '6s', HEADGATE_SHUTDOWN_GRACE: '20m' })
    const consumer = await parkedConsumer(served, 'parked')
    served.kill('SIGTERM')
    await until(async () => (await status(`${served.admin}/readyz`)) === 503)
    const late = new Kafka({ clientId: 'late', brokers: [served.bootstrap], logLevel: logLevel.NOTHING })
    const admin = late.admin()
    await admin.connect()
    assert.ok((await admin.listTopics()).includes('parked'))
    await admin.disconnect()
    assert.deepEqual(await served.finished, { code: 0, signal: null })
    const reasons = served.log.filter(({ msg }) => msg === 'connection closed').map(({ reason }) => String(reason))
    assert.ok(reasons.includes('drained'), served.stdout)
    assert.deepEqual(
      served.log.filter(({ level }) => level === 'error'),
      [],
    )
    await consumer.disconnect().catch(() => undefined)
  })

  test('a second signal ends it at once', async () => {
    const served = await serve(upstream, { HEADGATE_SHUTDOWN_DELAY: '1h', HEADGATE_SHUTDOWN_GRACE: '2h' })
    const socket = await held(served)
    served.kill('SIGTERM')
    await until(() => served.log.some(({ msg }) => msg === 'stopping'))
    served.kill('SIGINT')
    assert.deepEqual(await served.finished, { code: 130, signal: null })
    assert.match(String(served.log.at(-1)?.msg), /second signal/)
    socket.destroy()
  })
})

describe('what cannot start says why in one message', { timeout }, () => {
  test('a port in use', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const [base = 0] = await freePorts(5)
    const env = { UPSTREAM_BOOTSTRAP: upstream, HEADGATE_ADMIN_BIND: '127.0.0.1:0', HEADGATE_LISTENERS_0_NODE_IDS: '0' }
    const free = { ...env, HEADGATE_LISTENERS_0_BASE_PORT: String(base) }
    const cases: [env: Record<string, string>, setting: RegExp][] = [
      [{ ...free, HEADGATE_LISTENERS_0_BOOTSTRAP_PORT: String(port) }, /bootstrapPort/],
      [
        { ...free, HEADGATE_LISTENERS_0_BASE_PORT: String(port), HEADGATE_LISTENERS_0_BOOTSTRAP_PORT: String(base) },
        /basePort/,
      ],
      [{ ...free, HEADGATE_ADMIN_BIND: `127.0.0.1:${port}` }, /admin\.bind/],
    ]
    for (const [settings, setting] of cases) {
      const run = await headgate(['serve'], settings)
      assert.deepEqual(await run.finished, { code: 1, signal: null })
      assert.match(run.stderr, new RegExp(`^headgate: .*127\\.0\\.0\\.1:${port}.*in use.*\\n$`))
      assert.match(run.stderr, setting)
    }
    await new Promise((resolve) => taken.close(resolve))
  })

  test('an address that this machine does not have', async () => {
    const run = await headgate(['serve'], { UPSTREAM_BOOTSTRAP: upstream, HEADGATE_LISTENERS_0_BIND: '203.0.113.7' })
    assert.equal((await run.finished).code, 1)
    assert.match(run.stderr, /^headgate: .*203\.0\.113\.7.*\n$/)
  })

  test('a wrong configuration: every problem with line, key and fix; no stack', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'upstream:\n  bootstrap: kafka\nlimits:\n  inflight: 3\n')
    for (const command of ['serve', 'check', 'config']) {
      const run = await headgate([command, '--config', file])
      assert.deepEqual(await run.finished, { code: 2, signal: null })
      assert.equal(run.stdout, '')
      assert.match(run.stderr, /^headgate: the configuration is wrong\n/)
      assert.match(run.stderr, /bad\.yaml:2: upstream\.bootstrap is not host:port: "kafka" \(fix: /)
      assert.match(run.stderr, /bad\.yaml:4: limits\.inflight is not a setting \(fix: did you mean inFlight\?\)/)
      assert.doesNotMatch(run.stderr, /^\s+at /m)
    }
  })

  test('no upstream, an unknown command, an unknown option', async () => {
    const none = await headgate(['serve'])
    assert.equal((await none.finished).code, 2)
    assert.match(none.stderr, /upstream\.bootstrap is not set \(fix: .*UPSTREAM_BOOTSTRAP.*--upstream/)
    const command = await headgate(['sreve'])
    assert.equal((await command.finished).code, 2)
    assert.match(command.stderr, /did you mean serve\?/)
    const option = await headgate(['serve', '--upstraem', 'a:1'])
    assert.equal((await option.finished).code, 2)
    assert.match(option.stderr, /did you mean --upstream\?/)
  })
})

test('healthcheck and help work as programs', { timeout }, async () => {
  const served = await serve(upstream)
  await until(async () => (await status(`${served.admin}/readyz`)) === 200)
  const healthy = await headgate(['healthcheck', '--admin', served.admin])
  assert.equal((await healthy.finished).code, 0)
  served.kill('SIGTERM')
  await served.finished
  const gone = await headgate(['healthcheck', '--admin', served.admin])
  assert.equal((await gone.finished).code, 1)
  for (const args of [['help'], ['help', 'serve'], ['serve', '--help'], ['version']]) {
    const run = await headgate(args)
    assert.equal((await run.finished).code, 0)
    assert.match(run.stdout, /headgate/)
  }
})

/** docs/metrics.md lists what the binary exports; more only where it says "Only with", and in its chapter on layouts. */
async function checkMetricsPage({ admin }: Served): Promise<void> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const real = new Set([...text.matchAll(/^# TYPE (headgate_\w+)/gm)].map((match) => match[1]))
  const [page = ''] = readFileSync('docs/metrics.md', 'utf8').split('\n## Layouts\n')
  const rows = [...page.matchAll(/^\| `(headgate_\w+)`(.*)$/gm)]
  for (const name of real)
    assert.ok(
      rows.some((row) => row[1] === name),
      `${name} is not in docs/metrics.md`,
    )
  for (const [, name, rest] of rows) assert.ok(real.has(name) || rest?.includes('Only with'), `${name} does not exist`)
}

/** Client connections open now, by the metrics. */
async function active(served: Served): Promise<number> {
  const series = [...(await metrics(served.admin))]
  return series
    .filter(([name]) => name.startsWith('headgate_connections_active'))
    .reduce((sum, [, value]) => sum + value, 0)
}

/** A client connection that says nothing. */
async function held(served: Served): Promise<Socket> {
  const [host = '', port = ''] = served.bootstrap.split(':')
  const socket = connect(Number(port), host)
  socket.on('error', () => undefined)
  await until(async () => (await active(served)) === 1)
  return socket
}
