/** Chance from one seed: the same seed gives the same run. Forks are independent, so that a new use moves no old one. */

export class Random {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor(seed: number | string) {
    let h = 1779033703
    for (const char of String(seed)) h = Math.imul(h ^ (char.codePointAt(0) ?? 0), 3432918353) ^ (h >>> 13)
    const next = (): number => {
      h = Math.imul(h ^ (h >>> 16), 2246822507)
      h = Math.imul(h ^ (h >>> 13), 3266489909)
      h ^= h >>> 16
      return h >>> 0
    }
    this.#a = next()
    this.#b = next()
    this.#c = next()
    this.#d = 1
    for (let i = 0; i < 12; i++) this.#uint32()
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor((this.#uint32() / 2 ** 32) * below)
  }

  /** An integer in [from, to]. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1)
  }

  chance(probability: number): boolean {
    return this.#uint32() < probability * 2 ** 32
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  /** A generator that depends on the seed and the name only, not on what was drawn before. */
  static forked(seed: number | string, name: string): Random {
    return new Random(`${seed}/${name}`)
  }

  /** sfc32 (Chris Doty-Humphrey, PractRand). */
  #uint32(): number {
    const t = (this.#a + this.#b + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t
    this.#c |= 0
    return t >>> 0
  }
}
