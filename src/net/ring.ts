/** A queue in a ring that doubles when full: no `array.shift()`, which moves everything, and nothing allocated per entry. */
export class Ring<T> {
  private slots: (T | undefined)[] = new Array<T | undefined>(16)
  private head = 0
  private count = 0

  get length(): number {
    return this.count
  }

  push(value: T): void {
    if (this.count === this.slots.length) this.grow()
    this.slots[(this.head + this.count) & (this.slots.length - 1)] = value
    this.count++
  }

  peek(): T | undefined {
    return this.slots[this.head]
  }

  shift(): T | undefined {
    const value = this.slots[this.head]
    if (this.count > 0) {
      this.slots[this.head] = undefined
      this.head = (this.head + 1) & (this.slots.length - 1)
      this.count--
    }
    return value
  }

  /** @param index 0 is the oldest */
  at(index: number): T | undefined {
    return index < this.count ? this.slots[(this.head + index) & (this.slots.length - 1)] : undefined
  }

  private grow(): void {
    const grown = new Array<T | undefined>(this.slots.length * 2)
    for (let i = 0; i < this.count; i++) grown[i] = this.slots[(this.head + i) & (this.slots.length - 1)]
    this.slots = grown
    this.head = 0
  }
}
