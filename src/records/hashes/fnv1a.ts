/** FNV-1a, 32 bits: what sarama hashes keys with. */

/** FNV-1a of `bytes[start, end)`, as a signed int32. */
export function fnv1a(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  return hash
}
