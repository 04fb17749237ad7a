/** What the emitters share while they write one message: lines, version conditions, the table of field paths. */
import type { Field, Message, Range, Struct } from './model.ts'
import { covers, fixedBytes, flexibility, isStruct, primitives } from './model.ts'

/** Lines of source with indentation. */
export class Source {
  private readonly lines: string[] = []
  private depth = 0

  line(text = ''): void {
    if (text.startsWith('}')) this.depth--
    this.lines.push(text === '' ? '' : '  '.repeat(this.depth) + text)
    if (/[{[(]$/.test(text)) this.depth++
  }

  /** Closes what the last opening line opened, with a bracket that is no brace. */
  close(text: string): void {
    this.depth--
    this.lines.push('  '.repeat(this.depth) + text)
  }

  toString(): string {
    return `${this.lines.join('\n')}\n`
  }
}

/** `v >= 4`, or undefined when `versions` covers everything in `within`. */
export function condition(versions: Range, within: Range): string | undefined {
  if (covers(versions, within)) return undefined
  const parts: string[] = []
  if (versions.from > within.from) parts.push(versions.from === versions.to ? '' : `v >= ${versions.from}`)
  if (versions.to < within.to) parts.push(versions.from === versions.to ? '' : `v <= ${versions.to}`)
  if (versions.from !== versions.to) return parts.join(' && ')
  if (versions.from === within.from) return `v <= ${versions.to}`
  return versions.to >= within.to ? `v >= ${versions.from}` : `v === ${versions.from}`
}

/** Picks the flexible or the plain form, at generation time where the versions allow it. */
export function pick(versions: Range, message: Message, flexible: string, plain: string): string {
  const kind = flexibility(versions, message.flexibleFrom)
  if (kind === 'mixed') return `flex ? ${flexible} : ${plain}`
  return kind === 'always' ? flexible : plain
}

/** Tagged fields, ascending. */
export function taggedFields(struct: Struct): Field[] {
  return struct.fields.filter((field) => field.tag !== undefined).sort((a, b) => (a.tag ?? 0) - (b.tag ?? 0))
}

/** Plain fields in wire order, neighbours of fixed size and the same versions together. */
export function runs(struct: Struct): Field[][] {
  const groups: Field[][] = []
  for (const field of struct.fields.filter((one) => one.tag === undefined)) {
    const last = groups.at(-1)
    const first = last?.[0]
    const joins =
      first !== undefined &&
      fixedBytes(first) > 0 &&
      fixedBytes(field) > 0 &&
      first.versions.from === field.versions.from &&
      first.versions.to === field.versions.to
    if (joins) last?.push(field)
    else groups.push([field])
  }
  return groups
}

/** The fewest bytes one array element can take in these versions, in plain and in flexible encoding. */
export function minimumBytes(field: Field, message: Message): { plain: number; flexible: number } {
  const sizes = { plain: Infinity, flexible: Infinity }
  const last = Math.min(field.versions.to, message.versions.to)
  for (let version = field.versions.from; version <= last; version++) {
    const flexible = version >= message.flexibleFrom
    const kind = flexible ? 'flexible' : 'plain'
    const size = isStruct(field.type)
      ? structMinimum(field.type, version, flexible)
      : primitives[field.type].bytes || variableMinimum(field.type, flexible)
    sizes[kind] = Math.min(sizes[kind], size)
  }
  return sizes
}

function variableMinimum(type: Field['type'], flexible: boolean): number {
  if (flexible) return 1
  return type === 'string' ? 2 : 4
}

function structMinimum(struct: Struct, version: number, flexible: boolean): number {
  let bytes = flexible ? 1 : 0
  for (const field of struct.fields) {
    if (field.tag !== undefined || version < field.versions.from || version > field.versions.to) continue
    if (field.array) bytes += flexible ? 1 : 4
    else if (isStruct(field.type)) bytes += field.nullable ? 1 : structMinimum(field.type, version, flexible)
    else bytes += primitives[field.type].bytes || variableMinimum(field.type, flexible)
  }
  return bytes
}

/** The value of a field that is absent, as source. */
export function fallbackOf(field: Field): string {
  if (field.fallback === 'null') return 'null'
  if (field.array) return '[]'
  if (isStruct(field.type)) {
    return field.tag !== undefined || field.nullable ? 'null' : 'nothing'
  }
  switch (field.type) {
    case 'bool':
      return field.fallback ?? 'false'
    case 'string':
      return `'${field.fallback ?? ''}'`
    case 'bytes':
      return 'noBytes'
    case 'records':
      return field.nullable === undefined ? 'noBytes' : 'null'
    case 'uuid':
      return 'zeroUuid'
    case 'bigint64':
      return `${field.fallback ?? 0}n`
    case 'int8':
    case 'int16':
    case 'uint16':
    case 'int32':
    case 'uint32':
    case 'int64':
    case 'float64':
      return field.fallback ?? '0'
  }
}

/** Whether a decoded value may be null: by message, or because a tagged struct that is absent is null. */
export function mayBeNull(field: Field): boolean {
  if (field.nullable !== undefined || field.fallback === 'null') return true
  return field.tag !== undefined && isStruct(field.type) && !field.array
}
