/** Seeded random numbers (sfc32): the only source of chance in the model, so that one seed is one run. */
export class Random {
  #a: number
  #b = 0x9e3779b9
  #c = 0x243f6a88
  #counter = 1

  constructor(seed: number) {
    this.#a = seed >>> 0
    for (let i = 0; i < 12; i++) this.next()
  }

  /** A fraction in [0, 1). */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    return (sum >>> 0) / 4294967296
  }

  /** An integer in [from, to]. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)]
    if (item === undefined) throw new RangeError('nothing to pick from')
    return item
  }
}
