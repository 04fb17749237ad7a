import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

/** Runs `code` with a logger on standard output in a process of its own, and returns what it wrote. */
function written(options: string, code: string): string {
  const script = `import { createLogger } from './src/telemetry/logger.ts'
    const log = await createLogger(${options})
    ${code}`
  const run = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  assert.equal(run.stderr, '')
  return run.stdout
}

test('JSON when not on a terminal, with level names, complete although the process exits at once', () => {
  const out = written(
    `{ level: 'info', format: 'auto' }`,
    `for (let i = 0; i < 5000; i++) log.info({ i }, 'line')
     log.debug({}, 'not this'); log.level = 'debug'; log.debug({ last: true }, 'but this')
     await log.close(); process.exit(0)`,
  )
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.equal(lines.length, 5001)
  assert.equal(lines[4999]?.i, 4999)
  assert.deepEqual(Object.keys(lines[0] ?? {}), ['level', 'time', 'i', 'msg'])
  assert.equal(lines[0]?.level, 'info')
  assert.equal(lines[5000]?.last, true)
})

test('an exit before the destination is open is no error', () => {
  assert.equal(written(`{ level: 'info', format: 'json' }`, 'await log.close(); process.exit(0)'), '')
})

test('pretty when asked for: one line per event, no colours off a terminal', () => {
  const out = written(`{ level: 'info', format: 'pretty' }`, `log.warn({ node: 1 }, 'hello'); await log.close()`)
  assert.match(out, /^\[\d\d:\d\d:\d\d\.\d{3}\] WARN: hello \{"node":1\}\n$/)
})
