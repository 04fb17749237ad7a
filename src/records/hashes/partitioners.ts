/**
 * Where the known clients put a key, given the partition count they use. Observed on eight client families
 * (test/vectors/partitioners.json); a null key has no fixed place anywhere and is not asked about here.
 */
import { crc32 } from '../crc.ts'
import { fnv1a } from './fnv1a.ts'
import { kafkajsLegacyHash } from './kafkajs-legacy.ts'
import { murmur2 } from './murmur2.ts'

/** The partition of the key `bytes[start, end)` among `count` > 0 partitions. */
export type Partitioner = (bytes: Uint8Array, start: number, end: number, count: number) => number

export const partitioners = {
  /** Java, franz-go, aiokafka, kafka-python, kafkajs and platformatic's compatible ones, librdkafka `murmur2*`. */
  'murmur2-mask': (bytes, start, end, count) => (murmur2(bytes, start, end) & 0x7fffffff) % count,
  /** @platformatic/kafka's default. */
  'murmur2-unsigned': (bytes, start, end, count) => (murmur2(bytes, start, end) >>> 0) % count,
  /** librdkafka's default: `consistent_random` and `consistent`. The former puts an empty key anywhere. */
  crc32: (bytes, start, end, count) => crc32(bytes, start, end) % count,
  /** sarama's default, librdkafka `fnv1a*`, franz-go's SaramaCompatHasher. */
  'fnv1a-abs': (bytes, start, end, count) => Math.abs(fnv1a(bytes, start, end) % count),
  /** sarama's NewReferenceHashPartitioner. */
  'fnv1a-mask': (bytes, start, end, count) => (fnv1a(bytes, start, end) & 0x7fffffff) % count,
  /** sarama's WithHashUnsigned. */
  'fnv1a-unsigned': (bytes, start, end, count) => (fnv1a(bytes, start, end) >>> 0) % count,
  /** kafkajs' LegacyPartitioner. */
  'kafkajs-legacy': (bytes, start, end, count) => (kafkajsLegacyHash(bytes, start, end) & 0x7fffffff) % count,
} as const satisfies Record<string, Partitioner>

export type PartitionerName = keyof typeof partitioners

export const partitionerNames = Object.keys(partitioners) as PartitionerName[]
