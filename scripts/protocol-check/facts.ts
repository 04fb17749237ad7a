/**
 * What a definition says about the wire, field by field, in a form in which ours and Kafka's can be compared: shared
 * structs are spelled out where they are used, version ranges are cut to those in which the field is really there.
 */
import type { Field, Message, Range, Struct } from '../codegen/model.ts'
import { intersect, isStruct } from '../codegen/model.ts'
import { parseRange } from '../codegen/parse.ts'
import type { KafkaField, KafkaMessage } from './kafka.ts'

export interface Fact {
  readonly path: string
  readonly versions: Range
  /** Everything that must agree, by name. */
  readonly says: Readonly<Record<string, string>>
}

const entities: Readonly<Record<string, string>> = { topicName: 'topic', groupId: 'group', brokerId: 'broker' }

/** Our facts, for the versions that Kafka still has. */
export function ourFacts(message: Message, within: Range): Fact[] {
  return structFacts(message.root, '', within)
}

function structFacts(struct: Struct, prefix: string, within: Range): Fact[] {
  return struct.fields.flatMap((field) => fieldFacts(field, prefix, within))
}

function fieldFacts(field: Field, prefix: string, within: Range): Fact[] {
  const versions = intersect(field.versions, within)
  if (versions.from > versions.to) return []
  const path = prefix + field.name
  // how we hold a 64-bit number is our choice, not the wire's
  const type = isStruct(field.type) ? 'struct' : field.type.replace('bigint64', 'int64')
  const nullable = field.nullable === undefined ? undefined : intersect(field.nullable, versions)
  const fact = {
    path,
    versions,
    says: {
      versions: show(versions),
      type: field.array ? `[${type}]` : type,
      nullable: nullable === undefined || nullable.from > nullable.to ? 'never' : show(nullable),
      tag: String(field.tag ?? 'none'),
      default: shownDefault(field.fallback, type, field.array),
      ignorable: String(field.ignorable),
      entity: field.entity ?? 'none',
    },
  }
  if (!isStruct(field.type)) return [fact]
  return [fact, ...structFacts(field.type, `${path}${field.array ? '[]' : ''}.`, versions)]
}

/** Kafka's facts. */
export function kafkaFacts(message: KafkaMessage, within: Range): Fact[] {
  const structs = new Map(message.commonStructs?.map(({ name, fields }) => [name, fields]))
  const read = (fields: readonly KafkaField[], prefix: string, range: Range): Fact[] =>
    fields.flatMap((field) => {
      const versions = intersect(kafkaRange(field.versions ?? field.taggedVersions), range)
      if (versions.from > versions.to) return []
      const array = field.type.startsWith('[]')
      const base = array ? field.type.slice(2) : field.type
      const inner = /^[A-Z]/.test(base) ? (field.fields ?? structs.get(base)) : undefined
      if (field.fields !== undefined) structs.set(base, field.fields)
      const path = prefix + field.name.charAt(0).toLowerCase() + field.name.slice(1)
      const fact = { path, versions, says: kafkaSays(field, versions, inner === undefined ? base : 'struct', array) }
      return inner === undefined ? [fact] : [fact, ...read(inner, `${path}${array ? '[]' : ''}.`, versions)]
    })
  return read(message.fields ?? [], '', within)
}

function kafkaSays(field: KafkaField, versions: Range, type: string, array: boolean): Record<string, string> {
  const nullable = intersect(kafkaRange(field.nullableVersions), versions)
  return {
    versions: show(versions),
    type: array ? `[${type}]` : type,
    nullable: nullable.from > nullable.to ? 'never' : show(nullable),
    tag: String(field.tag ?? 'none'),
    default: shownDefault(field.default == null ? undefined : String(field.default), type, array),
    ignorable: String(field.ignorable ?? false),
    entity: field.entityType === undefined ? 'none' : (entities[field.entityType] ?? field.entityType),
  }
}

/** A default in one spelling: hexadecimal numbers and spelled-out zeros are Kafka's habit. */
function shownDefault(text: string | undefined, type: string, array: boolean): string {
  if (text === undefined || text === '' || text === 'false') return zero(type, array)
  if (text === 'null' || text === 'true') return text
  return /^-?(0x)?[0-9a-f]+$/i.test(text) ? String(BigInt(text)) : text
}

function zero(type: string, array: boolean): string {
  if (array || type === 'struct' || type === 'string' || type === 'bytes' || type === 'uuid') return 'empty'
  return type === 'bool' ? 'false' : type === 'records' ? 'empty' : '0'
}

export function kafkaRange(text: string | undefined): Range {
  return text === undefined || text === 'none' ? { from: Infinity, to: -Infinity } : parseRange(text)
}

export function show({ from, to }: Range): string {
  return from === to ? String(from) : `${from}-${to}`
}
