/**
 * xxHash64 without BigInt: every 64-bit word is two int32 halves. See the specification at the xxHash project; our
 * published vectors are in test/vectors/key-hash.json.
 *
 * Not re-entrant: the words below are scratch of one computation, which runs to its end without calling anybody.
 */

/** A 64-bit word, changed in place; all arithmetic is modulo 2⁶⁴. */
class Word {
  hi = 0
  lo = 0

  set(hi: number, lo: number): void {
    this.hi = hi | 0
    this.lo = lo | 0
  }

  add(hi: number, lo: number): void {
    const sum = (this.lo + lo) | 0
    this.hi = (this.hi + hi + (sum >>> 0 < this.lo >>> 0 ? 1 : 0)) | 0
    this.lo = sum
  }

  xor(hi: number, lo: number): void {
    this.hi ^= hi
    this.lo ^= lo
  }

  multiply(hi: number, lo: number): void {
    const { lo: own } = this
    // The high half of the product of the low halves, from four products of 16 bits each; no sum passes 2^32.
    const a0 = own & 0xffff
    const a1 = own >>> 16
    const b0 = lo & 0xffff
    const b1 = lo >>> 16
    const middle = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) >>> 0
    const other = (Math.imul(a0, b1) + (middle & 0xffff)) >>> 0
    const carry = (Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16)) | 0
    this.hi = (carry + Math.imul(this.hi, lo) + Math.imul(own, hi)) | 0
    this.lo = Math.imul(own, lo)
  }

  /** 0 < bits < 32 */
  rotateLeft(bits: number): void {
    const { hi, lo } = this
    this.hi = (hi << bits) | (lo >>> (32 - bits))
    this.lo = (lo << bits) | (hi >>> (32 - bits))
  }

  /** 0 < bits < 32 */
  xorShiftRight(bits: number): void {
    this.lo ^= (this.lo >>> bits) | (this.hi << (32 - bits))
    this.hi ^= this.hi >>> bits
  }
}

const P1_HI = 0x9e3779b1
const P1_LO = 0x85ebca87
const P2_HI = 0xc2b2ae3d
const P2_LO = 0x27d4eb4f
const P3_HI = 0x165667b1
const P3_LO = 0x9e3779f9
const P4_HI = 0x85ebca77
const P4_LO = 0xc2b2ae63
const P5_HI = 0x27d4eb2f
const P5_LO = 0x165667c5

const hash = new Word()
const lane = new Word()
const lanes = [new Word(), new Word(), new Word(), new Word()] as const

/** The high 32 bits of xxHash64 of `bytes[start, end)` with the given seed, as a signed int32. */
export function xxh64High(bytes: Uint8Array, start: number, end: number, seedHi: number, seedLo: number): number {
  compute(bytes, start, end, seedHi, seedLo)
  return hash.hi
}

/** All 64 bits, for tools and tests. */
export function xxh64(bytes: Uint8Array, start: number, end: number, seed: bigint): bigint {
  compute(bytes, start, end, Number(BigInt.asIntN(32, seed >> 32n)), Number(BigInt.asIntN(32, seed)))
  return (BigInt(hash.hi >>> 0) << 32n) | BigInt(hash.lo >>> 0)
}

function compute(bytes: Uint8Array, start: number, end: number, seedHi: number, seedLo: number): void {
  let at = start
  if (end - start >= 32) at = mixStripes(bytes, start, end, seedHi, seedLo)
  else {
    hash.set(seedHi, seedLo)
    hash.add(P5_HI, P5_LO)
  }
  hash.add(0, end - start)
  for (; at + 8 <= end; at += 8) {
    lane.set(0, 0)
    mixLane(lane, int32At(bytes, at + 4), int32At(bytes, at))
    hash.xor(lane.hi, lane.lo)
    hash.rotateLeft(27)
    hash.multiply(P1_HI, P1_LO)
    hash.add(P4_HI, P4_LO)
  }
  if (at + 4 <= end) {
    lane.set(0, int32At(bytes, at))
    lane.multiply(P1_HI, P1_LO)
    hash.xor(lane.hi, lane.lo)
    hash.rotateLeft(23)
    hash.multiply(P2_HI, P2_LO)
    hash.add(P3_HI, P3_LO)
    at += 4
  }
  for (; at < end; at++) {
    lane.set(0, bytes[at]!)
    lane.multiply(P5_HI, P5_LO)
    hash.xor(lane.hi, lane.lo)
    hash.rotateLeft(11)
    hash.multiply(P1_HI, P1_LO)
  }
  hash.xor(0, hash.hi >>> 1) // h ^= h >>> 33
  hash.multiply(P2_HI, P2_LO)
  hash.xorShiftRight(29)
  hash.multiply(P3_HI, P3_LO)
  hash.xor(0, hash.hi) // h ^= h >>> 32
}

/** Four lanes over stripes of 32 bytes; the position after the last whole stripe. */
function mixStripes(bytes: Uint8Array, start: number, end: number, seedHi: number, seedLo: number): number {
  const [a, b, c, d] = lanes
  for (const word of lanes) word.set(seedHi, seedLo)
  a.add(P1_HI, P1_LO)
  a.add(P2_HI, P2_LO)
  b.add(P2_HI, P2_LO)
  d.add(~P1_HI, -P1_LO) // minus P1, whose low half is not 0
  let at = start
  for (; at + 32 <= end; at += 32) {
    mixLane(a, int32At(bytes, at + 4), int32At(bytes, at))
    mixLane(b, int32At(bytes, at + 12), int32At(bytes, at + 8))
    mixLane(c, int32At(bytes, at + 20), int32At(bytes, at + 16))
    mixLane(d, int32At(bytes, at + 28), int32At(bytes, at + 24))
  }
  hash.set(0, 0)
  addRotated(a, 1)
  addRotated(b, 7)
  addRotated(c, 12)
  addRotated(d, 18)
  for (const word of lanes) {
    lane.set(0, 0)
    mixLane(lane, word.hi, word.lo)
    hash.xor(lane.hi, lane.lo)
    hash.multiply(P1_HI, P1_LO)
    hash.add(P4_HI, P4_LO)
  }
  return at
}

function addRotated(word: Word, bits: number): void {
  lane.set(word.hi, word.lo)
  lane.rotateLeft(bits)
  hash.add(lane.hi, lane.lo)
}

function mixLane(word: Word, hi: number, lo: number): void {
  const { hi: beforeHi, lo: beforeLo } = word
  word.set(hi, lo)
  word.multiply(P2_HI, P2_LO)
  word.add(beforeHi, beforeLo)
  word.rotateLeft(31)
  word.multiply(P1_HI, P1_LO)
}

function int32At(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}
