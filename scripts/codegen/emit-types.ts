/** TypeScript interfaces of a message: what decoding returns. */
import type { Field, Message, Struct } from './model.ts'
import { covers, isStruct, primitives } from './model.ts'
import { fallbackOf, mayBeNull } from './scope.ts'
import type { Source } from './scope.ts'

export function emitTypes(out: Source, message: Message): void {
  for (const struct of message.structs) {
    out.line(`export interface ${struct.name} {`)
    for (const field of struct.fields) {
      const comment = fieldComment(field, struct)
      if (comment !== '') out.line(`/** ${comment} */`)
      out.line(`${field.name}: ${fieldType(field)}`)
    }
    if (message.flexibleFrom !== Infinity) out.line('unknownTags?: UnknownTag[]')
    out.line('}')
    out.line()
  }
}

/** TypeScript type of one element, without null. */
export function elementType(field: Field): string {
  return isStruct(field.type) ? field.type.name : primitives[field.type].ts
}

export function fieldType(field: Field): string {
  const type = elementType(field) + (field.array ? '[]' : '')
  return mayBeNull(field) ? `${type} | null` : type
}

function fieldComment(field: Field, struct: Struct): string {
  const parts: string[] = []
  if (!covers(field.versions, struct.versions)) parts.push(`Versions ${range(field.versions)}.`)
  if (field.tag !== undefined) parts.push(`Tag ${field.tag}.`)
  if (field.nullable && !covers(field.nullable, field.versions))
    parts.push(`Null in versions ${range(field.nullable)}.`)
  const fallback = fallbackOf(field)
  if (!['0', '0n', "''", '[]', 'null', 'false', 'zeroUuid', 'noBytes', 'nothing'].includes(fallback)) {
    parts.push(`Default ${fallback}.`)
  }
  return parts.join(' ')
}

function range(versions: { from: number; to: number }): string {
  if (versions.to === Infinity) return `${versions.from}+`
  return versions.from === versions.to ? String(versions.from) : `${versions.from}-${versions.to}`
}
