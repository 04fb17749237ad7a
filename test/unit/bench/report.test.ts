import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, median, ratio, type ScenarioResult, show, table, verdict } from '../../bench/report.ts'

const result = (name: string, rounds: ScenarioResult['rounds']): ScenarioResult => ({ name, title: name, rounds })

test('the median is the middle value, whatever the order', () => {
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([4, 1, 3, 2]), 2.5)
  assert.ok(Number.isNaN(median([])))
})

test('a ratio compares within each round, so a machine that slows down does not count', () => {
  const rounds = {
    prototype: [{ mbPerSecond: 2000 }, { mbPerSecond: 1000 }, { mbPerSecond: 500 }],
    headgate: [{ mbPerSecond: 1800 }, { mbPerSecond: 900 }, { mbPerSecond: 450 }],
  }
  assert.equal(ratio(result('a', rounds), 'headgate', 'prototype', 'mbPerSecond'), 0.9)
})

test('a failed round is left out of both sides of a ratio', () => {
  const rounds = {
    prototype: [{ x: 10 }, {}, { x: 10 }],
    headgate: [{ x: 20 }, { x: 99 }, {}],
  }
  assert.equal(ratio(result('a', rounds), 'headgate', 'prototype', 'x'), 2)
})

test('a sum is compared within each round, too', () => {
  const rounds = {
    direct: [{ p99Ms: 1 }, { p99Ms: 9 }, { p99Ms: 2 }],
    headgate: [{ p99Ms: 1.9 }, { p99Ms: 9.9 }, { p99Ms: 20 }],
  }
  const [judgement] = judge([result('latency', rounds)], 'headgate')
  assert.deepEqual(judgement?.met, true)
  assert.ok(Math.abs((judgement?.value ?? 0) - 0.9) < 1e-9)
  assert.equal(judgement?.rule, 'latency p99Ms at most 1.00 above direct')
})

test('rules with a factor judge the ratio, rules with a sum judge the difference', () => {
  const results = [
    result('opaque-fetch', {
      prototype: [{ mbPerSecond: 1000, cpuSecondsPerGb: 1 }],
      headgate: [{ mbPerSecond: 899, cpuSecondsPerGb: 1.25 }],
    }),
    result('latency', { direct: [{ p50Ms: 1, p99Ms: 2 }], headgate: [{ p50Ms: 1.15, p99Ms: 3.01 }] }),
    result('idle', { direct: [{}], headgate: [{ startMs: 400, idleMb: 81 }] }),
  ]
  const met = Object.fromEntries(judge(results, 'headgate').map((one) => [one.rule.split(' ', 2).join(' '), one.met]))
  assert.deepEqual(met, {
    'opaque-fetch mbPerSecond': false,
    'opaque-fetch cpuSecondsPerGb': true,
    'latency p50Ms': true,
    'latency p99Ms': false,
    'idle startMs': true,
    'idle idleMb': false,
  })
})

test('filtering is judged by the numbers of the target that filters', () => {
  const rounds = {
    headgate: [{ plainCpuSecondsPerGb: 1, plainP99Ms: 2 }],
    ranges: [{ plainCpuSecondsPerGb: 1.06, plainP99Ms: 2.5, noneMbPerCpuSecond: 500, addedMbPerClient: 3.2 }],
    'ranges-node22': [{ zstdMbPerCpuSecond: 149 }],
  }
  const met = judge([result('filter', rounds)], 'headgate').map((one) => [one.rule.split(' ')[1], one.met])
  assert.deepEqual(Object.fromEntries(met), {
    noneMbPerCpuSecond: true,
    zstdMbPerCpuSecond: false,
    plainCpuSecondsPerGb: false,
    plainP99Ms: true,
    addedMbPerClient: false,
  })
})

test('a rule without numbers is left out: it is neither met nor missed', () => {
  assert.deepEqual(judge([result('idle', { headgate: [{}] })], 'headgate'), [])
  assert.deepEqual(judge([result('latency', { headgate: [{ p50Ms: 1, p99Ms: 1 }] })], 'headgate'), [])
})

test('numbers show about three digits', () => {
  assert.equal(show(0.1234), '0.12')
  assert.equal(show(12.34), '12.3')
  assert.equal(show(1234567), '1,234,567')
  assert.equal(show(NaN), '–')
})

test('the table has a row per target that measured something, and every cell of a column is as wide', () => {
  const text = table(
    result('small', {
      direct: [{ requestsPerSecond: 90000 }],
      prototype: [{ requestsPerSecond: 30000, cpuUsPerRequest: 12 }],
      broken: [{}],
    }),
    'prototype',
  )
  const rows = text.split('\n').slice(2)
  assert.equal(new Set(rows.map((row) => row.length)).size, 1)
  assert.match(text, /direct .*90,000 .*3\.00/)
  assert.doesNotMatch(text, /broken/)
})

test('a metric that the base lacks has no ratios', () => {
  const text = table(result('filter', { headgate: [{ a: 1 }], ranges: [{ a: 2, b: 3 }] }), 'headgate')
  assert.match(text, /\| a +\| × headgate \| b +\|\n/)
})

test('the verdict says which targets are missed', () => {
  const text = verdict([{ rule: 'idle idleMb at most 80.0', value: 90, limit: 80, met: false }], 'headgate')
  assert.match(text, /idle idleMb at most 80\.0 \| 90\.0 +\| NOT met/)
})
