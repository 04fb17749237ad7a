import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from '../../../src/config/problems.ts'

test('a name is near when few of its letters differ', () => {
  const names = ['set', 'config', 'upstream', 'partitioner']
  assert.equal(nearest('sat', names), 'set')
  assert.equal(nearest('foo', names), undefined)
  assert.equal(nearest('get-all', names), undefined)
  assert.equal(nearest('upstraem', names), 'upstream')
  assert.equal(nearest('up_stream', names), 'upstream')
  assert.equal(nearest('partitions', names), 'partitioner')
  assert.equal(nearest('completely-else', names), undefined)
})
