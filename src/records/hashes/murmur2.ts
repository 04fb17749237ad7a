/** murmur2 as Kafka's Java client computes it: 32 bits, seed 0x9747b28c, bytes unsigned. */

const SEED = 0x9747b28c
const M = 0x5bd1e995

/** murmur2 of `bytes[start, end)`, as a signed int32. */
export function murmur2(bytes: Uint8Array, start: number, end: number): number {
  let hash = SEED ^ (end - start)
  let at = start
  for (; at + 4 <= end; at += 4) {
    let k = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    k = Math.imul(k, M)
    k = Math.imul(k ^ (k >>> 24), M)
    hash = Math.imul(hash, M) ^ k
  }
  if (at < end) {
    if (at + 2 < end) hash ^= bytes[at + 2]! << 16
    if (at + 1 < end) hash ^= bytes[at + 1]! << 8
    hash = Math.imul(hash ^ bytes[at]!, M)
  }
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
