/**
 * Generates src/protocol/generated from src/protocol/definitions. With `--check` it writes nothing and fails when what
 * is committed is not what it would write.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiByKey } from '../src/protocol/api-table.ts'
import { emitModule, emitRegistry, emitTopicRegistry, emitTypeIndex } from './codegen/emit.ts'
import type { Definition } from './codegen/model.ts'
import { readDefinitions } from './codegen/definitions.ts'

const target = join(import.meta.dirname, '../src/protocol/generated')
const check = process.argv.includes('--check')

const definitions = readDefinitions()
definitions.forEach(checkAgainstTable)
const wanted = new Map(definitions.map((definition) => [`${definition.file}.ts`, emitModule(definition)]))
wanted.set('registry.ts', emitRegistry(definitions))
wanted.set('types.ts', emitTypeIndex(definitions))
wanted.set('offsets-registry.ts', emitTopicRegistry(definitions, 'offsets-'))
wanted.set('transactions-registry.ts', emitTopicRegistry(definitions, 'transactions-'))

const problems: string[] = []
mkdirSync(target, { recursive: true })
const present = new Set(readdirSync(target))
for (const name of present) {
  if (wanted.has(name)) continue
  if (check) problems.push(`${name} has no definition`)
  else rmSync(join(target, name))
}
for (const [name, text] of wanted) {
  const path = join(target, name)
  const current = present.has(name) ? readFileSync(path, 'utf8') : undefined
  if (current === text) continue
  if (check) problems.push(`${name} is not current`)
  else writeFileSync(path, text)
}
for (const problem of problems) console.error(problem)
if (problems.length > 0) {
  console.error('run: npm run codegen')
  process.exitCode = 1
} else {
  console.log(`${definitions.length} definitions, ${wanted.size} modules ${check ? 'are current' : 'written'}`)
}

/** The table is what frames are judged by without a codec, so the two must say the same. */
function checkAgainstTable(definition: Definition): void {
  if (definition.kind !== 'api' || definition.key === undefined) return
  const row = apiByKey(definition.key)
  const { from, to } = definition.versions
  const agrees =
    row !== undefined &&
    row.client &&
    row.name === definition.name &&
    row.minVersion === from &&
    row.maxVersion === to &&
    row.flexibleFrom === definition.flexibleFrom
  if (!agrees) throw new Error(`${definition.file}: differs from its row in the API table: ${JSON.stringify(row)}`)
}
