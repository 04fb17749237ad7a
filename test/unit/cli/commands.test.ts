import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { test } from 'node:test'
import { command as check } from '../../../src/cli/check.ts'
import { type Command, UsageError } from '../../../src/cli/command.ts'
import { command as config } from '../../../src/cli/config.ts'
import { command as healthcheck } from '../../../src/cli/healthcheck.ts'
import { command as version } from '../../../src/cli/version.ts'
import { startAdmin } from '../../../src/admin/server.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'

async function run(command: Command, args: string[], env: Record<string, string> = {}) {
  const text = { out: '', err: '' }
  const code = await command.run(args, {
    out: (part) => void (text.out += part),
    err: (part) => void (text.err += part),
    env,
  })
  return { code, ...text }
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

test('version', async () => {
  assert.match((await run(version, [])).out, /^headgate \d+\.\d+\.\d+ \(node v\d+.*\)\n$/)
})

test('unknown and malformed options name the nearest one', async () => {
  await assert.rejects(
    run(check, ['--upstraem', 'a:1']),
    new UsageError('there is no option --upstraem; did you mean --upstream?'),
  )
  await assert.rejects(run(check, ['--config']), UsageError)
  await assert.rejects(run(check, ['file.yaml']), UsageError)
  await assert.rejects(run(healthcheck, ['--timeout', 'soon']), /--timeout is not a duration: soon/)
  await assert.rejects(run(healthcheck, ['--admin', 'nowhere']), /--admin is not a URL/)
})

test('config shows value and source, as YAML that can be loaded again', async () => {
  const { out } = await run(
    config,
    ['--upstream', 'a:1,b:2', '--set', 'listeners[1].name=second', '--set', 'listeners[1].basePort=30000'],
    {
      HEADGATE_LIMITS_IN_FLIGHT: '7',
    },
  )
  assert.match(out, /^ {2}bootstrap: a:1,b:2 +# --upstream$/m)
  assert.match(out, /^ {2}inFlight: 7 +# environment HEADGATE_LIMITS_IN_FLIGHT$/m)
  assert.match(out, /^ {2}connections: 10000 +# default$/m)
  assert.match(out, /^ {2}- name: second +# --set listeners\[1\]\.name$/m)
  const { mkdtempSync, rmSync, writeFileSync } = await import('node:fs')
  const folder = mkdtempSync(`${(await import('node:os')).tmpdir()}/headgate-`)
  try {
    writeFileSync(`${folder}/again.yaml`, out)
    const again = loadConfig({ file: `${folder}/again.yaml` }).config
    assert.equal(again.limits.inFlight, 7)
    assert.equal(again.listeners[1]?.bootstrapPort, 29_999)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('config --env names a variable for every setting, and each is accepted', async () => {
  const { out } = await run(config, ['--env', '--upstream', 'a:1'])
  const lines = out
    .trim()
    .split('\n')
    .map((line) => line.split('='))
  const environment = Object.fromEntries(lines.map(([name = '', value = '']) => [name, value]))
  assert.equal(environment.HEADGATE_LISTENERS_0_ADVERTISE, '127.0.0.1')
  const { config: loaded } = loadConfig({ environment })
  assert.deepEqual(loaded, loadConfig({ upstream: 'a:1' }).config)
})

test('config works before an upstream is chosen and says so', async () => {
  assert.match((await run(config, [])).out, /bootstrap: not-set:9092 +# not set; serve needs it/)
  await assert.rejects(run(check, []), { name: 'ConfigError' })
})

test('check prints where clients connect', async () => {
  const { code, out } = await run(check, ['--upstream', 'a:1', '--set', 'listeners[0].advertise=kafka.example'])
  assert.equal(code, 0)
  assert.match(out, /the configuration is valid/)
  assert.match(out, /node n, for example 0 +listen 127\.0\.0\.1:19093, advertised kafka\.example:19093/)
})

test('check --connect: a broker, something else, nothing, and a taken port', async (t) => {
  const broker = createServer((socket) => {
    socket.once('data', (request) => {
      const reply = Buffer.alloc(4 + 10 + 6)
      reply.writeInt32BE(16, 0)
      request.copy(reply, 4, 8, 12)
      reply.writeInt32BE(1, 10)
      socket.write(reply.subarray(0, 9))
      setImmediate(() => socket.end(reply.subarray(9)))
    })
  })
  const closer = createServer((socket) => socket.on('data', () => socket.end()))
  const other = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  t.after(() => [broker, closer, other].forEach((server) => server.close()))
  const [good, bad, odd] = [await listening(broker), await listening(closer), await listening(other)]
  const ports = ['--set', `listeners[0].nodeIds=`, '--set', 'admin.bind=127.0.0.1:0']
  const free = await listening(createServer().unref())
  const args = (upstream: string, port: number) => [
    '--connect',
    '--upstream',
    upstream,
    '--set',
    `listeners[0].bootstrapPort=${port}`,
    ...ports,
  ]
  const taken = await run(check, args(`127.0.0.1:${good}`, free))
  assert.equal(taken.code, 1)
  assert.match(
    taken.out,
    /FAILED cannot listen on 127\.0\.0\.1:\d+: the port is in use .*listeners\[0\]\.bootstrapPort/,
  )
  assert.match(taken.out, /FAILED cannot ask the upstream cluster for its brokers/)
  assert.match(taken.out, /ok {5}upstream 127\.0\.0\.1:\d+ is a Kafka broker \(1 APIs\)/)
  const none = await run(check, args(`127.0.0.1:${bad},127.0.0.1:${odd},127.0.0.1:1`, free))
  assert.equal(none.code, 1)
  assert.match(none.out, /closed the connection/)
  assert.match(none.out, /does not answer as Kafka does/)
  assert.match(none.out, /cannot be reached: .*ECONNREFUSED/)
})

test('check --connect: every broker that the cluster names is dialled as Headgate would', async (t) => {
  const cluster = await FakeBroker.start(await nodeRuntime(), { nodeIds: [1, 2, 50_000] })
  t.after(() => cluster.stop())
  const args = ['--connect', '--upstream', cluster.bootstrap[0] ?? '', '--set', 'listeners[0].dial=2=127.0.0.1:1']
  const { code, out } = await run(check, args)
  assert.equal(code, 1)
  assert.match(out, /ok {5}node 1 at 127\.0\.0\.1:\d+ can be reached/)
  assert.match(out, /FAILED node 2 at 127\.0\.0\.1:1 \(dial\) cannot be reached: .*ECONNREFUSED.*fix: correct dial/)
  assert.match(out, /FAILED node 50000 has no port: basePort 19093 \+ 50000 is above 65535/)
})

test('healthcheck follows /readyz, --live /livez, and fails without a server', async () => {
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    allowChanges: false,
    routes: [
      { method: 'GET', path: '/livez', summary: '', handle: () => ({ body: 1 }) },
      { method: 'GET', path: '/readyz', summary: '', handle: () => ({ status: 503, body: { reasons: ['x'] } }) },
    ],
    onError: (error) => assert.fail(error),
  })
  const url = `http://127.0.0.1:${admin.port}`
  const notReady = await run(healthcheck, ['--admin', url])
  assert.deepEqual([notReady.code, notReady.out], [1, ''])
  assert.match(notReady.err, /answers 503 .*"x"/)
  // Found through the configuration, wherever it binds, and without an upstream.
  assert.equal((await run(healthcheck, ['--live'], { HEADGATE_ADMIN_BIND: `0.0.0.0:${admin.port}` })).code, 0)
  const elsewhere = { HEADGATE_ADMIN_BIND: '127.0.0.1:1', HEADGATE_ADMIN: url }
  assert.equal((await run(healthcheck, ['--live'], elsewhere)).code, 0)
  await admin.close()
  const gone = await run(healthcheck, ['--admin', url])
  assert.equal(gone.code, 1)
  assert.match(gone.err, /ECONNREFUSED/)
})
