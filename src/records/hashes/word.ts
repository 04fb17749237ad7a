/** 64-bit arithmetic on two int32 halves, modulo 2⁶⁴: what xxHash64 needs of it, without BigInt. */

/** High half of the 64-bit product of two words taken as unsigned, from four products of 16 bits; no sum passes 2³². */
export function multiplyHigh(a: number, b: number): number {
  const a0 = a & 0xffff
  const a1 = a >>> 16
  const b0 = b & 0xffff
  const b1 = b >>> 16
  const middle = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) >>> 0
  const other = (Math.imul(a0, b1) + (middle & 0xffff)) >>> 0
  return (Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16)) | 0
}

/** High half of (hi, lo) · (byHi, byLo); the low half is `Math.imul(lo, byLo)`. */
export function productHigh(hi: number, lo: number, byHi: number, byLo: number): number {
  return (multiplyHigh(lo, byLo) + Math.imul(hi, byLo) + Math.imul(lo, byHi)) | 0
}

/** High half of (hi, lo) + (addHi, addLo); the low half is `(lo + addLo) | 0`. */
export function sumHigh(hi: number, lo: number, addHi: number, addLo: number): number {
  return (hi + addHi + (((lo + addLo) | 0) >>> 0 < lo >>> 0 ? 1 : 0)) | 0
}

/** A 64-bit word that is changed in place. */
export class Word {
  hi = 0
  lo = 0

  set(hi: number, lo: number): void {
    this.hi = hi | 0
    this.lo = lo | 0
  }

  add(hi: number, lo: number): void {
    this.hi = sumHigh(this.hi, this.lo, hi, lo)
    this.lo = (this.lo + lo) | 0
  }

  xor(word: Word): void {
    this.hi ^= word.hi
    this.lo ^= word.lo
  }

  multiply(hi: number, lo: number): void {
    this.hi = productHigh(this.hi, this.lo, hi, lo)
    this.lo = Math.imul(this.lo, lo)
  }

  /** 0 < bits < 32 */
  rotateLeft(bits: number): void {
    const { hi, lo } = this
    this.hi = (hi << bits) | (lo >>> (32 - bits))
    this.lo = (lo << bits) | (hi >>> (32 - bits))
  }
}
