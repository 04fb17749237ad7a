/** What a definition file means: messages, structs and fields with the versions they exist in. */

export interface Range {
  readonly from: number
  /** Inclusive; Infinity when it is open. */
  readonly to: number
}

export const primitives = {
  bool: { bytes: 1, ts: 'boolean' },
  int8: { bytes: 1, ts: 'number' },
  int16: { bytes: 2, ts: 'number' },
  uint16: { bytes: 2, ts: 'number' },
  int32: { bytes: 4, ts: 'number' },
  uint32: { bytes: 4, ts: 'number' },
  int64: { bytes: 8, ts: 'number' },
  bigint64: { bytes: 8, ts: 'bigint' },
  float64: { bytes: 8, ts: 'number' },
  uuid: { bytes: 16, ts: 'string' },
  string: { bytes: 0, ts: 'string' },
  bytes: { bytes: 0, ts: 'Buffer' },
  records: { bytes: 0, ts: 'Buffer' },
} as const

export type Primitive = keyof typeof primitives

export interface Field {
  readonly name: string
  readonly array: boolean
  readonly type: Primitive | Struct
  readonly versions: Range
  readonly nullable: Range | undefined
  /** Number of a tagged field; undefined for a plain one. */
  readonly tag: number | undefined
  /** As written in the definition: a number, `true`, `null` or undefined for the type's zero. */
  readonly fallback: string | undefined
  /** A version without this field may drop its value silently. */
  readonly ignorable: boolean
  /** What the value names: topic, group, broker, … */
  readonly entity: string | undefined
  /** From the message's root, such as `topics[].partitions[].index`. */
  readonly path: string
}

export interface Struct {
  readonly name: string
  readonly fields: Field[]
  /** Versions in which it is read at all. */
  versions: Range
}

export type Side = 'request' | 'response' | 'data' | 'key' | 'value'

export interface Message {
  readonly side: Side
  /** TypeScript name of the root, such as `FetchRequest`. */
  readonly name: string
  /** Every struct, a struct before those that contain it, the root last. */
  readonly structs: Struct[]
  readonly root: Struct
  /** Those of the definition, except for the key of a record: its version number on the wire is the record's type. */
  readonly versions: Range
  /** First flexible version; Infinity when there is none. */
  readonly flexibleFrom: number
}

export interface Definition {
  /** File name without extension. */
  readonly file: string
  readonly comment: string
  readonly kind: 'api' | 'data' | 'record'
  /** API key, or record type in its internal topic; undefined for a data format. */
  readonly key: number | undefined
  readonly name: string
  readonly versions: Range
  readonly flexibleFrom: number
  readonly messages: Message[]
}

export function intersect(a: Range, b: Range): Range {
  return { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) }
}

export function covers(outer: Range, inner: Range): boolean {
  return outer.from <= inner.from && outer.to >= inner.to
}

/** Whether bodies of these versions are all flexible, none, or some. */
export function flexibility(versions: Range, flexibleFrom: number): 'always' | 'never' | 'mixed' {
  if (flexibleFrom <= versions.from) return 'always'
  return flexibleFrom > versions.to ? 'never' : 'mixed'
}

export function isStruct(type: Field['type']): type is Struct {
  return typeof type !== 'string'
}

/** Bytes of a value that always takes the same space; 0 for one that does not. */
export function fixedBytes(field: Field): number {
  return field.array || isStruct(field.type) ? 0 : primitives[field.type].bytes
}

/** The primitive that a field, or each of its elements, holds. */
export function primitiveName(field: Field): Primitive {
  if (isStruct(field.type)) throw new Error(`${field.path} is a struct`)
  return field.type
}
