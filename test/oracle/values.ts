/**
 * Values of a cell, as fast-check arbitraries built from its definition: complete objects as decoding returns them, with
 * a field that the version lacks at its default. `wild` values reach for the limits of each type.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { Field, Primitive, Range, Struct } from '../../scripts/codegen/model.ts'
import { isStruct } from '../../scripts/codegen/model.ts'
import { zeroUuid } from '../../src/protocol/uuid.ts'
import type { Cell } from './cells.ts'

export type Size = 'tame' | 'wild'

/** Complete values of a cell. */
export function valuesOf(cell: Cell, size: Size): fc.Arbitrary<object> {
  return structValues(cell.message.root, cell, size, 0)
}

export const extremes = ['smallest', 'largest', 'unicode'] as const
export type Extreme = (typeof extremes)[number]

/** One value with every field at a limit: null or empty and the lowest numbers, or the highest and longest of all. */
export function extremeOf(cell: Cell, extreme: Extreme): object {
  return extremeStruct(cell.message.root, cell, extreme)
}

function extremeStruct(struct: Struct, cell: Cell, extreme: Extreme): object {
  const fields = struct.fields.map((field): [string, unknown] => [field.name, extremeField(field, cell, extreme)])
  const value = Object.fromEntries(fields) as object
  if (!cell.flexible || extreme === 'smallest') return value
  const highest = Math.max(-1, ...struct.fields.map((field) => field.tag ?? -1))
  const unknownTags = [highest + 1, 0x7ffffffe].map((tag) => ({ tag, data: Buffer.alloc(200, tag) }))
  return { ...value, unknownTags }
}

function extremeField(field: Field, cell: Cell, extreme: Extreme): unknown {
  if (!isIn(field.versions, cell.version)) return defaultOf(field)
  if (extreme === 'smallest') {
    if (isIn(field.nullable, cell.version)) return null
    if (field.array || (isStruct(field.type) && field.tag !== undefined)) return field.array ? [] : null
  }
  const element = isStruct(field.type)
    ? extremeStruct(field.type, cell, extreme)
    : extremePrimitive(field.type, extreme)
  return field.array ? [element, element] : element
}

function extremePrimitive(type: Primitive, extreme: Extreme): unknown {
  const low = extreme === 'smallest'
  switch (type) {
    case 'bool':
      return !low
    case 'int8':
      return low ? -(2 ** 7) : 2 ** 7 - 1
    case 'int16':
      return low ? -(2 ** 15) : 2 ** 15 - 1
    case 'uint16':
      return low ? 0 : 2 ** 16 - 1
    case 'int32':
      return low ? -(2 ** 31) : 2 ** 31 - 1
    case 'uint32':
      return low ? 0 : 2 ** 32 - 1
    case 'int64':
      return low ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER
    case 'bigint64':
      return low ? -(2n ** 63n) : 2n ** 63n - 1n
    case 'float64':
      return low ? -Number.MAX_VALUE : Number.MAX_VALUE
    case 'uuid':
      return low ? zeroUuid : Buffer.alloc(16, 255).toString('base64url')
    case 'string':
      return low ? '' : extreme === 'largest' ? 'x'.repeat(32_767) : '€ 𝄞 é \u0000 \uffff'.repeat(300)
    case 'bytes':
    case 'records':
      return Buffer.alloc(low ? 0 : 20_000, 7)
  }
}

/** The value that decoding gives to a field that is absent. */
export function defaultOf(field: Field): unknown {
  if (field.fallback === 'null') return null
  if (field.array) return []
  if (isStruct(field.type)) return null
  switch (field.type) {
    case 'bool':
      return field.fallback === 'true'
    case 'string':
      return field.fallback ?? ''
    case 'bytes':
      return Buffer.alloc(0)
    case 'records':
      return field.nullable === undefined ? Buffer.alloc(0) : null
    case 'uuid':
      return zeroUuid
    case 'bigint64':
      return BigInt(field.fallback ?? 0)
    case 'int8':
    case 'int16':
    case 'uint16':
    case 'int32':
    case 'uint32':
    case 'int64':
    case 'float64':
      return Number(field.fallback ?? 0)
  }
}

export function isIn(range: Range | undefined, version: number): boolean {
  return range !== undefined && version >= range.from && version <= range.to
}

function structValues(struct: Struct, cell: Cell, size: Size, depth: number): fc.Arbitrary<object> {
  const fields: Record<string, fc.Arbitrary<unknown>> = {}
  for (const field of struct.fields) fields[field.name] = fieldValues(field, cell, size, depth)
  const value = fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<Record<string, unknown>>
  if (!cell.flexible) return value
  const taken = struct.fields.map((field) => field.tag)
  return fc.tuple(value, unknownTags(new Set(taken))).map(([known, tags]) => {
    return tags.length === 0 ? known : { ...known, unknownTags: tags }
  })
}

function unknownTags(taken: ReadonlySet<number | undefined>): fc.Arbitrary<{ tag: number; data: Buffer }[]> {
  const tag = fc.oneof(fc.nat(20), fc.constantFrom(127, 128, 9999, 0x7ffffffe)).filter((one) => !taken.has(one))
  const tags = fc.uniqueArray(fc.record({ tag, data: bytes(20) }, { noNullPrototype: true }), {
    maxLength: 3,
    selector: (one) => one.tag,
  })
  const sorted = tags.map((list) => list.sort((a, b) => a.tag - b.tag))
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant<{ tag: number; data: Buffer }[]>([]) },
    { weight: 1, arbitrary: sorted },
  )
}

function fieldValues(field: Field, cell: Cell, size: Size, depth: number): fc.Arbitrary<unknown> {
  if (!isIn(field.versions, cell.version)) return fc.constant(defaultOf(field))
  const value = field.array ? arrayValues(field, cell, size, depth) : elementValues(field, cell, size, depth)
  if (field.tag !== undefined && isStruct(field.type) && !field.array) return taggedStruct(field.type, value)
  return isIn(field.nullable, cell.version) ? fc.option(value, { nil: null, freq: 4 }) : value
}

/** Java writes a tagged struct only when it is not at its defaults, so one that is counts as absent there. */
function taggedStruct(struct: Struct, value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const present = value.filter((one) => {
    const fields = one as Record<string, unknown>
    return (
      fields['unknownTags'] !== undefined || struct.fields.some((f) => !isDeepStrictEqual(fields[f.name], defaultOf(f)))
    )
  })
  return fc.option(present, { nil: null, freq: 2 })
}

function arrayValues(field: Field, cell: Cell, size: Size, depth: number): fc.Arbitrary<unknown> {
  const maxLength = depth > 2 ? 2 : size === 'wild' && !isStruct(field.type) ? 40 : 3
  const element = elementValues({ ...field, array: false, nullable: undefined }, cell, size, depth)
  return fc.array(element, { maxLength })
}

function elementValues(field: Field, cell: Cell, size: Size, depth: number): fc.Arbitrary<unknown> {
  if (isStruct(field.type)) return structValues(field.type, cell, size, depth + 1)
  switch (field.type) {
    case 'bool':
      return fc.boolean()
    case 'int8':
      return integers(-(2 ** 7), 2 ** 7 - 1)
    case 'int16':
      return integers(-(2 ** 15), 2 ** 15 - 1)
    case 'uint16':
      return integers(0, 2 ** 16 - 1)
    case 'int32':
      return integers(-(2 ** 31), 2 ** 31 - 1)
    case 'uint32':
      return integers(0, 2 ** 32 - 1)
    case 'int64':
      return integers(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    case 'bigint64':
      return fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)
    case 'float64':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'uuid':
      return uuids
    case 'string':
      return strings(size)
    case 'bytes':
    case 'records':
      return bytes(size === 'wild' ? 300 : 12)
  }
}

function integers(min: number, max: number): fc.Arbitrary<number> {
  const edges = [min, min + 1, -1, 0, 1, max - 1, max].filter((edge) => edge >= min && edge <= max)
  return fc.oneof(fc.constantFrom(...edges), fc.integer({ min: Math.max(min, -100), max: 100 }), safeIntegers(min, max))
}

function safeIntegers(min: number, max: number): fc.Arbitrary<number> {
  return fc.bigInt(BigInt(min), BigInt(max)).map(Number)
}

function bytes(maxLength: number): fc.Arbitrary<Buffer> {
  return fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
}

const uuids = fc.oneof(
  { weight: 1, arbitrary: fc.constant(zeroUuid) },
  {
    weight: 3,
    arbitrary: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((array) => Buffer.from(array).toString('base64url')),
  },
)

/** Lengths around the limits of the encodings: one or two length bytes, the fast path for short ASCII. */
const longStrings = fc.constantFrom(
  'a'.repeat(24),
  'b'.repeat(25),
  'c'.repeat(126),
  'd'.repeat(127),
  'e'.repeat(128),
  'é'.repeat(64),
  '€'.repeat(5461),
  'f'.repeat(32767),
  '𝄞 clef',
)

function strings(size: Size): fc.Arbitrary<string> {
  const plain = fc.string({ maxLength: 12 })
  if (size === 'tame') return plain
  return fc.oneof(plain, fc.string({ unit: 'grapheme', maxLength: 12 }), longStrings)
}
