/**
 * What kafkajs' LegacyPartitioner hashes with, which upgraded applications still use: a murmur2 whose products are
 * rounded doubles, and whose loop runs once more over a rest of 1 to 3 bytes. Both faults are kept, bit for bit.
 */

const SEED = 0x9747b28c
const M = 0x5bd1e995

/** The hash of `bytes[start, end)`: an int32 after its last step. */
export function kafkajsLegacyHash(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  const byteAt = (i: number) => (i < length ? bytes[start + i]! : 0)
  let hash = SEED ^ length
  for (let at = 0; at < length; at += 4) {
    let k = byteAt(at) + (byteAt(at + 1) << 8) + (byteAt(at + 2) << 16) + (byteAt(at + 3) << 24)
    k *= M
    k ^= k >>> 24
    k *= M
    hash *= M
    hash ^= k
  }
  const rest = length & 3
  const restAt = length & ~3
  if (rest === 3) hash ^= byteAt(restAt + 2) << 16
  if (rest >= 2) hash ^= byteAt(restAt + 1) << 8
  if (rest >= 1) {
    hash ^= byteAt(restAt)
    hash *= M
  }
  hash ^= hash >>> 13
  hash *= M
  hash ^= hash >>> 15
  return hash
}
