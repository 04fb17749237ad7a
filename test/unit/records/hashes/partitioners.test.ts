import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { crc32 } from '../../../../src/records/crc.ts'
import { fnv1a } from '../../../../src/records/hashes/fnv1a.ts'
import { murmur2 } from '../../../../src/records/hashes/murmur2.ts'
import { type PartitionerName, partitionerNames, partitioners } from '../../../../src/records/hashes/partitioners.ts'

interface Vectors {
  partitions: number
  emptyKeyPartitions: Record<string, Record<string, number>>
  hashes: Record<string, { murmur2: number; crc32: number; fnv1a: number }>
  keys: Record<string, Record<string, number>>
}

const vectors = JSON.parse(
  readFileSync(new URL('../../../vectors/partitioners.json', import.meta.url), 'utf8'),
) as Vectors

/** Which of ours is behind what was observed. */
const observed: Record<string, PartitionerName> = {
  java: 'murmur2-mask',
  kafkajs: 'murmur2-mask',
  'kafkajs:javacompat': 'murmur2-mask',
  'kafkajs:legacy': 'kafkajs-legacy',
  franz: 'murmur2-mask',
  'franz:saramacompat': 'fnv1a-abs',
  aiokafka: 'murmur2-mask',
  'kafka-python': 'murmur2-mask',
  platformatic: 'murmur2-unsigned',
  'platformatic:compat': 'murmur2-mask',
  librdkafka: 'crc32',
  'librdkafka:consistent': 'crc32',
  'librdkafka:murmur2': 'murmur2-mask',
  'librdkafka:murmur2_random': 'murmur2-mask',
  'librdkafka:fnv1a_random': 'fnv1a-abs',
  sarama: 'fnv1a-abs',
  'sarama:reference': 'fnv1a-mask',
  'sarama:custom-unsigned': 'fnv1a-unsigned',
  'sarama:murmur2': 'murmur2-mask',
}

test('every key lies where the real clients put it', () => {
  let compared = 0
  for (const [hex, places] of Object.entries(vectors.keys)) {
    const key = Buffer.from(hex, 'hex')
    for (const [client, partition] of Object.entries(places)) {
      const name = observed[client]
      assert.ok(name, `a client without a partitioner: ${client}`)
      assert.equal(partitioners[name](key, 0, key.length, vectors.partitions), partition, `${client} ${hex}`)
      compared++
    }
  }
  assert.equal(compared, 111 * Object.keys(observed).length)
})

test('the empty key counts as a key, except for librdkafka with consistent_random', () => {
  for (const [client, places] of Object.entries(vectors.emptyKeyPartitions)) {
    if (client === 'librdkafka') continue
    const partition = partitioners[observed[client]!](Buffer.alloc(0), 0, 0, vectors.partitions)
    assert.deepEqual(Object.keys(places), [String(partition)], client)
  }
})

test('the hashes themselves', () => {
  for (const [hex, hashes] of Object.entries(vectors.hashes)) {
    const key = Buffer.from(hex, 'hex')
    assert.equal(murmur2(key, 0, key.length), hashes.murmur2)
    assert.equal(crc32(key), hashes.crc32)
    assert.equal(fnv1a(key, 0, key.length) >>> 0, hashes.fnv1a)
  }
})

test("murmur2: the vectors of Kafka's own tests", () => {
  const known: [string, number][] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ]
  for (const [key, hash] of known) assert.equal(murmur2(Buffer.from(key), 0, key.length), hash)
})

test('a key is read where it lies, and every partition is in range', () => {
  for (const hex of Object.keys(vectors.keys)) {
    const key = Buffer.from(hex, 'hex')
    const framed = Buffer.concat([Buffer.alloc(3, 0xaa), key, Buffer.alloc(5, 0xbb)])
    for (const name of partitionerNames) {
      for (const count of [1, 3, 1000]) {
        const partition = partitioners[name](framed, 3, 3 + key.length, count)
        assert.equal(partition, partitioners[name](key, 0, key.length, count))
        assert.ok(partition >= 0 && partition < count)
      }
    }
  }
})
