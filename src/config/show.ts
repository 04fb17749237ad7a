/** Every setting with its value and source, as rows and as YAML that could be used as a file. */
import { stringify } from 'yaml'
import { variableName } from './environment.ts'
import type { Loaded } from './load.ts'
import { type Setting, settings } from './settings.ts'

export interface Row {
  /** `listeners[0].bind` */
  readonly key: string
  readonly value: unknown
  /** `default`, `config.yaml:3`, `environment X`, `--set x`. */
  readonly source: string
  /** The environment variable that sets it. */
  readonly variable: string
}

/** All settings in the order of the schema, list entries one after the other. */
export function configRows(loaded: Loaded): Row[] {
  const lists = new Map<string, Setting[]>()
  for (const setting of settings()) {
    const list = setting.path.includes('[]') ? (setting.path[0] ?? '') : setting.key
    lists.set(list, [...(lists.get(list) ?? []), setting])
  }
  return [...lists.values()].flatMap((group) => {
    const first = group[0]
    if (!first?.path.includes('[]')) return group.map((setting) => toRow(loaded, setting, undefined))
    const entries = valueAt(loaded.config, [first.path[0] ?? '']) as unknown[]
    return entries.flatMap((_, index) => group.map((setting) => toRow(loaded, setting, index)))
  })
}

function toRow({ config, written, sources }: Loaded, setting: Setting, index: number | undefined): Row {
  const path = setting.path.map((part) => (part === '[]' ? (index ?? 0) : part))
  const key = setting.key.replace('[]', `[${index ?? 0}]`)
  const value = valueAt(written, path) ?? setting.default ?? valueAt(config, path)
  // A list or map given entry by entry has its source at the entries.
  const source =
    sources.get(key) ??
    [...sources].find(([other]) => /^[[.]/.test(other.slice(key.length)) && other.startsWith(key))?.[1]
  return { key, value, source: source ?? 'default', variable: variableName(setting).replace('_N_', `_${index ?? 0}_`) }
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, part) => (at as Record<string | number, unknown> | null | undefined)?.[part], value)
}

/** The rows as YAML, the source of each value as a comment behind it. */
export function toYaml(rows: readonly Row[]): string {
  const lines: { text: string; source: string }[] = []
  let section = ''
  let entry = ''
  for (const { key, value, source } of rows) {
    const [, top = '', index, name = ''] = /^(\w+)(?:\[(\d+)\])?\.(\w+)$/.exec(key) ?? []
    if (name === '') {
      lines.push({ text: `${key}: ${scalar(value)}`, source })
      section = key
      continue
    }
    if (top !== section) lines.push({ text: `${top}:`, source: '' })
    const isNewEntry = index !== undefined && `${top}${index}` !== entry
    const indent = index === undefined ? '  ' : isNewEntry ? '  - ' : '    '
    lines.push({ text: `${indent}${name}: ${scalar(value)}`, source })
    section = top
    entry = `${top}${index}`
  }
  const width = Math.min(60, Math.max(...lines.map(({ text }) => text.length)))
  return lines.map(({ text, source }) => (source === '' ? text : `${text.padEnd(width)}  # ${source}`)).join('\n')
}

/** A value on one line of YAML. */
export function scalar(value: unknown): string {
  const collectionStyle = typeof value === 'object' ? 'flow' : 'block'
  return stringify(value, { collectionStyle, lineWidth: 0, flowCollectionPadding: false }).trim()
}

/** A value as an environment variable holds it: lists with commas, maps as `1=a:1,2=b:2`, deeper ones as JSON. */
export function variableText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  if (typeof value !== 'object' || value === null) return String(value)
  if (Object.values(value).some((entry) => typeof entry === 'object')) return JSON.stringify(value)
  return Object.entries(value)
    .map(([key, entry]) => `${key}=${entry}`)
    .join(',')
}
