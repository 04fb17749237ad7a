/**
 * The definition language. One file per API, request and response side by side:
 *
 *     # What it does, for the reader.
 *     api 1 Fetch
 *     versions 0-18
 *     flexible 12+
 *
 *     request
 *       struct Shared               a struct that several fields use
 *         id: int32
 *       topics: [Topic] 4+          an array of structs, defined by the indented lines
 *         name: string 0-12 @topic  in versions 0 to 12; its value names a topic
 *         rack: string?7+ = null    null allowed from version 7 on; what it is when absent
 *         epoch: int32 9+ = -1 ignorable
 *         hint: Hint 12+ tag 0      a tagged field
 *           ...
 *
 * `data Name` in place of `api` defines a format that is no API; its only section is `data`. `record 1 Name` defines
 * what an internal topic holds, with the sections `key` and `value`; versions and flexible speak of the value.
 */
import type { Definition, Field, Message, Primitive, Range, Side, Struct } from './model.ts'
import { covers, intersect, primitives } from './model.ts'

interface Line {
  readonly number: number
  readonly indent: number
  readonly text: string
}

/** Parses one definition file; throws with file and line on anything it does not understand. */
export function parseDefinition(file: string, text: string): Definition {
  const comment = text
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .map((line) => line.slice(1).trim())
    .join(' ')
  const lines = text
    .split('\n')
    .map((raw, index) => ({ number: index + 1, indent: raw.length - raw.trimStart().length, text: raw.trim() }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'))
  const head = new Map<string, string>()
  let next = 0
  for (; next < lines.length && !/^(request|response|data|key|value)$/.test(lines[next]?.text ?? ''); next++) {
    const [word = '', ...rest] = lines[next]?.text.split(' ') ?? []
    head.set(word, rest.join(' '))
  }
  const kind = (['api', 'data', 'record'] as const).find((word) => head.has(word))
  const [, key, name] = /^(?:(\d+) )?(\w+)$/.exec(head.get(kind ?? '') ?? '') ?? []
  if (kind === undefined || name === undefined) throw new Error(`${file}: no 'api KEY Name' or 'data Name'`)
  const flexible = head.get('flexible')
  const versions = parseRange(head.get('versions') ?? '')
  const flexibleFrom = flexible === undefined ? Infinity : parseRange(flexible).from
  const messages: Message[] = []
  while (next < lines.length) {
    const side = lines[next]?.text as Side
    let end = next + 1
    while (end < lines.length && (lines[end]?.indent ?? 0) > 0) end++
    const rootName = side === 'data' ? name : name + side.charAt(0).toUpperCase() + side.slice(1)
    const parser =
      side === 'key'
        ? new MessageParser(file, side, rootName, { from: 0, to: 0 }, Infinity)
        : new MessageParser(file, side, rootName, versions, flexibleFrom)
    messages.push(parser.parse(lines.slice(next + 1, end)))
    next = end
  }
  return {
    file,
    comment,
    kind,
    key: key === undefined ? undefined : Number(key),
    name,
    versions,
    flexibleFrom,
    messages,
  }
}

const fieldPattern =
  /^(?<name>\w+): (?<open>\[?)(?<type>\w+)(?<close>\]?)(?<null>\?)?(?<nullable>\d+(?:\+|-\d+)?)?(?: (?<versions>\d+(?:\+|-\d+)?))?(?: tag (?<tag>\d+))?(?: = (?<fallback>\S+))?(?<ignorable> ignorable)?(?: @(?<entity>\w+))?$/

export function parseRange(text: string): Range {
  const match = /^(\d+)(\+|-(\d+))?$/.exec(text)
  if (match === null) throw new Error(`'${text}' is no version range`)
  const from = Number(match[1])
  if (match[2] === undefined) return { from, to: from }
  return { from, to: match[3] === undefined ? Infinity : Number(match[3]) }
}

class MessageParser {
  private readonly file: string
  private readonly side: Side
  private readonly name: string
  private readonly versions: Range
  private readonly flexibleFrom: number
  private readonly structs: Struct[] = []
  private readonly byName = new Map<string, Struct>()
  private readonly used = new Map<Struct, Range>()

  constructor(file: string, side: Side, name: string, versions: Range, flexibleFrom: number) {
    this.file = file
    this.side = side
    this.name = name
    this.versions = versions
    this.flexibleFrom = flexibleFrom
  }

  parse(lines: Line[]): Message {
    const root: Struct = { name: this.name, fields: [], versions: this.versions }
    root.fields.push(...this.block(lines, 2, '', this.versions))
    this.structs.push(root)
    for (const [struct, versions] of this.used) struct.versions = versions
    const { side, name, structs, flexibleFrom } = this
    return { side, name, structs, root, versions: this.versions, flexibleFrom }
  }

  /** The fields of one indented block; nested blocks become structs. */
  private block(lines: Line[], indent: number, path: string, within: Range): Field[] {
    const fields: Field[] = []
    for (let at = 0; at < lines.length; ) {
      const line = lines[at]
      if (line === undefined || line.indent !== indent) throw this.error(line, 'wrong indentation')
      let end = at + 1
      while (end < lines.length && (lines[end]?.indent ?? 0) > indent) end++
      const nested = lines.slice(at + 1, end)
      const shared = /^struct (\w+)(?: (\S+))?$/.exec(line.text)
      if (shared?.[1] !== undefined) {
        const versions = shared[2] === undefined ? within : intersect(within, parseRange(shared[2]))
        this.define(shared[1], nested, indent + 2, `${shared[1]}.`, versions)
      } else {
        fields.push(this.field(line, nested, path, within))
      }
      at = end
    }
    return fields
  }

  private field(line: Line, nested: Line[], path: string, within: Range): Field {
    const parts = fieldPattern.exec(line.text)?.groups
    if (parts?.['name'] === undefined || parts['type'] === undefined) throw this.error(line, 'not a field')
    const name = parts['name']
    const versions = parts['versions'] === undefined ? within : intersect(within, parseRange(parts['versions']))
    if (versions.from > versions.to) throw this.error(line, 'in no version')
    const array = parts['open'] === '['
    const fieldPath = path + name
    const type = this.type(line, parts['type'], nested, `${fieldPath}${array ? '[]' : ''}.`, versions)
    const nullable = parts['nullable'] === undefined ? versions : intersect(versions, parseRange(parts['nullable']))
    return {
      name,
      array,
      type,
      versions,
      nullable: parts['null'] === undefined ? undefined : nullable,
      tag: parts['tag'] === undefined ? undefined : Number(parts['tag']),
      fallback: parts['fallback'],
      ignorable: parts['ignorable'] !== undefined,
      entity: parts['entity'],
      path: fieldPath,
    }
  }

  private type(line: Line, name: string, nested: Line[], path: string, versions: Range): Primitive | Struct {
    if (name in primitives) return name as Primitive
    const struct =
      nested.length > 0 ? this.define(name, nested, line.indent + 2, path, versions) : this.byName.get(name)
    if (struct === undefined) throw this.error(line, `no struct ${name}`)
    this.use(struct, versions)
    return struct
  }

  /** Remembers where a struct is read, and so where those inside a shared one are. */
  private use(struct: Struct, versions: Range): void {
    const before = this.used.get(struct)
    const joined =
      before === undefined
        ? versions
        : { from: Math.min(before.from, versions.from), to: Math.max(before.to, versions.to) }
    this.used.set(struct, joined)
  }

  private define(name: string, lines: Line[], indent: number, path: string, versions: Range): Struct {
    if (this.byName.has(name)) throw this.error(lines[0], `struct ${name} is defined twice`)
    const fields = this.block(lines, indent, path, versions)
    const struct: Struct = { name: this.name + name, fields, versions }
    if (!fields.every((field) => covers(versions, field.versions))) throw this.error(lines[0], 'versions do not nest')
    this.byName.set(name, struct)
    this.structs.push(struct)
    return struct
  }

  private error(line: Line | undefined, detail: string): Error {
    return new Error(`${this.file}:${line?.number ?? 0}: ${detail}: ${line?.text ?? ''}`)
  }
}
