/** Zigzag varints as records use them: written and measured here; reading is in the record cursor, without objects. */

/** Bytes that `value` (int32) takes as a zigzag varint. */
export function varintSize(value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  let size = 1
  while (rest > 0x7f) {
    rest >>>= 7
    size++
  }
  return size
}

/** Writes `value` (int32) at `at`; the position after it. */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  while (rest > 0x7f) {
    bytes[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[at++] = rest
  return at
}

/** Bytes that `value` (an integer within ±2⁵²) takes as a zigzag varlong. */
export function varlongSize(value: number): number {
  let rest = zigzag(value)
  let size = 1
  while (rest > 0x7f) {
    rest = Math.floor(rest / 128)
    size++
  }
  return size
}

/** Writes `value` (an integer within ±2⁵²) at `at`; the position after it. */
export function writeVarlong(bytes: Uint8Array, at: number, value: number): number {
  let rest = zigzag(value)
  while (rest > 0x7f) {
    bytes[at++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  bytes[at++] = rest
  return at
}

function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value
}
