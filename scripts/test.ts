/**
 * `npm test`: every check once, and of the crosses between client families a part chosen by a printed seed;
 * `npm run test:full`: the whole. Words after `--` narrow it to suites with such a name. The last line is `N passed, N failed, N skipped`.
 * What is missing on the machine is skipped with the line that installs it; with CI=true a skip fails the run.
 */
import { spawn } from 'node:child_process'
import { createWriteStream, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { MissingToolError } from './kafka/artifacts.ts'
import { type KafkaCluster, startKafka } from './kafka/cluster.ts'
import { type Suite, suites } from './test/suites.ts'
import { excerpt, type Tally, tally } from './test/tally.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false }, seed: { type: 'string' } },
})
const seed = options.seed ?? process.env['TEST_SEED'] ?? String(Math.floor(Math.random() * 1e9))
const logs = join(import.meta.dirname, '../.cache/test')
const children = new Set<() => void>()

const named = suites.filter(({ name }) => positionals.length === 0 || positionals.some((word) => name.includes(word)))
// Many suites start the built program: one left from older sources, or none, would be what they test.
const chosen = suites.filter((suite) => suite.name === 'build' || named.includes(suite))
if (named.length === 0) {
  console.error(
    `there is no suite named like ${positionals.join(' or ')}; there are: ${suites.map(({ name }) => name).join(', ')}`,
  )
  process.exit(1)
}
const minutes = Math.ceil(chosen.reduce((sum, suite) => sum + suite.seconds * (options.full ? 2 : 1), 0) / 60)
mkdirSync(logs, { recursive: true })
say(
  `${chosen.length} suites, about ${minutes} min after the first set-up; seed ${seed} (replay: TEST_SEED=${seed} npm test)`,
)
say(`full output of each: ${logs}`)

const total: Tally = { passed: 0, failed: 0, skipped: 0 }
let kafka: KafkaCluster | undefined
let ending = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // Every time: a second signal may come when the next child has been started, and must not end this process before it.
    for (const end of children) end()
    if (ending) return
    ending = true
    void (kafka?.stop() ?? Promise.resolve()).finally(() => process.exit(1))
  })
}
for (const suite of chosen) {
  if (ending) await new Promise(() => {}) // the broker is being stopped, then the process ends
  const counts = await runSuite(suite)
  total.passed += counts.passed
  total.failed += counts.failed
  total.skipped += counts.skipped
}
await kafka?.stop()
const skipFails = process.env['CI'] === 'true' && total.skipped > 0
if (skipFails) say('CI=true: a skip is a failure, everything must be installed here')
process.exitCode = total.failed > 0 || skipFails ? 1 : 0
say(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)

function say(line: string): void {
  console.log(line)
}

async function runSuite(suite: Suite): Promise<Tally> {
  const env: Record<string, string> = { TEST_SEED: seed, ...(options.full ? suite.fullEnv : {}) }
  if (suite.kafka === true) {
    try {
      kafka ??= await startKafka({ say })
      env['KAFKA_BOOTSTRAP'] = kafka.bootstrap
    } catch (error) {
      if (!(error instanceof MissingToolError)) throw error
      say(`- ${suite.name}: skipped, needs: ${error.install}`)
      return { passed: 0, failed: 0, skipped: 1 }
    }
  }
  say(`▶ ${suite.name} (about ${suite.seconds} s)`)
  const began = Date.now()
  const { output, code, late } = await capture(suite, env)
  const counts = tally(output, code)
  const seconds = ((Date.now() - began) / 1000).toFixed(0)
  const skips = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
  const verdict = counts.failed > 0 ? '✖' : '✔'
  say(
    `${verdict} ${suite.name}: ${counts.passed} passed, ${counts.failed} failed${skips} in ${seconds} s${late ? ' (ended: too slow)' : ''}`,
  )
  for (const line of new Set(output.match(/needs: .*/g) ?? [])) say(`  ${line}`)
  if (counts.failed > 0) say(excerpt(output))
  return counts
}

/** Runs a suite's command; its output goes to a file and is given back. */
async function capture(
  suite: Suite,
  env: Record<string, string>,
): Promise<{ output: string; code: number | null; late: boolean }> {
  const [command, ...args] = [...suite.command, ...(options.full ? (suite.full ?? []) : [])] as [string, ...string[]]
  const child = spawn(command === 'node' ? process.execPath : command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const log = createWriteStream(join(logs, `${suite.name.replaceAll(/[^a-z]+/g, '-')}.log`))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      log.write(text)
    })
  }
  const end = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  children.add(end)
  let late = false
  const limit = Math.max(300, suite.seconds * 5) * (options.full ? 4 : 1)
  const timer = setTimeout(() => {
    late = true
    end()
  }, limit * 1000)
  const code = await new Promise<number | null>((resolve) => {
    child.on('error', () => resolve(1))
    child.on('close', (status) => resolve(status))
  })
  clearTimeout(timer)
  children.delete(end)
  log.end()
  return { output, code, late }
}
