/** Everything about records once more on our own code: without the native packages and node:zlib's zstd. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../../..')

function testsUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && name !== 'fallback.test.ts')
    .map((name) => join(folder, name))
}

test('all records tests pass without native packages', () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const files = [...testsUnder('test/unit/records'), ...testsUnder('test/property/records')]
  const run = spawnSync(process.execPath, ['--import', 'tsx', '--test', '--test-reporter=tap', ...files], {
    cwd: root,
    env: { ...env, HEADGATE_NATIVE: 'off' },
    encoding: 'utf8',
  })
  assert.equal(
    run.status,
    0,
    run.stdout
      .split('\n')
      .filter((line) => line.startsWith('not ok'))
      .join('\n'),
  )
  assert.match(run.stdout, /^# pass [1-9]\d/m)
})
