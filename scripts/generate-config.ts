/**
 * Writes what is derived from the configuration's schema and from the commands' help: config/schema.json,
 * config/full.yaml, the tables in docs/configuration.md and docs/cli.md. Run it after changing src/config/schema.ts or a
 * help text; a test checks that the files are current.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Command } from '../src/cli/command.ts'
import { variableName } from '../src/config/environment.ts'
import { loadConfig } from '../src/config/load.ts'
import { configRows, scalar } from '../src/config/show.ts'
import { jsonSchema, settings } from '../src/config/settings.ts'

const exampleUpstream = 'localhost:9092'

/** What stands as a comment below a section that is empty by default; a test loads each. */
export const examples: Readonly<Record<string, readonly string[]>> = {
  topics: [
    '# For example:',
    '# topics:',
    '#   orders-audit: # an exception stands before the rule it is taken from',
    '#     layouts: {order: producer, sealAfter: 10m}',
    '#   "orders-.*": # every name that begins with orders-',
    '#     layouts: {} # the defaults: partitioner auto, order key, sealAfter never, goneAfter 2m, late accept, stateLoss hold',
  ],
  groups: [
    '# For example:',
    '# groups:',
    '#   reporting: # reads, and never commits to Kafka',
    '#     gate: after 30s',
    '#   sessions: # two consumers share a partition by ranges of the key hash',
    '#     ranges:',
    '#       - {clientId: left, keys: [0-7fff]}',
    '#       - {clientId: right, keys: [8000-ffff]}',
  ],
}

export function schemaJson(): string {
  return `${JSON.stringify({ title: 'Configuration of Headgate', ...jsonSchema() }, null, 2)}\n`
}

/** Every key with its description as a comment and its default as the value; the upstream is an example. */
export function fullYaml(): string {
  const rows = configRows(loadConfig({ upstream: exampleUpstream }))
  const sections = jsonSchema().properties ?? {}
  const lines = [
    '# yaml-language-server: $schema=./schema.json',
    '#',
    '# Every setting of Headgate. The values are the defaults, except upstream.bootstrap, which has none.',
    '# Made from the schema by `npm run generate:config`; see docs/configuration.md for how to use it.',
  ]
  let section = ''
  for (const [index, setting] of settings().entries()) {
    const [top = ''] = setting.path
    if (setting.path.length === 1) {
      section = top
      lines.push(
        '',
        ...comment(describe(setting), ''),
        `${top}: ${scalar(rows[index]?.value)}`,
        ...(examples[top] ?? []),
      )
      continue
    }
    const inList = setting.path.includes('[]')
    const isFirst = top !== section
    if (isFirst) lines.push('', ...comment(sections[top]?.description ?? '', ''), `${top}:`)
    section = top
    const dash = inList && isFirst
    const indent = inList ? '    ' : '  '
    if (!isFirst) lines.push('')
    lines.push(...comment(describe(setting), dash ? '  ' : indent))
    lines.push(`${dash ? '  - ' : indent}${setting.path.at(-1)}: ${scalar(rows[index]?.value)}`)
  }
  return `${lines.join('\n')}\n`
}

function describe({ description, values }: { description: string; values: readonly string[] | undefined }): string {
  return values ? `${description} One of: ${values.join(', ')}.` : description
}

function comment(text: string, indent: string): string[] {
  const lines: string[] = []
  let line = `${indent}#`
  for (const word of text.split(' ')) {
    if (line.length + word.length + 1 > 110) {
      lines.push(line)
      line = `${indent}#`
    }
    line += ` ${word}`
  }
  return [...lines, line]
}

/** One table per section, for docs/configuration.md. */
export function settingTables(): string {
  const rows = configRows(loadConfig({ upstream: exampleUpstream }))
  const sections = jsonSchema().properties ?? {}
  const parts: string[] = []
  let section = ''
  for (const [index, setting] of settings().entries()) {
    const [top = ''] = setting.path
    if (top !== section) {
      parts.push(
        `${section === '' ? '' : '\n'}### \`${top}\`\n\n${sections[top]?.description ?? ''}\n`,
        '| Key and environment variable | Default | Meaning |',
        '|---|---|---|',
      )
    }
    section = top
    const value = setting.required ? 'none' : `\`${scalar(rows[index]?.value)}\``
    const name = `\`${setting.key}\`<br>\`${variableName(setting)}\``
    parts.push(`| ${name} | ${value} | ${describe(setting)} |`)
  }
  return parts.join('\n')
}

export const tableMarkers = ['<!-- settings: made by npm run generate:config -->', '<!-- end of settings -->'] as const

export function insertTables(page: string): string {
  const [begin, end] = tableMarkers
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error('docs/configuration.md has lost its markers')
  return `${page.slice(0, from + begin.length)}\n\n${settingTables()}\n\n${page.slice(to)}`
}

const commandNames = ['serve', 'check', 'config', 'topics', 'groups', 'inspect', 'healthcheck', 'version'] as const

/** docs/cli.md: what `headgate help <command>` prints, for every command. */
export async function commandPage(): Promise<string> {
  const parts = await Promise.all(
    commandNames.map(async (name) => {
      const { command } = (await import(`../src/cli/${name}.ts`)) as { command: Command }
      return `## headgate ${name}\n\n\`\`\`text\n${command.help}\n\`\`\`\n`
    }),
  )
  const head = '# The command line\n\nWhat `headgate help COMMAND` prints. Made by `npm run generate:config`.\n'
  return `${head}\n${parts.join('\n')}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const files = ['config/schema.json', 'config/full.yaml', 'docs/configuration.md', 'docs/cli.md'] as const
  writeFileSync(files[0], schemaJson())
  writeFileSync(files[1], fullYaml())
  writeFileSync(files[2], insertTables(readFileSync(files[2], 'utf8')))
  writeFileSync(files[3], await commandPage())
  spawnSync('npx', ['biome', 'format', '--write', ...files], { stdio: 'inherit' })
}
