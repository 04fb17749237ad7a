/**
 * xxHash64 without BigInt: every 64-bit word is two int32 halves. See the specification at the xxHash project; our
 * published vectors are in test/vectors/key-hash.json. Keys are short, so what follows the stripes of 32 bytes is
 * written out in local variables: twice as fast as the same steps on objects.
 *
 * Not re-entrant: the words of the stripes are scratch of one computation, which runs to its end without calling anybody.
 */
import { Word, productHigh, sumHigh } from './word.ts'

const P1_HI = 0x9e3779b1 | 0
const P1_LO = 0x85ebca87 | 0
const P2_HI = 0xc2b2ae3d | 0
const P2_LO = 0x27d4eb4f | 0
const P3_HI = 0x165667b1 | 0
const P3_LO = 0x9e3779f9 | 0
const P4_HI = 0x85ebca77 | 0
const P4_LO = 0xc2b2ae63 | 0
const P5_HI = 0x27d4eb2f | 0
const P5_LO = 0x165667c5 | 0

const hash = new Word()
const lane = new Word()
const rotated = new Word()
const lanes = [new Word(), new Word(), new Word(), new Word()] as const
/** Low half of the last hash: only tools ask for it. */
let lowHalf = 0

/** The high 32 bits of xxHash64 of `bytes[start, end)` with the given seed, as a signed int32. */
export function xxh64High(bytes: Uint8Array, start: number, end: number, seedHi: number, seedLo: number): number {
  const length = end - start
  let hi = sumHigh(seedHi, seedLo, P5_HI, P5_LO)
  let lo = (seedLo + P5_LO) | 0
  if (length >= 32) {
    mixStripes(bytes, start, end, seedHi, seedLo)
    hi = hash.hi
    lo = hash.lo
  }
  return finish(bytes, start + (length & ~31), end, sumHigh(hi, lo, 0, length), (lo + length) | 0)
}

/** All 64 bits, for tools and tests. */
export function xxh64(bytes: Uint8Array, start: number, end: number, seed: bigint): bigint {
  const high = xxh64High(bytes, start, end, Number(BigInt.asIntN(32, seed >> 32n)), Number(BigInt.asIntN(32, seed)))
  return (BigInt(high >>> 0) << 32n) | BigInt(lowHalf >>> 0)
}

/** The last 0 to 31 bytes and the final mixing, from the state (hi, lo) on; the high half of the hash. */
function finish(bytes: Uint8Array, start: number, end: number, hi: number, lo: number): number {
  let at = start
  for (; at + 8 <= end; at += 8) {
    const laneLo = int32At(bytes, at)
    const mixedHi = productHigh(int32At(bytes, at + 4), laneLo, P2_HI, P2_LO)
    const mixedLo = Math.imul(laneLo, P2_LO)
    const turnedHi = (mixedHi << 31) | (mixedLo >>> 1)
    const turnedLo = (mixedLo << 31) | (mixedHi >>> 1)
    hi ^= productHigh(turnedHi, turnedLo, P1_HI, P1_LO)
    lo ^= Math.imul(turnedLo, P1_LO)
    const nextHi = (hi << 27) | (lo >>> 5)
    const nextLo = (lo << 27) | (hi >>> 5)
    hi = productHigh(nextHi, nextLo, P1_HI, P1_LO)
    lo = Math.imul(nextLo, P1_LO)
    hi = sumHigh(hi, lo, P4_HI, P4_LO)
    lo = (lo + P4_LO) | 0
  }
  if (at + 4 <= end) {
    const lane = int32At(bytes, at)
    hi ^= productHigh(0, lane, P1_HI, P1_LO)
    lo ^= Math.imul(lane, P1_LO)
    const nextHi = (hi << 23) | (lo >>> 9)
    const nextLo = (lo << 23) | (hi >>> 9)
    hi = productHigh(nextHi, nextLo, P2_HI, P2_LO)
    lo = Math.imul(nextLo, P2_LO)
    hi = sumHigh(hi, lo, P3_HI, P3_LO)
    lo = (lo + P3_LO) | 0
    at += 4
  }
  for (; at < end; at++) {
    hi ^= productHigh(0, bytes[at]!, P5_HI, P5_LO)
    lo ^= Math.imul(bytes[at]!, P5_LO)
    const nextHi = (hi << 11) | (lo >>> 21)
    const nextLo = (lo << 11) | (hi >>> 21)
    hi = productHigh(nextHi, nextLo, P1_HI, P1_LO)
    lo = Math.imul(nextLo, P1_LO)
  }
  lo ^= hi >>> 1 // h ^= h >>> 33
  hi = productHigh(hi, lo, P2_HI, P2_LO)
  lo = Math.imul(lo, P2_LO)
  lo ^= (lo >>> 29) | (hi << 3)
  hi ^= hi >>> 29
  hi = productHigh(hi, lo, P3_HI, P3_LO)
  lowHalf = Math.imul(lo, P3_LO) ^ hi // h ^= h >>> 32
  return hi
}

/** Four lanes over the whole stripes of 32 bytes; leaves the state in `hash`. */
function mixStripes(bytes: Uint8Array, start: number, end: number, seedHi: number, seedLo: number): void {
  const [a, b, c, d] = lanes
  for (const word of lanes) word.set(seedHi, seedLo)
  a.add(P1_HI, P1_LO)
  a.add(P2_HI, P2_LO)
  b.add(P2_HI, P2_LO)
  d.add(~P1_HI, -P1_LO) // minus P1, whose low half is not 0
  for (let at = start; at + 32 <= end; at += 32) {
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
    hash.xor(lane)
    hash.multiply(P1_HI, P1_LO)
    hash.add(P4_HI, P4_LO)
  }
}

function addRotated(word: Word, bits: number): void {
  rotated.set(word.hi, word.lo)
  rotated.rotateLeft(bits)
  hash.add(rotated.hi, rotated.lo)
}

/** word = rotateLeft(word + (hi, lo) · P2, 31) · P1 */
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
