/** Compares a decoded value with the JSON that Kafka's own converter makes of the same bytes. It shows only the size of records. */
import type { Field, Struct } from '../../scripts/codegen/model.ts'
import { isStruct } from '../../scripts/codegen/model.ts'
import { defaultOf, isIn } from './values.ts'

/** The path of the first difference; undefined when there is none. */
export function difference(struct: Struct, version: number, value: object, json: unknown): string | undefined {
  if (!isObject(json)) return `${struct.name}: Java shows ${JSON.stringify(json)}`
  const fields = value as Readonly<Record<string, unknown>>
  for (const field of struct.fields) {
    if (!isIn(field.versions, version)) continue
    if (field.type === 'records') {
      const size = (fields[field.name] as Buffer | null)?.length
      if (size !== undefined && json[`${field.name}SizeInBytes`] !== size) return `${field.path}: other size`
      continue
    }
    const shown = json[field.name]
    // Java leaves out a tagged field that is at its default
    const found =
      shown === undefined && field.tag !== undefined ? same(defaultOf(field), fields[field.name]) : undefined
    if (found === true) continue
    const inside = fieldDifference(field, version, fields[field.name], shown)
    if (inside !== undefined) return inside
  }
  const known = new Set(
    struct.fields
      .filter((f) => isIn(f.versions, version))
      .flatMap((f) => (f.type === 'records' ? [f.name, `${f.name}SizeInBytes`] : [f.name])),
  )
  const extra = Object.keys(json).find((name) => !known.has(name))
  return extra === undefined ? undefined : `${struct.name}: Java also has ${extra}`
}

function fieldDifference(field: Field, version: number, value: unknown, json: unknown): string | undefined {
  if (value === null || json === null) {
    return value === json ? undefined : `${field.path}: null here, not there`
  }
  if (!field.array) return elementDifference(field, version, value, json)
  const list = value as readonly unknown[]
  if (!Array.isArray(json) || json.length !== list.length) return `${field.path}: other element count`
  for (const [index, element] of list.entries()) {
    const inside = elementDifference(field, version, element, json[index])
    if (inside !== undefined) return inside
  }
  return undefined
}

function elementDifference(field: Field, version: number, value: unknown, json: unknown): string | undefined {
  if (isStruct(field.type)) return difference(field.type, version, value as object, json)
  return same(plain(value), json)
    ? undefined
    : `${field.path}: ${String(plain(value))}, Java has ${JSON.stringify(json)}`
}

function plain(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64')
  return typeof value === 'bigint' ? Number(value) : value
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === 0 && b.length === 0
  if (Buffer.isBuffer(a) && Buffer.isBuffer(b)) return a.equals(b)
  return a === b || Object.is(a, b)
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
