/**
 * Puts the configuration together: defaults, then the file, then the environment, then the command line; the last one
 * wins. The result is validated as a whole and frozen. For each value it is known where it came from.
 */
import { readFileSync } from 'node:fs'
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from 'yaml'
import { type Environment, type Override, readAssignment, readEnvironment } from './environment.ts'
import { ConfigError, didYouMean, explain, formatPath, type Problem } from './problems.ts'
import { ruleWarnings } from './rules.ts'
import { type Config, configSchema } from './schema.ts'
import { namesAt } from './settings.ts'

export interface LoadOptions {
  /** Path of the YAML file; none: only environment and command line. */
  readonly file?: string | undefined
  readonly environment?: Environment
  /** `--upstream host:port,…` */
  readonly upstream?: string | undefined
  /** `--set key=value`, in order. */
  readonly assignments?: readonly string[]
  /** For commands that do not talk to Kafka: a missing upstream is no error, `unsetUpstream` stands in for it. */
  readonly upstreamOptional?: boolean
}

export const unsetUpstream = 'not-set:9092'

export interface Loaded {
  readonly config: Config
  /** The merged values as written, before defaults. */
  readonly written: unknown
  /** What is allowed and hardly meant, with its line. */
  readonly warnings: readonly Problem[]
  /** Where the value of a key (`listeners[0].bind`) came from; keys left at their default are absent. */
  readonly sources: ReadonlyMap<string, string>
}

type Path = readonly PropertyKey[]

/** Reads and validates everything. Throws `ConfigError` with every problem found, each with its line and fix. */
export function loadConfig(options: LoadOptions): Loaded {
  const file = options.file === undefined ? undefined : readYaml(options.file)
  const { overrides, problems } = collectOverrides(options)
  if (file) problems.unshift(...file.problems)
  if (problems.length > 0) throw new ConfigError(problems)

  const written = (file?.value ?? {}) as Record<string, unknown>
  const sources = new Map<string, string>()
  if (file) for (const { path, line } of file.leaves) sources.set(formatPath(path), `${options.file}:${line}`)
  for (const { path, value, source } of overrides) {
    assign(written, path, value)
    sources.set(formatPath(path), source)
  }
  dropEmpty(written)
  applyDefaultBind(written, sources, options.environment?.HEADGATE_DEFAULT_BIND)

  if (options.upstreamOptional && valueAt(written, ['upstream', 'bootstrap']) === undefined) {
    assign(written, ['upstream', 'bootstrap'], unsetUpstream)
    sources.set('upstream.bootstrap', 'not set; serve needs it')
  }

  const locate = (path: Path): string => {
    for (let length = path.length; length > 0; length--) {
      const source = sources.get(formatPath(path.slice(0, length)))
      if (source !== undefined) return source
    }
    const line = file?.lineOf(path)
    return line === undefined ? '' : `${options.file}:${line}`
  }
  const result = configSchema.safeParse(written)
  if (result.success) {
    const warnings = ruleWarnings(result.data).map((warning) => {
      const [section = '', ...name] = warning.key.split('.')
      return { ...warning, where: locate([section, name.join('.')]) }
    })
    return { config: freeze(result.data), written, warnings, sources }
  }
  throw new ConfigError(result.error.issues.flatMap((issue) => toProblems(issue, written, locate)))
}

/** No rules behind `topics:` or `groups:` are none, and no settings behind a rule's `layouts:` are the defaults. */
function dropEmpty(written: Record<string, unknown>): void {
  for (const key of ['topics', 'groups']) if (written[key] === null) delete written[key]
  const { topics } = written
  if (typeof topics !== 'object' || topics === null) return
  for (const rule of Object.values(topics) as unknown[]) {
    if (typeof rule === 'object' && rule !== null && 'layouts' in rule && rule.layouts === null) rule.layouts = {}
  }
}

function collectOverrides(options: LoadOptions): { overrides: Override[]; problems: Problem[] } {
  const { overrides, problems } = readEnvironment(options.environment ?? {})
  const assignments = options.assignments ?? []
  for (const { override, problem } of assignments.map(readAssignment)) {
    if (override) overrides.push(override)
    if (problem) problems.push(problem)
  }
  if (options.upstream !== undefined) {
    overrides.push({ path: ['upstream', 'bootstrap'], value: options.upstream, source: '--upstream' })
  }
  return { overrides, problems }
}

interface YamlFile {
  value: unknown
  problems: Problem[]
  leaves: { path: Path; line: number }[]
  /** Line of the key that `path` ends with, or of the nearest thing above it that exists. */
  lineOf(path: Path): number | undefined
}

function readYaml(file: string): YamlFile {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const message = `cannot be read: ${(cause as Error).message}`
    throw new ConfigError([{ where: file, key: '', message, fix: 'check the path given with --config' }])
  }
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const problems = [...document.errors, ...document.warnings].map((error) => ({
    where: `${file}:${lines.linePos(error.pos[0]).line}`,
    key: '',
    message: `is not valid YAML: ${error.message}`,
    fix: yamlFixes[error.code] ?? 'check indentation, colons and quotes on this line',
  }))
  const lineAt = (node: Node | null | undefined) => lines.linePos(node?.range?.[0] ?? 0).line
  const value: unknown = problems.length > 0 ? {} : (document.toJS() ?? {})
  if (typeof value !== 'object' || Array.isArray(value)) {
    const fix = 'start with a key, for example upstream:'
    problems.push({ where: `${file}:1`, key: '', message: 'does not hold a map of settings', fix })
  }
  return {
    value,
    problems,
    leaves: [...leavesOf(document.contents, [], lineAt)],
    lineOf: (path) => lineOf(document.contents, path, lineAt),
  }
}

const yamlFixes: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'indent with spaces, not tabs',
  DUPLICATE_KEY: 'remove one of the two',
}

type LineAt = (node: Node | null | undefined) => number

function* leavesOf(node: Node | null, path: Path, lineAt: LineAt): Generator<{ path: Path; line: number }> {
  if (isMap(node)) {
    for (const pair of (node as YAMLMap<Node, Node | null>).items) {
      const below = [...path, String(isScalar(pair.key) ? pair.key.value : pair.key)]
      if (isMap(pair.value) || isSeq(pair.value)) yield* leavesOf(pair.value, below, lineAt)
      else yield { path: below, line: lineAt(pair.key) }
    }
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      if (isMap(item)) yield* leavesOf(item, [...path, index], lineAt)
      else yield { path: [...path, index], line: lineAt(item as Node) }
    }
  }
}

function lineOf(root: Node | null, path: Path, lineAt: LineAt): number | undefined {
  let node: Node | null | undefined = root
  let line: number | undefined
  for (const part of path) {
    if (isMap(node)) {
      const items: YAMLMap<Node, Node | null>['items'] = (node as YAMLMap<Node, Node | null>).items
      const pair = items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(part))
      if (!pair) return line
      line = lineAt(pair.key)
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(part)] as Node | undefined
      if (!node) return line
      line = lineAt(node)
    } else return line
  }
  return line
}

function toProblems(issue: Parameters<typeof explain>[0], written: unknown, locate: (path: Path) => string): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const known = namesAt(issue.path)
    return issue.keys.map((key) => {
      const path = [...issue.path, key]
      return { where: locate(path), key: formatPath(path), message: 'is not a setting', fix: didYouMean(key, known) }
    })
  }
  const where = locate(issue.path)
  const key = formatPath(issue.path)
  const missing = issue.code !== 'custom' && valueAt(written, issue.path) === undefined
  if (missing && key.startsWith('upstream')) {
    const fix = 'set it in the file, as UPSTREAM_BOOTSTRAP in the environment, or with --upstream host:port'
    return [{ where: '', key: 'upstream.bootstrap', message: 'is not set', fix }]
  }
  return [{ where, key, ...explain(issue) }]
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown> | null | undefined)?.[part], value)
}

/** Sets `value` at `path`, making the maps and lists on the way. What is there and is neither is left to the schema. */
function assign(root: Record<string, unknown>, path: readonly (string | number)[], value: unknown): void {
  let at = root as Record<string | number, unknown>
  for (const [index, part] of path.slice(0, -1).entries()) {
    at[part] ??= typeof path[index + 1] === 'number' ? [] : {}
    const next = at[part]
    if (typeof next !== 'object') return
    if (Array.isArray(next)) {
      const wanted = Number(path[index + 1])
      for (let i = next.length; i < Math.min(wanted, 32); i++) next.push({})
    }
    at = next as Record<string | number, unknown>
  }
  at[path.at(-1) ?? ''] = value
}

/** The image sets HEADGATE_DEFAULT_BIND=0.0.0.0: the weakest source, for whatever the file and the user left open. */
function applyDefaultBind(
  written: Record<string, unknown>,
  sources: Map<string, string>,
  bind: string | undefined,
): void {
  if (bind === undefined || bind === '') return
  const source = 'environment HEADGATE_DEFAULT_BIND'
  const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
  written.listeners ??= [{}]
  const listeners: unknown[] = Array.isArray(written.listeners) ? written.listeners : []
  for (const [index, listener] of listeners.entries()) {
    if (!isObject(listener) || listener.mode === 'loopback' || listener.bind !== undefined) continue
    listener.bind = bind
    sources.set(`listeners[${index}].bind`, source)
  }
  written.admin ??= {}
  if (isObject(written.admin) && written.admin.bind === undefined) {
    written.admin.bind = bind.includes(':') ? `[${bind}]:9190` : `${bind}:9190`
    sources.set('admin.bind', source)
  }
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !(value instanceof Map)) {
    for (const child of Object.values(value)) freeze(child)
    Object.freeze(value)
  }
  return value
}
