import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { ConfigError, formatProblem } from '../../../src/config/problems.ts'
import { jsonSchema, type JsonSchema } from '../../../src/config/settings.ts'
import type { GateRule, TopicRule } from '../../../src/features/layouts/topic-rule.ts'
import { partitionerNames } from '../../../src/records/hashes/partitioners.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-layouts-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'c.yaml')

function load(yaml: string) {
  writeFileSync(file, `upstream: {bootstrap: 'kafka:9092'}\n${yaml}`)
  return loadConfig({ file }).config
}

function problems(yaml: string): string[] {
  try {
    load(yaml)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.replaceAll(file, 'c.yaml').split('\n')
  }
  return []
}

test('an empty map opts topics in, with every default', () => {
  const rules: readonly TopicRule[] = load('topics: {orders: {layouts: {}}, plain: {}}').topics
  assert.deepEqual(rules, [
    {
      topic: /^(?:orders)$/,
      partitioner: 'auto',
      order: 'key',
      sealAfterMs: undefined,
      goneAfterMs: 120_000,
      late: 'accept',
      stateLoss: 'hold',
    },
  ])
})

test('rules stay in the order of the file, so that the first that matches can hold', () => {
  const yaml = `topics:
  orders-eu: {layouts: {order: producer, sealAfter: 10m, partitioner: crc32}}
  orders-.*: {layouts: {goneAfter: 5s, late: refuse, stateLoss: pass}}
`
  const rules = load(yaml).topics
  assert.deepEqual(
    rules.map(({ topic, order, sealAfterMs, goneAfterMs }) => [String(topic), order, sealAfterMs, goneAfterMs]),
    [
      ['/^(?:orders-eu)$/', 'producer', 600_000, 120_000],
      ['/^(?:orders-.*)$/', 'key', undefined, 5000],
    ],
  )
  assert.deepEqual([rules[1]?.late, rules[1]?.stateLoss], ['refuse', 'pass'])
})

test('no rules, or no settings of a rule, are no error', () => {
  assert.deepEqual(load('topics:\ngroups:\n').topics, [])
  assert.deepEqual(load('topics: {a: {layouts: }}').topics, load('topics: {a: {layouts: {}}}').topics)
})

test('rules that cannot hold, and shell patterns, are warned of with line and fix', () => {
  const warned = (yaml: string) => {
    writeFileSync(file, `upstream: {bootstrap: 'kafka:9092'}\n${yaml}`)
    return loadConfig({ file }).warnings.map((one) => formatProblem(one).replace(file, 'c.yaml'))
  }
  assert.deepEqual(
    warned(`topics:
  'orders-.*': {layouts: {}}
  orders-eu: {layouts: {order: producer}}
  'pay.*': {layouts: {}}
  'payments\\.v[12]': {layouts: {}}
  'payments-.*': {layouts: {}}
  'logs-*': {layouts: {}}
groups:
  '.*': {gate: position}
  late: {gate: block}
`),
    [
      'c.yaml:4: topics.orders-eu never holds: orders-.* before it matches the same topics (fix: put the exception before the rule it is taken from)',
      'c.yaml:7: topics.payments-.* never holds: pay.* before it matches the same topics (fix: put the exception before the rule it is taken from)',
      'c.yaml:8: topics.logs-* matches only names such as logs- and logs--: it is a regular expression (fix: write logs-.* for all names that begin with logs-)',
      'c.yaml:11: groups.late never holds: .* before it matches the same groups (fix: put the exception before the rule it is taken from)',
    ],
  )
  assert.deepEqual(warned(`topics: {orders-eu: {layouts: {}}, 'orders-.*': {layouts: {}}, 'a.*b': {layouts: {}}}`), [])
})

test('gate policies stand beside ranges', () => {
  const groups: readonly (Omit<GateRule, 'gate'> & { gate: GateRule['gate'] | undefined })[] = load(`groups:
  a: {gate: block}
  b: {gate: position}
  c: {gate: after 30s, ranges: [{clientId: x, keys: [0-ff]}]}
  d: {}
`).groups
  assert.deepEqual(
    groups.map(({ gate }) => gate),
    ['block', 'position', 30_000, undefined],
  )
})

test('what is wrong is named with line, key and fix', () => {
  assert.deepEqual(
    problems(`topics:
  orders:
    layouts:
      partitioner: murmur3
      order: keys
      sealAfter: soon
      goneAfter: 1ms
      late: maybe
      stateloss: hold
`),
    [
      'c.yaml:5: topics.orders.layouts.partitioner is not a known value (fix: use one of: auto, murmur2-mask, murmur2-unsigned, crc32, fnv1a-abs, fnv1a-mask, fnv1a-unsigned, kafkajs-legacy, none)',
      'c.yaml:6: topics.orders.layouts.order is not a known value (fix: use one of: key, producer)',
      'c.yaml:7: topics.orders.layouts.sealAfter is not a duration: "soon" (fix: write a duration such as 500ms, 10s or 2m (a plain number counts milliseconds))',
      'c.yaml:8: topics.orders.layouts.goneAfter is too short: 1ms (fix: write at least 1000ms)',
      'c.yaml:9: topics.orders.layouts.late is not a known value (fix: use one of: accept, refuse)',
      'c.yaml:10: topics.orders.layouts.stateloss is not a setting (fix: did you mean stateLoss?)',
    ],
  )
  assert.deepEqual(problems('topics: {"a(": {layouts: {}}}'), [
    'c.yaml:2: topics.a( is not a regular expression: unterminated group (fix: write a topic name, or an expression that matches the whole of it, such as orders-.*)',
  ])
  assert.match(problems('topics: {a: }')[0] ?? '', /^c.yaml:2: topics.a is not a map of settings \(fix: write for ex/)
  assert.match(problems('topics: {a: {layouts: 5}}')[0] ?? '', /topics.a.layouts has the wrong type/)
  for (const gate of ['after', 'after soon', 'after 0s', 'after 30', 'open', '5']) {
    const [line = ''] = problems(`groups: {g: {gate: ${gate}}}`)
    assert.match(line, /^c.yaml:2: groups.g.gate .*fix: write block, position, or after and a duration: after 30s/)
  }
})

test('the partitioners are those that records know', () => {
  const topic = jsonSchema().properties?.topics?.additionalProperties as JsonSchema
  const values = topic.properties?.layouts?.properties?.partitioner?.enum
  assert.deepEqual(values, ['auto', ...partitionerNames, 'none'])
})
