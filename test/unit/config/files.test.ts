import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { commandPage, examples, fullYaml, insertTables, schemaJson } from '../../../scripts/generate-config.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { groupRuleLines, topicRuleLines } from '../../../src/config/rules.ts'
import { settings } from '../../../src/config/settings.ts'

const read = (file: string) => readFileSync(file, 'utf8')
/** Without what the formatter decides: the width of table columns and of quotes. */
const plain = (text: string) =>
  text
    .replace(/ *\| */g, '|')
    .replace(/-{3,}/g, '---')
    .replace(/["']/g, '"')

test('config/minimal.yaml and config/full.yaml mean the defaults', () => {
  const defaults = loadConfig({ upstream: 'localhost:9092' }).config
  assert.deepEqual(loadConfig({ file: 'config/minimal.yaml' }).config, defaults)
  assert.deepEqual(loadConfig({ file: 'config/full.yaml' }).config, defaults)
})

test('config/full.yaml has every key of the schema with its default, each under a comment', () => {
  const text = read('config/full.yaml')
  const file = parse(text) as Record<string, unknown>
  for (const setting of settings()) {
    const value = setting.path.reduce<unknown>(
      (at, part) => (at as Record<string, unknown>)[part === '[]' ? '0' : part],
      file,
    )
    assert.notEqual(value, undefined, setting.key)
    if (setting.default !== undefined) assert.deepEqual(value, setting.default, setting.key)
    assert.match(text, new RegExp(`^ *#.*\\n *(- )?${setting.path.at(-1)}:`, 'm'), `${setting.key} has no comment`)
  }
})

test('the examples in config/full.yaml are what their comments say they are, once the # is removed', () => {
  const text = Object.values(examples).map((lines) => lines.slice(1).map((line) => line.replace(/^# /, '')))
  const folder = mkdtempSync(join(tmpdir(), 'headgate-examples-'))
  const file = join(folder, 'c.yaml')
  writeFileSync(file, `upstream: {bootstrap: 'k:9092'}\n${text.flat().join('\n')}\n`)
  const { config, warnings } = loadConfig({ file })
  rmSync(folder, { recursive: true })
  assert.deepEqual(warnings, [])
  assert.deepEqual(topicRuleLines(config), [
    'orders-audit: order producer, partitioner auto, sealAfter 10m, goneAfter 2m, late accept, stateLoss hold',
    'orders-.*: order key, partitioner auto, sealAfter never, goneAfter 2m, late accept, stateLoss hold',
  ])
  assert.deepEqual(groupRuleLines(config), [
    'reporting: gate after 30s',
    'sessions: gate block, key ranges for left, right',
  ])
})

test('every setting is described', () => {
  for (const { key, description } of settings()) assert.ok(description.length > 15, key)
})

test('what is made from the schema is current (npm run generate:config)', () => {
  assert.deepEqual(JSON.parse(read('config/schema.json')), JSON.parse(schemaJson()))
  assert.equal(plain(read('config/full.yaml')), plain(fullYaml()))
  const page = read('docs/configuration.md')
  assert.equal(plain(page), plain(insertTables(page)))
})

test('docs/cli.md has the help of every command (npm run generate:config), and README.md names each', async () => {
  const page = read('docs/cli.md')
  assert.equal(page.trim(), (await commandPage()).trim())
  const commands = [...read('src/main.ts').matchAll(/^ {2}(\w+): \['/gm)].map((match) => match[1])
  assert.ok(commands.length >= 8)
  for (const name of commands) {
    assert.ok(page.includes(`\n## headgate ${name}\n`), name)
    assert.ok(read('README.md').includes(`headgate ${name}`), name)
  }
})

test('every key named in docs/configuration.md exists', () => {
  const known = settings().map(({ key }) => key)
  const sections = new Set(known.map((key) => key.split(/[.[]/)[0]))
  for (const [, name = ''] of read('docs/configuration.md').matchAll(/`([a-z]+(?:\[\d*\])?\.[a-zA-Z]+)`/g)) {
    if (!sections.has(name.split(/[.[]/)[0])) continue
    assert.ok(known.includes(name.replace(/\[\d\]/, '[]')), name)
  }
})
