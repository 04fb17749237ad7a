import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turned } from '../../bench/runner.ts'

test('each round begins with another target, and all keep their order', () => {
  const rounds = [0, 1, 2, 3].map((round) => turned(['a', 'b', 'c'], round).join(''))
  assert.deepEqual(rounds, ['abc', 'bca', 'cab', 'abc'])
  assert.deepEqual(turned([], 3), [])
})
