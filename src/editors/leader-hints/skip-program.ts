/**
 * Walks over a response as its bytes stream by, without decoding or gathering it: a program lists what to skip, and a
 * walker executes it on whatever bytes are at hand, stopping and going on at any byte. It reports Kafka error codes on
 * the way and finds the tagged fields at the very end.
 */

/** One instruction. `loop` … `end` enclose what is repeated; its count precedes it on the wire. */
export type Step =
  | { readonly op: 'skip'; readonly bytes: number }
  /** Nullable string or bytes: length as int16, int32, or unsigned varint + 1. */
  | { readonly op: 'sized'; readonly length: 'int16' | 'int32' | 'compact' }
  | { readonly op: 'error' }
  | { readonly op: 'tags' }
  | { readonly op: 'loop'; readonly length: 'int32' | 'compact' }
  | { readonly op: 'end' }

const op = {
  skip: 0,
  int16: 1,
  int32: 2,
  compact: 3,
  error: 4,
  tags: 5,
  loop32: 6,
  loopCompact: 7,
  end: 8,
  tail: 9,
} as const

/** Instructions and their arguments, flattened: `code[i]` is an op, `code[i + 1]` its argument. */
export type SkipProgram = Int32Array

/** @param steps everything before the tagged fields at the end of the message */
export function compileSteps(steps: readonly Step[]): SkipProgram {
  const code: number[] = []
  const loops: number[] = []
  for (const step of steps) {
    if (step.op === 'loop') {
      loops.push(code.length)
      code.push(step.length === 'int32' ? op.loop32 : op.loopCompact, 0)
    } else if (step.op === 'end') {
      const start = loops.pop() ?? 0
      code.push(op.end, start)
      code[start + 1] = code.length // where to go on when nothing is left
    } else if (step.op === 'sized') code.push(op[step.length], 0)
    else if (step.op === 'skip') code.push(op.skip, step.bytes)
    else code.push(op[step.op], 0)
  }
  code.push(op.tail, 0)
  return Int32Array.from(code)
}

/** Executes a program over a message that arrives in pieces. */
export class SkipWalker {
  /** Error codes met so far that are not 0, in order. */
  readonly errors: number[] = []
  /** The walk has reached the tagged fields at the end. */
  done = false
  private readonly code: SkipProgram
  private pc = 0
  private skip = 0
  /** A number that is being read: its value so far, and how many of its bytes (or bits) have come. */
  private value = 0
  private got = 0
  private readonly left: number[] = []
  /** Inside a section of tagged fields: how many are to come (−1: not in one), and what is read next of one. */
  private tagsLeft = -1
  private tagPart = 0

  constructor(code: SkipProgram) {
    this.code = code
  }

  /** @returns the position after the last byte that was used: `to`, or where the tagged fields at the end begin */
  walk(bytes: Buffer, from: number, to: number): number {
    let at = from
    while (!this.done) {
      if (this.skip > 0) {
        const step = Math.min(this.skip, to - at)
        this.skip -= step
        at += step
        if (this.skip > 0) return at
      }
      const instruction = this.code[this.pc] ?? op.tail
      if (instruction >= op.end) this.turn(instruction)
      else if (instruction === op.skip) {
        this.skip = this.code[this.pc + 1] ?? 0
        this.pc += 2
      } else {
        if (at >= to) return at
        at = this.read(instruction, bytes, at, to)
      }
    }
    return at
  }

  /** Instructions that need no bytes. */
  private turn(instruction: number): void {
    if (instruction === op.tail) {
      this.done = true
      return
    }
    const top = this.left.length - 1
    const left = (this.left[top] ?? 1) - 1
    if (left > 0) {
      this.left[top] = left
      this.pc = (this.code[this.pc + 1] ?? 0) + 2
      return
    }
    this.left.pop()
    this.pc += 2
  }

  private read(instruction: number, bytes: Buffer, at: number, to: number): number {
    if (instruction === op.int16 || instruction === op.error) return this.fixed(instruction, 2, bytes, at, to)
    if (instruction === op.int32 || instruction === op.loop32) return this.fixed(instruction, 4, bytes, at, to)
    return this.varint(instruction, bytes, at, to)
  }

  private fixed(instruction: number, size: number, bytes: Buffer, from: number, to: number): number {
    let at = from
    while (this.got < size && at < to) {
      this.value = this.value * 256 + (bytes[at++] ?? 0)
      this.got++
    }
    if (this.got < size) return at
    const half = size === 2 ? 0x8000 : 0x8000_0000
    this.number(instruction, this.value >= half ? this.value - 2 * half : this.value)
    return at
  }

  private varint(instruction: number, bytes: Buffer, from: number, to: number): number {
    let at = from
    while (at < to) {
      const byte = bytes[at++] ?? 0
      this.value += (byte & 0x7f) * 2 ** (7 * this.got)
      this.got++
      if (byte < 0x80 || this.got === 5) {
        this.number(instruction, this.value)
        return at
      }
    }
    return at
  }

  /** A number is complete. */
  private number(instruction: number, value: number): void {
    this.value = 0
    this.got = 0
    if (instruction === op.tags) this.tag(value)
    else if (instruction === op.loop32) this.enter(value)
    else if (instruction === op.loopCompact) this.enter(value - 1)
    else {
      if (instruction === op.error) {
        if (value !== 0) this.errors.push(value)
      } else this.skip = Math.max(0, instruction === op.compact ? value - 1 : value)
      this.pc += 2
    }
  }

  private enter(count: number): void {
    if (count <= 0) {
      this.pc = this.code[this.pc + 1] ?? this.code.length
      return
    }
    this.left.push(count)
    this.pc += 2
  }

  /** Tagged fields: how many, then tag and size of each. */
  private tag(value: number): void {
    if (this.tagsLeft < 0) this.tagsLeft = value
    else if (this.tagPart === 0) {
      this.tagPart = 1
      return
    } else {
      this.tagPart = 0
      this.skip = value
      this.tagsLeft--
    }
    if (this.tagsLeft > 0) return
    this.tagsLeft = -1
    this.pc += 2
  }
}
