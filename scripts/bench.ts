/**
 * Compares Headgate with other proxies, side by side on this machine:
 *   npm run bench -- [SCENARIO …] [--targets a,b] [--rounds 5] [--seconds 3] [--pin] [--json FILE] [--profile DIR]
 *   npm run bench -- codecs | records | state [--rounds 5]
 *   npm run bench -- expansion [--seconds 3]
 *   npm run bench -- --list
 * --profile: V8's CPU profile of the Node targets; choose one target and one scenario for the summary to mean something.
 * Timing never makes it fail; it exits with 1 only if a target did not carry the load at all.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { describeMachine, installed } from '../test/bench/machine.ts'
import { compilePrograms } from '../test/bench/native.ts'
import { summarise } from '../test/bench/profile.ts'
import { judge, type ScenarioResult, table, verdict } from '../test/bench/report.ts'
import { runScenarios } from '../test/bench/runner.ts'
import type { Scenario } from '../test/bench/measure.ts'
import { scenarios } from '../test/bench/scenario.ts'
import { readTargets } from '../test/bench/target.ts'
import { run } from './setup/run.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    targets: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    pin: { type: 'boolean', default: false },
    json: { type: 'string' },
    profile: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
})
const say = (line: string) => console.error(line)

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}

function positive(name: 'rounds' | 'seconds'): number {
  const value = Number(values[name])
  return value > 0 ? value : fail(`--${name} must be a number above 0`)
}

function chosenScenarios(): readonly Scenario[] {
  for (const name of positionals) {
    if (!scenarios.some((one) => one.name === name)) {
      fail(
        `no scenario is called ${name}; there are: ${scenarios.map((one) => one.name).join(' ')}; alone: ${alone.map((one) => one.name).join(', ')}`,
      )
    }
  }
  return positionals.length === 0 ? scenarios : scenarios.filter(({ name }) => positionals.includes(name))
}

function chosenTargets() {
  const all = readTargets()
  const names = values.targets?.split(',') ?? all.map(({ name }) => name)
  return names.map((name) => all.find((one) => one.name === name) ?? fail(`no target is called ${name}`))
}

function failures(results: readonly ScenarioResult[]): string[] {
  return results.flatMap(({ name, rounds }) =>
    Object.entries(rounds).flatMap(([target, measures]) =>
      target !== 'direct' && measures.some((one) => Object.keys(one).length === 0) ? [`${target} in ${name}`] : [],
    ),
  )
}

async function main(): Promise<void> {
  if (process.platform !== 'linux') fail('the bench reads /proc and uses epoll: it runs on Linux only')
  if (values.list) {
    for (const { name, title } of [...scenarios, ...alone]) console.log(`${name.padEnd(20)} ${title}`)
    return
  }
  const wanted = chosenScenarios()
  const candidates = chosenTargets()
  const [rounds, seconds] = [positive('rounds'), positive('seconds')]
  say('compiling the load generator, building Headgate')
  const programs = await compilePrograms()
  if (candidates.some(({ command }) => command?.includes('dist/main.js')))
    await run('npm', ['run', '--silent', 'build'])
  const machine = describeMachine()
  const found = await installed(candidates, say)
  const minutes = (wanted.length * found.length * rounds * (seconds + 1.5)) / 60
  say(`${wanted.length} scenarios, ${found.length} targets, ${rounds} rounds: about ${Math.ceil(minutes)} minutes`)
  const targets = found.map(({ target }) => target)
  const pinTo = values.pin ? 0 : undefined
  const { profile } = values
  if (profile !== undefined) mkdirSync(profile, { recursive: true })
  const results = await runScenarios(wanted, { programs, targets, rounds, seconds, pinTo, profile, say })
  if (profile !== undefined) console.log(`${summarise(profile).join('\n')}\n`)
  const judgements = judge(results, 'headgate')
  const versions = Object.fromEntries(found.map(({ target, version }) => [target.name, version]))
  console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}, ${machine.at}`)
  console.log(
    `load average at the start ${machine.load.toFixed(2)}; ${rounds} rounds of ${seconds} s; medians (lowest…highest)`,
  )
  console.log(
    `versions: ${Object.entries(versions)
      .map((pair) => pair.join(' '))
      .join(', ')}\n`,
  )
  for (const result of results) {
    const base = 'prototype' in result.rounds ? 'prototype' : 'headgate'
    console.log(`${table(result, base)}\n`)
  }
  if (judgements.length > 0) console.log(verdict(judgements, 'headgate'))
  if (values.json !== undefined) {
    const all = { machine, versions, rounds, seconds, pinned: values.pin, results, judgements }
    writeFileSync(values.json, `${JSON.stringify(all, null, 2)}\n`)
  }
  const failed = failures(results)
  if (failed.length > 0) say(`did not carry the load: ${failed.join(', ')}`)
  process.exitCode = failed.length > 0 ? 1 : 0
}

/** Programs of their own, each to be named alone, with what of our options they take. */
const alone = [
  { name: 'codecs', title: 'codecs on one core, without sockets', file: 'codecs', words: [values.rounds] },
  { name: 'records', title: 'record filtering on one core, without sockets', file: 'records', words: [values.rounds] },
  {
    name: 'state',
    title: 'how long the state of 1,000 topics takes to load, and what memory it keeps',
    file: 'state-load',
    words: ['--rounds', values.rounds],
  },
  {
    name: 'expansion',
    title: 'a topic that grows under 10,000 records a second through three proxies: what clients wait for, Kafka',
    file: 'expansion',
    words: ['--seconds', values.seconds],
  },
]

async function runAlone({ file, words }: (typeof alone)[number]): Promise<void> {
  if (file === 'expansion') await run('npm', ['run', '--silent', 'build'])
  const path = join(import.meta.dirname, `../test/bench/${file}.ts`)
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', path, ...words], { stdio: 'inherit' })
  process.exitCode = status ?? 1
}

const single = positionals.length === 1 ? alone.find(({ name }) => name === positionals[0]) : undefined
if (single === undefined) await main()
else await runAlone(single)
