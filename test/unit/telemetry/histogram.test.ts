import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exportedBounds, LatencyHistogram } from '../../../src/telemetry/histogram.ts'

test('a value on a bound belongs to that bucket, one just above to the next', () => {
  for (const [index, bound] of exportedBounds.entries()) {
    const on = new LatencyHistogram()
    on.record(bound * 1000)
    const above = new LatencyHistogram()
    above.record(bound * 1000 * 1.001)
    assert.equal(on.cumulative()[index], 1, `at ${bound}`)
    assert.equal(on.cumulative()[index - 1] ?? 0, 0, `below ${bound}`)
    assert.equal(above.cumulative()[index], 0, `above ${bound}`)
  }
})

test('cumulative counts agree with counting by hand', () => {
  const histogram = new LatencyHistogram()
  const values: number[] = []
  let seed = 7
  for (let i = 0; i < 5000; i++) {
    seed = (seed * 48_271) % 2_147_483_647
    values.push(10 ** ((seed / 2_147_483_647) * 7 - 2))
  }
  for (const value of values) histogram.record(value)
  const expected = exportedBounds.map((bound) => values.filter((value) => value <= bound * 1000).length)
  assert.deepEqual(histogram.cumulative(), expected)
  assert.equal(histogram.count, values.length)
  assert.ok(Math.abs(histogram.sumSeconds - values.reduce((a, b) => a + b, 0) / 1000) < 1e-6)
})

test('quantiles are at most one step (25 %) too high and never too low', () => {
  const histogram = new LatencyHistogram()
  const values = Array.from({ length: 1000 }, (_, i) => 0.1 + i * 0.37)
  for (const value of values) histogram.record(value)
  for (const q of [0.01, 0.5, 0.9, 0.99, 1]) {
    const exact = values[Math.ceil(q * values.length) - 1] ?? 0
    const found = histogram.quantileMs(q)
    assert.ok(found >= exact && found <= exact * 1.25 + 1 / 64, `q ${q}: exact ${exact}, found ${found}`)
  }
  assert.equal(new LatencyHistogram().quantileMs(0.5), 0)
})

test('nonsense and extremes do not break it', () => {
  const histogram = new LatencyHistogram()
  for (const value of [0, -5, Number.NaN, 1e12, Infinity]) histogram.record(value)
  assert.equal(histogram.count, 5)
  assert.equal(histogram.cumulative()[0], 3)
  assert.equal(histogram.cumulative().at(-1), 3)
})

test('adding one histogram to another adds the counts', () => {
  const a = new LatencyHistogram()
  const b = new LatencyHistogram()
  a.record(1)
  b.record(1)
  b.record(100)
  a.add(b)
  assert.equal(a.count, 3)
  assert.equal(a.sumSeconds, 0.102)
  assert.deepEqual([a.cumulative()[2], a.cumulative().at(-1)], [2, 3])
})
