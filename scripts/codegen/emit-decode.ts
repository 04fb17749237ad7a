/** Decoders: straight-line code per struct, one bounds check per run of fixed-size fields, one object literal. */
import { elementType, fieldType } from './emit-types.ts'
import type { Field, Message, Struct } from './model.ts'
import { covers, fixedBytes, flexibility, isStruct, primitiveName } from './model.ts'
import { condition, fallbackOf, minimumBytes, pick, runs, taggedFields } from './scope.ts'
import type { Source } from './scope.ts'

export function emitDecoders(out: Source, message: Message): void {
  const paths: string[] = []
  for (const struct of message.structs) new StructDecoder(out, struct, message, paths).emit()
  out.line(`const ${message.side}Fields = [`)
  for (const path of paths) out.line(`'${path}',`)
  out.close(']')
  out.line()
}

/** Source of a fixed-size read at a claimed position. */
function readAt(field: Field, at: string): string {
  switch (field.type) {
    case 'bool':
      return `view.getUint8(${at}) !== 0`
    case 'int64':
      return `r.int64At(${at})`
    case 'uuid':
      return `r.uuidAt(${at})`
    case 'int8':
      return `view.getInt8(${at})`
    case 'int16':
      return `view.getInt16(${at})`
    case 'uint16':
      return `view.getUint16(${at})`
    case 'int32':
      return `view.getInt32(${at})`
    case 'uint32':
      return `view.getUint32(${at})`
    case 'float64':
      return `view.getFloat64(${at})`
    case 'bigint64':
      return `view.getBigInt64(${at})`
    default:
      throw new Error(`${field.path} has no fixed size`)
  }
}

class StructDecoder {
  private readonly out: Source
  private readonly struct: Struct
  private readonly message: Message
  private readonly paths: string[]

  constructor(out: Source, struct: Struct, message: Message, paths: string[]) {
    this.out = out
    this.struct = struct
    this.message = message
    this.paths = paths
  }

  emit(): void {
    const { out, struct, message } = this
    const flexible = flexibility(struct.versions, message.flexibleFrom)
    out.line(`function read${struct.name}(r: Reader, v: number): ${struct.name} {`)
    if (flexible === 'mixed') out.line(`const flex = v >= ${message.flexibleFrom}`)
    const groups = runs(struct)
    if (groups.some((group) => this.usesView(group))) out.line('const view = r.view')
    for (const group of groups) this.group(group)
    if (flexible !== 'never') this.tags(flexible === 'mixed')
    const names = struct.fields.map((field) => field.name).join(', ')
    if (flexible === 'never') out.line(`return { ${names} }`)
    else {
      out.line(`const decoded: ${struct.name} = { ${names} }`)
      out.line('if (unknownTags !== undefined) decoded.unknownTags = unknownTags')
      out.line('return decoded')
    }
    out.line('}')
    out.line()
  }

  private usesView(group: Field[]): boolean {
    const first = group[0]
    if (first === undefined || fixedBytes(first) === 0) return false
    return group.some((field) => field.type !== 'int64' && field.type !== 'uuid')
  }

  private group(group: Field[]): void {
    const first = group[0]
    if (first === undefined) return
    const when = condition(first.versions, this.struct.versions)
    const fixed = fixedBytes(first) > 0
    if (when === undefined) {
      if (fixed) this.run(group, 'const ')
      else this.variable(first, true)
      return
    }
    if (fallbackOf(first) === 'nothing') throw new Error(`${first.path}: a plain struct must exist in every version`)
    for (const field of group) this.out.line(`let ${field.name}: ${fieldType(field)} = ${fallbackOf(field)}`)
    this.out.line(`if (${when}) {`)
    if (fixed) this.run(group, '')
    else this.variable(first, false)
    this.out.line('}')
  }

  private mark(path: string): void {
    this.out.line(`r.field = ${this.paths.length}`)
    this.paths.push(path)
  }

  private run(group: Field[], declare: string): void {
    const total = group.reduce((sum, field) => sum + fixedBytes(field), 0)
    this.mark(group.map((field) => `${field.path}:${fixedBytes(field)}`).join(','))
    const single = group.length === 1 ? group[0] : undefined
    if (single !== undefined) {
      this.out.line(`${declare}${single.name} = ${readAt(single, `r.take(${total})`)}`)
      return
    }
    const at = `at${this.paths.length}`
    this.out.line(`const ${at} = r.take(${total})`)
    let offset = 0
    for (const field of group) {
      this.out.line(`${declare}${field.name} = ${readAt(field, offset === 0 ? at : `${at} + ${offset}`)}`)
      offset += fixedBytes(field)
    }
  }

  /** One field of variable size; declared here when `declare` is set, assigned otherwise. */
  private variable(field: Field, declare: boolean): void {
    this.mark(field.path)
    if (field.array) this.array(field, declare)
    else if (isStruct(field.type)) this.nested(field, field.type, declare)
    else this.out.line(`${declare ? 'const ' : ''}${field.name} = ${this.primitive(field)}`)
  }

  private primitive(field: Field): string {
    if (fixedBytes(field) > 0) {
      if (field.nullable) throw new Error(`${field.path}: a fixed-size field cannot be null`)
      return `r.${primitiveName(field)}()`
    }
    const word = field.type === 'string' ? 'String' : 'Bytes'
    const nullable = pick(field.versions, this.message, `r.compactNullable${word}()`, `r.nullable${word}()`)
    const plain = pick(field.versions, this.message, `r.compact${word}()`, `r.${word.toLowerCase()}()`)
    if (field.nullable === undefined) return plain
    const when = condition(field.nullable, field.versions)
    return when === undefined ? nullable : `${when} ? (${nullable}) : (${plain})`
  }

  private nested(field: Field, struct: Struct, declare: boolean): void {
    const { out } = this
    const read = `read${struct.name}(r, v)`
    if (field.nullable === undefined) {
      out.line(`${declare ? 'const ' : ''}${field.name} = ${read}`)
      return
    }
    const when = condition(field.nullable, field.versions)
    if (when !== undefined) throw new Error(`${field.path}: null in some versions only`)
    out.line(`${declare ? 'const ' : ''}${field.name} = r.presence() ? ${read} : null`)
  }

  private array(field: Field, declare: boolean): void {
    const { out } = this
    const count = `${field.name}Size`
    const minimum = minimumBytes(field, this.message)
    const counting = (nullable: boolean) =>
      pick(
        field.versions,
        this.message,
        `r.compact${nullable ? 'NullableCount' : 'Count'}(${minimum.flexible})`,
        `r.${nullable ? 'nullableCount' : 'count'}(${minimum.plain})`,
      )
    let source = counting(false)
    if (field.nullable !== undefined) {
      const when = condition(field.nullable, field.versions)
      source = when === undefined ? counting(true) : `${when} ? (${counting(true)}) : (${counting(false)})`
    }
    const fill = this.fill(field, count)
    if (field.nullable === undefined && fill.startsWith('r.') && declare) {
      out.line(`const ${field.name} = ${fill.replace(count, source)}`)
      return
    }
    out.line(`const ${count} = ${source}`)
    const whole = fill.startsWith('r.') ? fill : undefined
    if (field.nullable === undefined) {
      if (whole === undefined) this.list(field, count, fill, declare ? 'const ' : '')
      else out.line(`${declare ? 'const ' : ''}${field.name} = ${whole}`)
      return
    }
    if (declare) out.line(`let ${field.name}: ${fieldType(field)} = null`)
    else out.line(`${field.name} = null`)
    out.line(`if (${count} >= 0) {`)
    if (whole === undefined) this.list(field, count, fill, '')
    else out.line(`${field.name} = ${whole}`)
    out.line('}')
  }

  private list(field: Field, count: string, fill: string, declare: string): void {
    this.out.line(`${declare}${field.name} = r.list<${elementType(field)}>(${count})`)
    this.out.line(`for (let i = 0; i < ${count}; i++) ${field.name}[i] = ${fill}`)
  }

  /** An expression for the whole array (starting with `r.`), or for one element. */
  private fill(field: Field, count: string): string {
    if (isStruct(field.type)) return `read${elementType(field)}(r, v)`
    if (field.type === 'int32') return `r.int32s(${count})`
    const element = this.primitive({ ...field, array: false, nullable: undefined })
    return `(${element})`
  }

  private tags(mixed: boolean): void {
    const { out, struct } = this
    const known = taggedFields(struct)
    for (const field of known) out.line(`let ${field.name}: ${fieldType(field)} = ${fallbackOf(field)}`)
    this.mark(`${pathOf(struct)}tags`)
    if (known.length === 0) {
      out.line(`const unknownTags = ${mixed ? 'flex ? r.unknownTags() : undefined' : 'r.unknownTags()'}`)
      return
    }
    out.line('let unknownTags: UnknownTag[] | undefined')
    if (mixed) out.line('if (flex) {')
    out.line('for (let left = r.uvarint(); left > 0; left--) {')
    out.line('const tag = r.uvarint()')
    out.line('switch (tag) {')
    for (const field of known) this.taggedCase(field)
    out.line('default:')
    out.line('  unknownTags ??= []')
    out.line('  unknownTags.push(r.unknownTag(tag))')
    out.line('}')
    out.line('}')
    if (mixed) out.line('}')
  }

  private taggedCase(field: Field): void {
    const { out, message } = this
    const flexibleVersions = {
      from: Math.max(this.struct.versions.from, message.flexibleFrom),
      to: this.struct.versions.to,
    }
    const when = covers(field.versions, flexibleVersions) ? undefined : condition(field.versions, flexibleVersions)
    out.line(`case ${field.tag ?? 0}: {`)
    if (when !== undefined) {
      out.line(`if (!(${when})) {`)
      out.line('unknownTags ??= []')
      out.line('unknownTags.push(r.unknownTag(tag))')
      out.line('break')
      out.line('}')
    }
    out.line('const end = r.tagEnd()')
    this.mark(field.path)
    if (fixedBytes(field) > 0) out.line(`${field.name} = ${this.primitive(field)}`)
    else if (field.array) this.array(field, false)
    else if (isStruct(field.type)) this.nested(field, field.type, false)
    else out.line(`${field.name} = ${this.primitive(field)}`)
    out.line('r.closeTag(end)')
    out.line('break')
    out.line('}')
  }
}

/** Path prefix of a struct's own fields. */
function pathOf(struct: Struct): string {
  const first = struct.fields[0]
  return first === undefined ? '' : first.path.slice(0, first.path.length - first.name.length)
}
