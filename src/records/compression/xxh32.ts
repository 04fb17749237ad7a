/** xxHash32 with seed 0: the checksums of lz4 frames. Only headers are summed here, so it need not be fast. */

const PRIME_1 = 0x9e3779b1
const PRIME_2 = 0x85ebca77
const PRIME_3 = 0xc2b2ae3d
const PRIME_4 = 0x27d4eb2f
const PRIME_5 = 0x165667b1

/** xxHash32 of fewer than 16 bytes, unsigned. */
export function shortXxh32(bytes: Uint8Array): number {
  let hash = (PRIME_5 + bytes.length) | 0
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) {
    const lane = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    hash = Math.imul(rotate((hash + Math.imul(lane, PRIME_3)) | 0, 17), PRIME_4)
  }
  for (; at < bytes.length; at++) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at]!, PRIME_5)) | 0, 11), PRIME_1)
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2)
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3)
  return (hash ^ (hash >>> 16)) >>> 0
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}
