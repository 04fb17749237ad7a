import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { type AdminSource, adminRoutes } from '../../../src/admin/routes.ts'
import type { LayoutSource } from '../../../src/admin/layout-routes.ts'
import { type AdminOptions, isLoopback, startAdmin } from '../../../src/admin/server.ts'
import type { LogLevel } from '../../../src/telemetry/logger.ts'
import { SlotMeters } from '../../../src/telemetry/meters.ts'

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

function send(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

const json = { 'content-type': 'application/json' }
const errorOf = (answer: Answer) => (JSON.parse(answer.body) as { error: { code: string; fix?: string } }).error

const layouts: LayoutSource = {
  state: () => ({ condition: 'ready' }),
  topics: () => [{ topic: 'orders' }],
  topic: async (name) => ({ ok: true, body: { topic: name } }),
  change: async (name, change, body) =>
    name === 'orders'
      ? { ok: true, body: { name, change, body } }
      : { ok: false, status: 404, code: 'HG_TOPIC_UNKNOWN', message: `there is no topic ${name}`, fix: 'look' },
  gates: (group) => [{ group }],
  shutGroups: () => ['g'],
}

function source() {
  const log: { level: LogLevel } = { level: 'info' }
  const state = { ready: false, reasons: ['no broker yet'] }
  const full: AdminSource = {
    version: '9.9.9',
    meters: new SlotMeters(),
    log,
    readiness: () => state,
    nodes: () => [{ nodeId: 1 }],
    ranges: () => [],
    layouts,
    inspect: undefined,
    clients: () => {
      throw new Error('a bug')
    },
    metrics: async () => ({ text: 'a 1\n', type: 'text/plain' }),
  }
  return { full, log, state }
}

async function withAdmin(
  run: (port: number, parts: ReturnType<typeof source>, errors: Error[]) => Promise<void>,
  options: Partial<AdminOptions> = {},
) {
  const parts = source()
  const errors: Error[] = []
  const admin = await startAdmin({
    host: '127.0.0.1',
    port: 0,
    allowChanges: false,
    routes: adminRoutes(parts.full),
    onError: (error) => errors.push(error),
    ...options,
  })
  try {
    await run(admin.port, parts, errors)
  } finally {
    await admin.close()
  }
}

test('probes, metrics and the API answer', () =>
  withAdmin(async (port, { state }) => {
    assert.deepEqual((await send(port, 'GET', '/livez')).status, 200)
    const notReady = await send(port, 'GET', '/readyz')
    assert.deepEqual([notReady.status, JSON.parse(notReady.body)], [503, { ready: false, reasons: ['no broker yet'] }])
    state.ready = true
    assert.equal((await send(port, 'GET', '/readyz?verbose')).status, 200)
    const metrics = await send(port, 'GET', '/metrics')
    assert.deepEqual([metrics.body, metrics.headers['content-type']], ['a 1\n', 'text/plain'])
    assert.deepEqual(JSON.parse((await send(port, 'GET', '/api/nodes')).body), [{ nodeId: 1 }])
    assert.deepEqual(JSON.parse((await send(port, 'GET', '/api/version')).body), {
      version: '9.9.9',
      node: process.version,
    })
    const index = JSON.parse((await send(port, 'GET', '/')).body) as { routes: { path: string }[] }
    for (const { path } of index.routes) assert.notEqual((await send(port, 'GET', path)).status, 404, path)
  }))

test('HEAD answers like GET, without a body', () =>
  withAdmin(async (port) => {
    const head = await send(port, 'HEAD', '/livez')
    assert.deepEqual([head.status, head.body, head.headers['content-length']], [200, '', '14'])
  }))

test('unknown paths and methods are refused in JSON', () =>
  withAdmin(async (port) => {
    const missing = await send(port, 'GET', '/nope')
    assert.deepEqual([missing.status, errorOf(missing).code], [404, 'HG_NOT_FOUND'])
    const wrong = await send(port, 'POST', '/livez', json, '{}')
    assert.deepEqual([wrong.status, errorOf(wrong).code, wrong.headers.allow], [405, 'HG_METHOD', 'GET'])
    assert.equal((await send(port, 'GET', '//')).status, 404)
  }))

test('a bug in a handler is a 500 without details, and is reported', () =>
  withAdmin(async (port, _, errors) => {
    const answer = await send(port, 'GET', '/api/clients')
    assert.deepEqual([answer.status, errorOf(answer).code], [500, 'HG_INTERNAL'])
    assert.doesNotMatch(answer.body, /a bug/)
    assert.deepEqual(
      errors.map((error) => error.message),
      ['a bug'],
    )
  }))

test('the log level can be changed over loopback', () =>
  withAdmin(async (port, { log }) => {
    const answer = await send(port, 'PUT', '/api/log-level', json, '{"level":"debug"}')
    assert.deepEqual([answer.status, log.level], [200, 'debug'])
    assert.equal((await send(port, 'PUT', '/api/log-level', json, '{"level":"loud"}')).status, 400)
    assert.equal((await send(port, 'PUT', '/api/log-level', json, 'null')).status, 400)
    assert.equal((await send(port, 'PUT', '/api/log-level', json, '{')).status, 400)
    assert.equal((await send(port, 'PUT', '/api/log-level', {}, '{"level":"info"}')).status, 415)
    assert.equal((await send(port, 'PUT', '/api/log-level', json, 'x'.repeat(70_000))).status, 413)
    assert.equal(log.level, 'debug')
  }))

test('a page of another site cannot change anything', () =>
  withAdmin(async (port, { log }) => {
    const answer = await send(port, 'PUT', '/api/log-level', { ...json, origin: 'http://evil' }, '{"level":"debug"}')
    assert.deepEqual([answer.status, errorOf(answer).code, log.level], [403, 'HG_ORIGIN', 'info'])
  }))

test('on a reachable address changes need admin.allowChanges', async () => {
  const change = (port: number) => send(port, 'PUT', '/api/log-level', json, '{"level":"debug"}')
  await withAdmin(
    async (port, { log }) => {
      const answer = await change(port)
      assert.deepEqual([answer.status, errorOf(answer).code, log.level], [403, 'HG_READ_ONLY', 'info'])
      assert.match(errorOf(answer).fix ?? '', /allowChanges/)
      assert.equal((await send(port, 'GET', '/livez')).status, 200)
    },
    { host: '0.0.0.0' },
  )
  await withAdmin(async (port) => assert.equal((await change(port)).status, 200), {
    host: '0.0.0.0',
    allowChanges: true,
  })
})

test('what is not HTTP is dropped, the next caller is served', () =>
  withAdmin(async (port) => {
    await new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from([0, 0, 0, 18, 0, 18, 0, 3])))
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.resume()
    })
    assert.equal((await send(port, 'GET', '/livez')).status, 200)
  }))

test('a port in use rejects with the system’s error', () =>
  withAdmin(async (port) => {
    await assert.rejects(
      withAdmin(async () => undefined, { port }),
      { code: 'EADDRINUSE' },
    )
  }))

test('loopback addresses', () => {
  for (const address of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1']) assert.ok(isLoopback(address), address)
  for (const address of ['0.0.0.0', '::', '10.0.0.1', '::ffff:10.0.0.1', '1270.0.0.1']) assert.ok(!isLoopback(address))
})

test('on loopback only names of this host are answered to', () =>
  withAdmin(async (port) => {
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example']) {
      const answer = await send(port, 'GET', '/livez', { host })
      assert.deepEqual([answer.status, errorOf(answer).code], [403, 'HG_HOST'], host)
    }
    for (const host of ['localhost', `127.0.0.1:${port}`, `[::1]:${port}`, 'headgate.localhost'])
      assert.equal((await send(port, 'GET', '/livez', { host })).status, 200, host)
  }))

test('parts of an address in braces are names, decoded', () =>
  withAdmin(async (port) => {
    const body = async (path: string) => JSON.parse((await send(port, 'GET', path)).body) as unknown
    assert.deepEqual(await body('/api/topics'), [{ topic: 'orders' }])
    assert.deepEqual(await body('/api/topics/orders.eu?x=1'), { topic: 'orders.eu' })
    assert.deepEqual(await body('/api/groups/a%2Fb%20c/gates'), [{ group: 'a/b c' }])
    assert.equal((await send(port, 'GET', '/api/groups//gates')).status, 404)
    assert.equal((await send(port, 'GET', '/api/topics/')).status, 404)
    assert.equal((await send(port, 'GET', '/api/topics/a/b/c')).status, 404)
    const malformed = await send(port, 'GET', '/api/topics/%zz')
    assert.deepEqual([malformed.status, errorOf(malformed).code], [400, 'HG_VALUE'])
  }))

test('changes of a topic are calls that change something', () =>
  withAdmin(async (port) => {
    const done = await send(port, 'POST', '/api/topics/orders/expand', json, '{"to":6}')
    assert.deepEqual(JSON.parse(done.body), { name: 'orders', change: 'expand', body: { to: 6 } })
    const refused = await send(port, 'POST', '/api/topics/no/shrink', json, '{"to":6}')
    assert.deepEqual(
      [refused.status, errorOf(refused)],
      [404, { code: 'HG_TOPIC_UNKNOWN', message: 'there is no topic no', fix: 'look' }],
    )
    const wrong = await send(port, 'GET', '/api/topics/orders/expand')
    assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'POST'])
    const site = await send(port, 'POST', '/api/topics/orders/expand', { ...json, origin: 'http://evil' }, '{"to":6}')
    assert.equal(site.status, 403)
  }))

test('without layouts in the configuration the API says how to have them', () =>
  withAdmin(
    async (port) => {
      const answer = await send(port, 'GET', '/api/topics')
      assert.deepEqual([answer.status, errorOf(answer).code], [404, 'HG_NO_LAYOUTS'])
      assert.match(errorOf(answer).fix ?? '', /layouts: \{\}/)
    },
    { routes: adminRoutes({ ...source().full, layouts: undefined }) },
  ))
