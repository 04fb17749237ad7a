import assert from 'node:assert/strict'
import { test } from 'node:test'
import { existingThatGain, gateKindOf, parentsOf, shareKeys } from '../../../../src/features/layouts/keys-moving.ts'
import { learn, partitionerOf, hashOf, startLearning } from '../../../../src/features/layouts/partitioners.ts'
import { explain } from '../../../../src/features/layouts/staleness.ts'
import { partitionerNames, partitioners } from '../../../../src/records/hashes/partitioners.ts'
import type { TopicState } from '../../../../src/state/topic-state.ts'

void test('shared keys and parents agree with trying every hash', () => {
  for (let a = 1; a <= 8; a++) {
    for (let b = 1; b <= 8; b++) {
      for (let p = 0; p < a; p++) {
        const met = new Set<number>()
        for (let hash = 0; hash < a * b; hash++) if (hash % a === p) met.add(hash % b)
        for (let q = 0; q < b; q++) assert.equal(shareKeys(p, a, q, b), met.has(q), `${p} of ${a}, ${q} of ${b}`)
        assert.deepEqual(
          parentsOf(p, a, b),
          [...met].filter((q) => q !== p).sort((x, y) => x - y),
        )
      }
    }
  }
})

void test('with a multiple no existing partition gains keys, with other counts and by shrinking they do', () => {
  assert.deepEqual(existingThatGain(3, 6), [])
  assert.deepEqual(existingThatGain(3, 5), [0, 1, 2])
  assert.deepEqual(existingThatGain(6, 3), [0, 1, 2])
})

void test('the seal is enough only for a multiple of fresh partitions in order: key', () => {
  const grown = (...counts: number[]) => ({ layouts: counts.map((count) => ({ count })) }) as unknown as TopicState
  assert.equal(gateKindOf(grown(3), 6, 'key'), 'seal')
  assert.equal(gateKindOf(grown(3), 6, 'producer'), 'cuts')
  assert.equal(gateKindOf(grown(3), 5, 'key'), 'cuts')
  assert.equal(gateKindOf(grown(6), 3, 'key'), 'cuts')
  assert.equal(gateKindOf(grown(6, 3), 6, 'key'), 'cuts')
})

const two = [
  { epoch: 0, count: 3 },
  { epoch: 1, count: 6 },
]
const three = [
  { epoch: 0, count: 2 },
  { epoch: 1, count: 4 },
  { epoch: 2, count: 3 },
]

void test('a batch is as old as its oldest record must be', () => {
  assert.deepEqual(explain(two, 1, [1, 7]), { epochs: [0, 1], age: 1, need: 0 })
  assert.deepEqual(explain(two, 1, [1, 4]), { epochs: [0], age: 0, need: 0 })
  assert.deepEqual(explain(two, 4, [4]), { epochs: [1], age: 1, need: 1 })
  assert.equal(explain(two, 6, [6]), undefined)
})

void test('keys of two layouts in one batch are explained by none', () => {
  assert.deepEqual(explain(three, 1, [5, 10]), { epochs: [], age: 1, need: 2 })
})

void test('what fits an old and a new layout, but not one between, may be new', () => {
  assert.deepEqual(explain(three, 1, [7]), { epochs: [0, 2], age: 2, need: 2 })
})

void test('records without a key fit wherever the partition exists; unknown partitioners go by the count last served', () => {
  assert.deepEqual(explain(two, 4, []), { epochs: [1], age: 1, need: 0 })
  assert.deepEqual(explain(two, 1, undefined, 0), { epochs: [0], age: 0, need: 0 })
  assert.deepEqual(explain(two, 4, undefined, 0), { epochs: [1], age: 1, need: 1 })
})

const bytes = (text: string) => {
  const key = new TextEncoder().encode(text)
  return { bytes: key, start: 0, end: key.length }
}

void test('a key is one hash per partitioner, whatever the count', () => {
  for (const name of partitionerNames) {
    for (let i = 0; i < 50; i++) {
      const key = bytes(`key ${i} é`)
      const hash = hashOf(name, key.bytes, key.start, key.end)
      assert.ok(hash >= 0)
      for (const count of [1, 3, 7, 12, 100]) {
        assert.equal(hash % count, partitioners[name](key.bytes, key.start, key.end, count), name)
      }
    }
  }
})

void test('the partitioner is learned from keyed records, from the default of the family on', () => {
  for (const name of partitionerNames) {
    let learned = startLearning('auto', undefined)
    for (let i = 0; i < 60; i++) {
      const key = bytes(`k${i}`)
      learned = learn(learned, key, partitioners[name](key.bytes, key.start, key.end, 7), [7])
    }
    assert.equal(partitionerOf(learned), name)
  }
  assert.equal(partitionerOf(startLearning('auto', 'confluent-kafka-python')), 'crc32')
  assert.equal(partitionerOf(startLearning('none', 'sarama')), undefined)
})

void test('an instance that chooses partitions itself survives no candidate; an empty key does not speak against crc32', () => {
  let learned = startLearning('auto', undefined)
  for (let i = 0; i < 60; i++) learned = learn(learned, bytes(`k${i}`), i % 7, [7])
  assert.equal(partitionerOf(learned), undefined)
  const empty = learn(startLearning('crc32', undefined), bytes(''), 5, [7])
  assert.equal(partitionerOf(empty), 'crc32')
})
