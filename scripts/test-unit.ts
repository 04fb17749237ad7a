/**
 * Runs every unit and property test in this one process; arguments narrow the files by substring. A process per file
 * would cost more than the tests do: each would load the TypeScript loader and the codecs again.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const roots = ['test/unit', 'test/property', 'test/regress']
const wanted = process.argv.slice(2)
const files = roots
  .flatMap((root) => readTree(root))
  .filter((file) => file.endsWith('.test.ts') && (wanted.length === 0 || wanted.some((w) => file.includes(w))))
  .sort()

function readTree(root: string): string[] {
  try {
    return readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => join(root, name))
  } catch {
    return []
  }
}

if (files.length === 0) {
  console.error(`no test file has ${wanted.join(' or ')} in its path`)
  process.exit(1)
}
for (const file of files) await import(pathToFileURL(file).href)
