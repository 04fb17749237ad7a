/** `npm run demo` as a user runs it, on the fake broker: ends well, is found while it runs, cleans up however it ends. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { keep } from '../../../scripts/kafka/keeper.ts'
import { cacheFolder } from '../../../scripts/setup/cache.ts'
import { root } from '../../../scripts/setup/build.ts'
import { startOf } from '../../../scripts/demo/leftover.ts'
import { until } from '../../support/until.ts'
import { Process, status } from '../headgate.ts'

/** Started by `start`, as npm does it (`bootstrap.mjs`) or without the process in between. */
function demo(args: readonly string[], start: readonly string[] = ['--import', 'tsx']): Process {
  const command = [...start, 'scripts/demo.ts', '--kafka', 'fake', ...args]
  const env = { ...process.env, UPSTREAM_BOOTSTRAP: '' }
  return new Process(keep(process.execPath, command, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

const adminOf = (run: Process) => /curl (http:\/\/[\d.:]+)\/readyz/.exec(run.stdout)?.[1] ?? ''
const stateFile = (name: string) => join(cacheFolder(), `${name}.json`)

describe('the demo', { timeout: 300_000 }, () => {
  test('--once: says which Kafka, prints the addresses and what passed, exit 0, nothing left', async () => {
    const name = `test-once-${process.pid}`
    const run = demo(['--once', '--name', name], ['scripts/bootstrap.mjs'])
    assert.deepEqual(await run.finished, { code: 0, signal: null }, run.stdout + run.stderr)
    assert.match(run.stdout, /^Kafka: the fake broker: .*127\.0\.0\.1:\d+/m)
    assert.match(run.stdout, /bootstrap\.servers=127\.0\.0\.1:\d+/)
    for (const node of [1, 2, 3])
      assert.match(run.stdout, new RegExp(`node ${node} .*advertised 127\\.0\\.0\\.1:\\d+ →`))
    assert.match(run.stdout, /1000 records sent to 3 partitions .* and read back/)
    assert.match(run.stdout, /Produce +\d+ requests/)
    assert.equal(await status(adminOf(run)), 0)
    assert.equal(existsSync(stateFile(name)), false)
  })

  test('left running: its URLs answer, a second one finds it, Ctrl-C takes everything down', async () => {
    const name = `test-running-${process.pid}`
    const run = demo(['--name', name])
    await until(() => run.stdout.includes('Ctrl-C stops everything'))
    for (const [, url = ''] of run.stdout.matchAll(/curl (\S+)/g)) assert.equal(await status(url), 200, url)
    const second = demo(['--once', '--name', name])
    assert.equal((await second.finished).code, 1)
    assert.match(second.stderr, /a demo is running already/)
    run.kill('SIGINT')
    assert.deepEqual(await run.finished, { code: 0, signal: null })
    assert.equal(await status(adminOf(run)), 0)
    assert.equal(existsSync(stateFile(name)), false)
  })

  test('killed: what it started ends, and the next demo clears up', async () => {
    const name = `test-killed-${process.pid}`
    const run = demo(['--name', name])
    await until(() => run.stdout.includes('Ctrl-C stops everything'))
    run.kill('SIGKILL')
    await run.finished
    await until(async () => (await status(adminOf(run))) === 0)
    assert.ok(existsSync(stateFile(name)))
    const next = demo(['--once', '--name', name])
    assert.equal((await next.finished).code, 0, next.stdout + next.stderr)
    assert.match(next.stdout, /found what a killed demo had left behind/)
    assert.equal(existsSync(stateFile(name)), false)
  })

  test('a wrong option is explained', async () => {
    const run = demo(['--onse'])
    assert.equal((await run.finished).code, 2)
    assert.match(run.stderr, /--onse[^]*npm run demo -- \[options\]/)
  })
})

test('the start of a process tells it from a later one with the same id', {
  skip: process.platform !== 'linux',
}, () => {
  assert.match(startOf(process.pid), /^\d+$/)
  assert.equal(startOf(process.pid), startOf(process.pid))
  assert.equal(startOf(2 ** 22 + 1), '')
})
