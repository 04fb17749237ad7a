import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { configSchema } from '../../../src/config/schema.ts'
import { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import { startProxy } from '../../../src/lifecycle/proxy.ts'
import { SlotMeters } from '../../../src/telemetry/meters.ts'
import { createRegistry } from '../../../src/telemetry/metrics.ts'
import { RecordingLog } from '../../support/telemetry.ts'
import { VirtualRuntime } from '../../support/virtual-runtime.ts'

/** Every metric that a proxy with all features has: name → type. */
async function metricsOfAProxy(): Promise<Map<string, string>> {
  const runtime = new VirtualRuntime(1)
  const broker = await FakeBroker.start(runtime)
  const config = configSchema.parse({
    upstream: { bootstrap: broker.bootstrap },
    listeners: [{ name: 'l', nodeIds: '0-3', basePort: 20_001 }],
    topics: { orders: { layouts: {} } },
    groups: { g: { ranges: [{ clientId: 'c', keys: ['0-ff'] }] } },
  })
  const meters = new SlotMeters()
  const proxy = await startProxy(config, { runtime, log: new RecordingLog(), meters })
  const registry = createRegistry(meters, { version: '1', node: '20' }, () => true)
  const found = (await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)] as const)
  let isClosed = false
  void proxy.close().then(() => (isClosed = true))
  await runtime.run(() => isClosed)
  return new Map(found.filter(([name]) => name.startsWith('headgate_')))
}

const page = readFileSync('docs/metrics.md', 'utf8')

test('docs/metrics.md has every metric with its type, and none that does not exist', async () => {
  const real = await metricsOfAProxy()
  const documented = new Map(
    Array.from(page.matchAll(/^\| `(headgate_\w+)` *\| (\w+)/gm), ([, name = '', type = '']) => [name, type]),
  )
  assert.deepEqual([...documented].sort(), [...real].sort())
})

test('the queries and alerts in docs/metrics.md and the rules in deploy name metrics that exist', async () => {
  const real = await metricsOfAProxy()
  const queries = Array.from(page.matchAll(/```(?:promql|yaml)\n([^]*?)```/g), ([, text = '']) => text)
  const rules = readFileSync('deploy/prometheus-rules.yml', 'utf8')
  const names = [...queries, rules].flatMap((text) => text.match(/(?<!_)headgate_\w+/g) ?? [])
  assert.ok(names.length > 10)
  for (const name of names) assert.ok(real.has(name) || real.has(name.replace(/_(bucket|count|sum)$/, '')), name)
})
