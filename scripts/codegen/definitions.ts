/** Reads every definition file of the repository. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Definition } from './model.ts'
import { parseDefinition } from './parse.ts'

const folder = join(import.meta.dirname, '../../src/protocol/definitions')

/** All definitions: APIs by key, then data formats and records by file name. */
export function readDefinitions(): Definition[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.api'))
    .map((file) => parseDefinition(basename(file, '.api'), readFileSync(join(folder, file), 'utf8')))
    .sort((a, b) => order(a) - order(b) || a.file.localeCompare(b.file))
}

function order(definition: Definition): number {
  return definition.kind === 'api' ? (definition.key ?? 0) : Number.MAX_SAFE_INTEGER
}
