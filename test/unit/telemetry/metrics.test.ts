import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { apis } from '../../../src/protocol/api-table.ts'
import { closeReasons } from '../../../src/telemetry/meter.ts'
import { SlotMeters } from '../../../src/telemetry/meters.ts'
import { createRegistry } from '../../../src/telemetry/metrics.ts'

/** The metrics page as a map from series to value. */
async function scrape(meters: SlotMeters): Promise<Map<string, number>> {
  const registry = createRegistry(meters, { version: '1.2.3', node: 'v20.0.0' }, () => true)
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const split = line.lastIndexOf(' ')
      return [line.slice(0, split), Number(line.slice(split + 1))]
    }),
  )
}

test('what was counted comes out under its name and labels', async () => {
  const meters = new SlotMeters()
  const meter = meters.meter('default', 1)
  assert.equal(meters.meter('default', 1), meter)
  meter.request(3, 12, 40)
  meter.request(3, 12, 60)
  meter.response(3, 12, 500)
  meter.request(999, 0, 7)
  meter.request(3, 99, 8)
  meter.error(0, 6)
  meter.error(0, 32_000)
  meter.error(-7, -1)
  meter.inFlight(1)
  meter.inFlight(1)
  meter.inFlight(-1)
  meter.paused('downstream', 1.5)
  meter.undecodable(1, 11)
  meters.meter('other', -1).opened()
  meters.publish({ name: 'things', help: 'Things.', type: 'gauge', read: () => [{ labels: {}, value: 4 }] })
  const series = await scrape(meters)
  const node = 'listener="default",node="1"'
  assert.equal(series.get(`headgate_requests_total{${node},api="Metadata",version="12"}`), 2)
  assert.equal(series.get(`headgate_request_bytes_total{${node},api="Metadata",version="12"}`), 100)
  assert.equal(series.get(`headgate_response_bytes_total{${node},api="Metadata",version="12"}`), 500)
  assert.equal(series.get(`headgate_requests_total{${node},api="other",version="other"}`), 2)
  assert.equal(series.get(`headgate_errors_total{${node},api="Produce",error="NOT_LEADER_OR_FOLLOWER"}`), 1)
  assert.equal(series.get(`headgate_errors_total{${node},api="Produce",error="other"}`), 1)
  assert.equal(series.get(`headgate_errors_total{${node},api="other",error="UNKNOWN_SERVER_ERROR"}`), 1)
  assert.equal(series.get(`headgate_requests_in_flight{${node}}`), 1)
  assert.equal(series.get(`headgate_paused_seconds_total{${node},cause="downstream"}`), 1.5)
  assert.equal(series.get(`headgate_undecodable_frames_total{${node},api="Fetch",version="11"}`), 1)
  assert.equal(series.get('headgate_connections_opened_total{listener="other",node="bootstrap"}'), 1)
  assert.equal(series.get('headgate_build_info{version="1.2.3",node="v20.0.0"}'), 1)
  assert.equal(series.get('headgate_things'), 4)
  assert.ok((series.get('process_resident_memory_bytes') ?? 0) > 0)
  assert.ok(series.has('nodejs_eventloop_lag_p99_seconds'))
})

test('active is opened minus closed after any sequence', async () => {
  const meters = new SlotMeters()
  const meter = meters.meter('l', 0)
  closeReasons.forEach((reason, index) => {
    for (let i = 0; i <= index; i++) meter.opened()
    for (let i = 0; i < index; i++) meter.closed(reason)
  })
  const series = await scrape(meters)
  const closed = [...series].filter(([name]) => name.startsWith('headgate_connections_closed_total'))
  const active = series.get('headgate_connections_active{listener="l",node="0"}')
  const opened = series.get('headgate_connections_opened_total{listener="l",node="0"}') ?? 0
  assert.equal(closed.length, closeReasons.length - 1)
  assert.equal(active, opened - closed.reduce((sum, [, value]) => sum + value, 0))
  assert.equal(active, closeReasons.length)
})

test('latency is split into proxy and broker, long polls apart', async () => {
  const meters = new SlotMeters()
  meters.meter('l', 1).latency(3, 0.2, 3, false)
  meters.meter('l', 2).latency(3, 0.3, 5, false)
  meters.meter('l', 2).latency(1, 0.1, 500, true)
  const series = await scrape(meters)
  const metadata = 'listener="l",api="Metadata"'
  assert.equal(series.get(`headgate_proxy_seconds_count{${metadata}}`), 2)
  assert.equal(series.get(`headgate_proxy_seconds_bucket{${metadata},le="0.00025"}`), 1)
  assert.equal(series.get(`headgate_broker_seconds_bucket{${metadata},le="0.004"}`), 1)
  assert.equal(series.get(`headgate_broker_seconds_bucket{${metadata},le="+Inf"}`), 2)
  assert.equal(series.get(`headgate_broker_seconds_sum{${metadata}}`), 0.008)
  assert.equal(series.get('headgate_long_poll_broker_seconds_sum{listener="l",api="Fetch"}'), 0.5)
  assert.equal(series.get('headgate_broker_seconds_count{listener="l",api="Fetch"}'), undefined)
  assert.equal(series.get('headgate_node_broker_seconds_count{listener="l",node="2"}'), 1)
  assert.equal(meters.overall().broker.count, 2)
})

test('no client can make the number of series grow beyond the tables', async () => {
  const meters = new SlotMeters()
  const meter = meters.meter('l', 1)
  for (let key = -5; key < 400; key++) {
    for (let version = -2; version < 40; version++) {
      meter.request(key, version, 1)
      meter.latency(key, 1, 1, false)
    }
    for (let code = -5; code < 400; code++) meter.error(key, code)
  }
  const names = [...(await scrape(meters)).keys()]
  const known = apis.reduce((sum, api) => sum + api.maxVersion + 1, 0)
  assert.equal(names.filter((name) => name.startsWith('headgate_requests_total')).length, known + 1)
  assert.equal(names.filter((name) => name.startsWith('headgate_proxy_seconds_count')).length, apis.length + 1)
})

test('names follow the conventions of Prometheus', async () => {
  const registry = createRegistry(new SlotMeters(), { version: '1', node: '20' }, () => false)
  for (const { name, help, type } of await registry.getMetricsAsJSON()) {
    if (!name.startsWith('headgate_')) continue
    assert.match(name, /^headgate_[a-z_]+$/)
    assert.ok(help.length > 10, name)
    const kind = String(type)
    assert.equal(name.endsWith('_total'), kind === 'counter', name)
    if (kind === 'histogram') assert.ok(name.endsWith('_seconds'), name)
    assert.doesNotMatch(name, /_(count|sum|bucket)$/)
  }
})

test('every metric of the process that docs/metrics.md names exists', () => {
  const page = readFileSync('docs/metrics.md', 'utf8')
  const registry = createRegistry(new SlotMeters(), { version: '1', node: '20' }, () => false)
  const real = registry.getMetricsAsArray().map((metric) => metric.name)
  for (const [, name] of page.matchAll(/`((?:process|nodejs)_[a-z_0-9]+)`/g)) assert.ok(real.includes(name ?? ''), name)
})
