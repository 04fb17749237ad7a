/** Runs every unit and property test with node:test; arguments narrow the files by substring. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

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

const run = spawnSync(process.execPath, ['--import', 'tsx', '--test', ...files], { stdio: 'inherit' })
process.exitCode = run.status ?? 1
