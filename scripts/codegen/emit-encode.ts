/** Encoders: the reverse of the decoders, from drafts in which an absent field has its default. */
import type { Field, Message, Struct } from './model.ts'
import { covers, fixedBytes, flexibility, isStruct, primitiveName } from './model.ts'
import { condition, fallbackOf, pick, runs, taggedFields } from './scope.ts'
import type { Source } from './scope.ts'

export function emitEncoders(out: Source, message: Message): void {
  for (const struct of message.structs) new StructEncoder(out, struct, message).emit()
}

function writeAt(field: Field, at: string, value: string): string {
  switch (field.type) {
    case 'bool':
      return `w.view.setUint8(${at}, ${value} ? 1 : 0)`
    case 'float64':
      return `w.view.setFloat64(${at}, ${value})`
    case 'bigint64':
      return `w.view.setBigInt64(${at}, ${value})`
    default:
      return `w.${primitiveName(field)}At(${at}, ${value})`
  }
}

class StructEncoder {
  private readonly out: Source
  private readonly struct: Struct
  private readonly message: Message

  constructor(out: Source, struct: Struct, message: Message) {
    this.out = out
    this.struct = struct
    this.message = message
  }

  emit(): void {
    const { out, struct, message } = this
    const flexible = flexibility(struct.versions, message.flexibleFrom)
    out.line(`function write${struct.name}(w: Writer, s: Draft<${struct.name}>, v: number): void {`)
    if (flexible === 'mixed') out.line(`const flex = v >= ${message.flexibleFrom}`)
    let number = 0
    for (const group of runs(struct)) this.group(group, `at${++number}`)
    for (const field of taggedFields(struct)) {
      const when = condition(field.versions, struct.versions)
      if (!field.ignorable && when !== undefined) {
        out.line(`if (!(${when}) && ${this.isSet(field)}) w.unsupported('${field.path}', v)`)
      }
    }
    if (flexible !== 'never') this.tags(flexible === 'mixed')
    out.line('}')
    out.line()
  }

  private group(group: Field[], at: string): void {
    const first = group[0]
    if (first === undefined) return
    const when = condition(first.versions, this.struct.versions)
    if (when !== undefined) this.out.line(`if (${when}) {`)
    if (fixedBytes(first) > 0) this.run(group, at)
    else this.variable(first)
    if (when === undefined) return
    const kept = group.filter((field) => !field.ignorable)
    if (kept.length > 0) {
      this.out.line('} else {')
      for (const field of kept) this.out.line(`if (${this.isSet(field)}) w.unsupported('${field.path}', v)`)
    }
    this.out.line('}')
  }

  /** A condition: the draft holds something else than the field's default. */
  private isSet(field: Field): string {
    const value = `s.${field.name}`
    const fallback = fallbackOf(field)
    if (fallback === 'null') return `${value} !== undefined && ${value} !== null`
    if (field.array || field.type === 'bytes') {
      return field.nullable
        ? `${value} === null || (${value} !== undefined && ${value}.length > 0)`
        : `${value} !== undefined && ${value}.length > 0`
    }
    return `${value} !== undefined && ${value} !== ${fallback}`
  }

  private value(field: Field): string {
    const fallback = fallbackOf(field).replace(/^\[\]$/, 'none')
    if (field.nullable !== undefined && fallback !== 'null')
      return `s.${field.name} === undefined ? ${fallback} : s.${field.name}`
    return `s.${field.name} ?? ${fallback}`
  }

  private run(group: Field[], at: string): void {
    const total = group.reduce((sum, field) => sum + fixedBytes(field), 0)
    const single = group.length === 1 ? group[0] : undefined
    if (single !== undefined) {
      this.out.line(this.fixed(single, this.value(single)))
      return
    }
    this.out.line(`const ${at} = w.take(${total})`)
    let offset = 0
    for (const field of group) {
      this.out.line(
        writeAt(field, offset === 0 ? at : `${at} + ${offset}`, `${this.value(field)}`).replace(
          /(s\.\w+ \?\? \S+) \? 1/,
          '($1) ? 1',
        ),
      )
      offset += fixedBytes(field)
    }
  }

  private fixed(field: Field, value: string): string {
    return `w.${primitiveName(field)}(${value})`
  }

  private variable(field: Field): void {
    if (field.array) this.array(field)
    else if (isStruct(field.type)) this.nested(field, field.type)
    else this.primitive(field, this.value(field))
  }

  private primitive(field: Field, value: string): void {
    const { out } = this
    if (fixedBytes(field) > 0) {
      out.line(this.fixed(field, value))
      return
    }
    const word = field.type === 'string' ? 'String' : 'Bytes'
    const method = (nullable: string) =>
      pick(
        field.versions,
        this.message,
        `compact${nullable}${word}`,
        nullable === '' ? word.toLowerCase() : `nullable${word}`,
      )
    const call = (nullable: string, argument: string) => {
      const name = method(nullable)
      const [flex, plain] = name.replace('flex ? ', '').split(' : ')
      if (plain === undefined) out.line(`w.${name}(${argument})`)
      else {
        out.line(`if (flex) w.${flex}(${argument})`)
        out.line(`else w.${plain}(${argument})`)
      }
    }
    const when = field.nullable === undefined ? undefined : condition(field.nullable, field.versions)
    if (field.nullable === undefined) {
      if (value.includes(' ?') && flexibilityIsMixed(field, this.message)) {
        out.line(`const ${field.name} = ${value}`)
        call('', field.name)
      } else call('', value)
      return
    }
    out.line(`const ${field.name} = ${value}`)
    if (when !== undefined) out.line(`if (${field.name} === null && !(${when})) w.nullIn('${field.path}', v)`)
    call('Nullable', field.name)
  }

  private nested(field: Field, struct: Struct): void {
    const { out } = this
    if (field.nullable === undefined) {
      out.line(`write${struct.name}(w, s.${field.name} ?? nothing, v)`)
      return
    }
    out.line(`const ${field.name} = ${this.value(field)}`)
    out.line(`w.int8(${field.name} === null ? -1 : 1)`)
    out.line(`if (${field.name} !== null) write${struct.name}(w, ${field.name}, v)`)
  }

  private array(field: Field): void {
    const { out } = this
    out.line(`const ${field.name} = ${this.value(field)}`)
    if (field.nullable !== undefined) {
      const when = condition(field.nullable, field.versions)
      out.line(`if (${field.name} === null) {`)
      if (when !== undefined) out.line(`if (!(${when})) w.nullIn('${field.path}', v)`)
      this.count(field, '-1')
      out.line('} else {')
    }
    this.count(field, `${field.name}.length`)
    if (field.type === 'int32') out.line(`w.int32s(${field.name})`)
    else if (isStruct(field.type)) out.line(`for (const item of ${field.name}) write${field.type.name}(w, item, v)`)
    else {
      out.line(`for (const item of ${field.name}) {`)
      this.primitive({ ...field, array: false, nullable: undefined }, 'item')
      out.line('}')
    }
    if (field.nullable !== undefined) out.line('}')
  }

  private count(field: Field, length: string): void {
    const kind = flexibility(field.versions, this.message.flexibleFrom)
    const compact = `w.uvarint(${length === '-1' ? '0' : `${length} + 1`})`
    if (kind === 'always') this.out.line(compact)
    else if (kind === 'never') this.out.line(`w.int32(${length})`)
    else {
      this.out.line(`if (flex) ${compact}`)
      this.out.line(`else w.int32(${length})`)
    }
  }

  private tags(mixed: boolean): void {
    const { out, struct, message } = this
    const known = taggedFields(struct)
    if (known.length === 0) {
      out.line(`${mixed ? 'if (flex) ' : ''}w.unknownTags(s.unknownTags)`)
      if (mixed) out.line('else if (s.unknownTags !== undefined) w.noTags(s.unknownTags, v)')
      return
    }
    if (mixed) out.line('if (flex) {')
    out.line('const unknownTags = s.unknownTags')
    out.line('let tags = unknownTags === undefined ? 0 : unknownTags.length')
    const flexibleVersions = { from: Math.max(struct.versions.from, message.flexibleFrom), to: struct.versions.to }
    for (const field of known) {
      const when = covers(field.versions, flexibleVersions) ? undefined : condition(field.versions, flexibleVersions)
      const set = this.isSet(field)
      out.line(`const has${field.tag ?? 0} = ${when === undefined ? set : `${when} && (${set})`}`)
      out.line(`if (has${field.tag ?? 0}) tags++`)
    }
    out.line('w.uvarint(tags)')
    out.line('if (tags > 0) {')
    out.line('let next = 0')
    for (const field of known) {
      out.line(`if (has${field.tag ?? 0}) {`)
      out.line(`next = w.tagsBelow(unknownTags, next, ${field.tag ?? 0})`)
      out.line(`const from = w.openTag(${field.tag ?? 0})`)
      if (isStruct(field.type) && field.nullable !== undefined && !field.array) out.line('w.int8(1)')
      if (isStruct(field.type) && !field.array) out.line(`write${field.type.name}(w, s.${field.name} ?? nothing, v)`)
      else this.variable(field)
      out.line('w.closeTag(from)')
      out.line('}')
    }
    out.line('w.tagsBelow(unknownTags, next, Infinity)')
    out.line('}')
    if (mixed) out.line('} else if (s.unknownTags !== undefined) w.noTags(s.unknownTags, v)')
  }
}

function flexibilityIsMixed(field: Field, message: Message): boolean {
  return flexibility(field.versions, message.flexibleFrom) === 'mixed'
}
