/** Seeded mutations of encoded messages, and what a decoder may do with them: return a value or a ProtocolError. */
import { ProtocolError } from '../../src/protocol/errors.ts'
import { Reader } from '../../src/protocol/reader.ts'
import { Writer } from '../../src/protocol/writer.ts'
import type { Cell } from './cells.ts'

/** A generator of 32-bit numbers (mulberry32): the same seed gives the same run everywhere. */
export class Dice {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** An integer in [0, below). */
  roll(below: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }

  pick<T>(list: readonly T[]): T {
    const chosen = list[this.roll(list.length)]
    if (chosen === undefined) throw new Error('nothing to pick from')
    return chosen
  }
}

/** Lengths, counts and varints that are negative, huge, too long or just wrong. */
export const hostile = [
  'ffffffff0f', // varint 2^32 - 1
  'ffffffff1f', // varint of more than 32 bits
  '8080808080',
  'ffffffff07',
  '808001',
  '7fffffff',
  'ffffffff',
  'fffffffe',
  '80000000',
  '00ffffff',
  '7fff',
  'ffff',
  'fffe',
  '8000',
  '00',
  '01',
  '02',
  'ff',
].map((hex) => Buffer.from(hex, 'hex'))

/** One to three changes of `bytes`; `other` is a message to take pieces from. */
export function mutate(bytes: Buffer, other: Buffer, dice: Dice): Buffer {
  let result = bytes
  for (let left = 1 + dice.roll(3); left > 0; left--) result = change(result, other, dice)
  return result
}

function change(bytes: Buffer, other: Buffer, dice: Dice): Buffer {
  const at = dice.roll(bytes.length + 1)
  const to = at + dice.roll(Math.min(bytes.length - at, 40) + 1)
  switch (dice.roll(7)) {
    case 0:
      return bytes.subarray(0, at)
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)])
    case 2:
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)])
    case 3: {
      const from = dice.roll(other.length + 1)
      return Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + dice.roll(64)), bytes.subarray(to)])
    }
    case 4: {
      const copy = Buffer.from(bytes)
      if (at < copy.length) copy.writeUInt8(copy.readUInt8(at) ^ (1 << dice.roll(8)), at)
      return copy
    }
    case 5: {
      const piece = dice.pick(hostile)
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)])
    }
    default: {
      const piece = dice.pick(hostile)
      return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + piece.length)])
    }
  }
}

/** Memory that a decoded value may take: a slice or an object costs that much even when it is empty. */
const bytesPerInputByte = 160
const bytesAtLeast = 4096

export type Outcome = 'value' | ProtocolError

/**
 * Decodes hostile bytes. Throws when the decoder does anything but return a value of bounded size, which can be written
 * and read again, or throw a ProtocolError that says where.
 */
export function endure(cell: Cell, bytes: Buffer): Outcome {
  let value: object
  try {
    value = cell.decode(new Reader(bytes))
  } catch (error) {
    return refusal(error, bytes)
  }
  const size = sizeOf(value)
  if (size > bytesAtLeast + bytesPerInputByte * bytes.length) throw new Error(`${size} bytes from ${bytes.length}`)
  let again: Buffer
  try {
    again = encode(cell, value)
  } catch (error) {
    if (error instanceof ProtocolError && error.code === 'HG_PROTOCOL_VALUE') return error
    throw error
  }
  const last = encode(cell, cell.decode(new Reader(again)))
  if (!last.equals(again)) throw new Error(`not stable: ${again.toString('hex')} became ${last.toString('hex')}`)
  return 'value'
}

function refusal(error: unknown, bytes: Buffer): ProtocolError {
  if (!(error instanceof ProtocolError)) throw error
  if (error.field === '' || error.subject === '') throw new Error(`says not where: ${error.message}`)
  if (error.offset < 0 || error.offset > bytes.length) throw new Error(`offset outside: ${error.message}`)
  return error
}

export function encode(cell: Cell, value: object): Buffer {
  const writer = new Writer(64)
  cell.encode(writer, value)
  return writer.finish()
}

/** A rough upper bound of what a value takes on the heap, without the bytes that its slices share with the input. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 24 + value.length * 2
  if (Buffer.isBuffer(value)) return 96
  if (typeof value !== 'object' || value === null) return 8
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + sizeOf(one), 32)
  return Object.values(value).reduce<number>((sum, one) => sum + 8 + sizeOf(one), 32)
}
