/**
 * Which partitioner an instance uses for a topic, learned from the (key, partition) pairs it writes. Every known one
 * places a key at `hash mod count`, so a key is reduced to one non-negative hash per candidate. Null keys teach
 * nothing; what no candidate explains is an instance that chooses partitions itself, and then only the count last
 * served to it can tell its layout.
 */
import { type PartitionerName, partitionerNames, partitioners } from '../../records/hashes/partitioners.ts'

/** As configured for a topic: learn it, it is known, or keys say nothing. */
export type PartitionerSetting = 'auto' | PartitionerName | 'none'

export interface Learned {
  /** Candidates that explained everything so far, the likeliest first. Empty: none does. */
  readonly candidates: readonly PartitionerName[]
  readonly pairs: number
}

/** Above every 32-bit hash: the place among so many partitions is the hash itself. */
const noModulo = 2 ** 52

/** Defaults of the families, by the name in ApiVersions (KIP-511); clients without one mostly hash like Java. */
const defaults: readonly [software: RegExp, name: PartitionerName][] = [
  [/^platformatic-kafka/, 'murmur2-unsigned'],
  [/rdkafka|confluent/, 'crc32'],
  [/sarama/, 'fnv1a-abs'],
]

/** What may be assumed of an instance before it wrote anything. */
export function startLearning(setting: PartitionerSetting, software: string | undefined): Learned {
  if (setting === 'none') return { candidates: [], pairs: 0 }
  if (setting !== 'auto') return { candidates: [setting], pairs: 0 }
  const likely = defaults.find(([pattern]) => pattern.test(software ?? ''))?.[1] ?? 'murmur2-mask'
  return { candidates: [likely, ...partitionerNames.filter((name) => name !== likely)], pairs: 0 }
}

/** The hash of `bytes[start, end)`: a partitioner's place among `count` partitions is it modulo `count`. */
export function hashOf(name: PartitionerName, bytes: Uint8Array, start: number, end: number): number {
  return partitioners[name](bytes, start, end, noModulo)
}

/**
 * Takes one pair in. `counts`: of all layouts by which the instance may place now; a candidate survives if one of
 * them explains the pair. An empty key says nothing against crc32: librdkafka's default puts it anywhere.
 */
export function learn(
  learned: Learned,
  key: { bytes: Uint8Array; start: number; end: number },
  partition: number,
  counts: readonly number[],
): Learned {
  const { bytes, start, end } = key
  const candidates = learned.candidates.filter((name) => {
    if (name === 'crc32' && start === end) return true
    const hash = hashOf(name, bytes, start, end)
    return counts.some((count) => hash % count === partition)
  })
  return { candidates, pairs: learned.pairs + 1 }
}

/** The one to judge keys by; undefined: keys do not tell. */
export function partitionerOf(learned: Learned): PartitionerName | undefined {
  return learned.candidates[0]
}
