/**
 * Runs the simulation over many seeds.
 *
 *   npm run simulate -- [--seeds N] [--from N] [--scenario plain|filtered|layouts] [--jobs N]
 *                       [--seed N]       one seed, with its plan, log and violations
 *                       [--plan FILE]    a plan as a failing run printed it
 *                       [--break NAME]   with a bug made on purpose (--break list names them): stops when it is found
 *                       [--help]
 *
 * A failing seed is printed with a smaller plan that fails alike, and how to run it again. Exit code 1: something failed
 * or was never met (with --break: the bug was not found).
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { drawPlan, type Plan, type ScenarioName, scenarios } from '../test/simulation/plan.ts'
import { type Outcome, runPlan } from '../test/simulation/run.ts'
import { sabotageNamed, sabotages } from '../test/simulation/sabotage.ts'
import { sameFailure, shrink } from '../test/simulation/shrink.ts'
import { Statistics } from '../test/simulation/statistics.ts'

const DEFAULT_SEEDS = 200
/** Failing seeds that are made smaller and printed in full; the others are named. */
const SHOWN_FAILURES = 2
/** With so many, a fault or state that does not occur at all is a mistake of the plans. */
const SEEDS_THAT_MEET_ALL = 1_500

interface Part {
  seeds: number
  failed: number[]
  events: number
  faults: number
  /** Of the processor, with the other jobs and whatever else runs on the machine left out. */
  cpuMs: number
  counts: [string, number][]
  text: string[]
}

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: String(DEFAULT_SEEDS) },
    from: { type: 'string', default: '0' },
    scenario: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    seed: { type: 'string' },
    plan: { type: 'string' },
    break: { type: 'string' },
    part: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** Takes the bug made on purpose out again. */
let undo: (() => void) | undefined

async function main(): Promise<number> {
  if (values.help) {
    const [head = ''] = readFileSync(fileURLToPath(import.meta.url), 'utf8').split('*/')
    console.log(head.replace(/^\/\*\*\n|^ \* ?/gm, '').trimEnd())
    return 0
  }
  if (values.break === 'list') {
    for (const { name, about, scenario } of sabotages) console.log(`${name} (${scenario}): ${about}`)
    return 0
  }
  const broken = values.break === undefined ? undefined : sabotageNamed(values.break)
  undo = broken?.commit()
  const wanted = values.scenario ?? broken?.scenario
  const names = scenarios.filter((name) => wanted === undefined || name === wanted)
  if (names.length === 0) throw new Error(`no scenario ${wanted}; there are ${scenarios.join(', ')}`)
  if (values.plan !== undefined) return showOne(JSON.parse(readFileSync(values.plan, 'utf8')) as Plan)
  if (values.seed !== undefined) return showOne(drawPlan(Number(values.seed), names[0] ?? 'plain'))
  const [from, seeds, jobs] = [Number(values.from), Number(values.seeds), Number(values.jobs)]
  if (values.part) {
    console.log(JSON.stringify(await runSeeds(names, from, seeds, broken !== undefined)))
    return 0
  }
  const started = performance.now()
  const parts =
    jobs > 1 && broken === undefined
      ? await runJobs(from, seeds, jobs)
      : [await runSeeds(names, from, seeds, broken !== undefined)]
  return report(parts, names, (performance.now() - started) / 1000, broken?.name)
}

/** Each job takes a slice of the seeds in a process of its own. */
async function runJobs(from: number, seeds: number, jobs: number): Promise<Part[]> {
  const each = Math.ceil(seeds / jobs)
  const slices = Array.from({ length: jobs }, (_, i) => ({
    from: from + i * each,
    seeds: Math.min(each, seeds - i * each),
  }))
  return Promise.all(slices.filter((slice) => slice.seeds > 0).map(runJob))
}

function runJob(slice: { from: number; seeds: number }): Promise<Part> {
  const scenario = values.scenario === undefined ? [] : ['--scenario', values.scenario]
  const own = [fileURLToPath(import.meta.url), '--part', '--from', String(slice.from), '--seeds', String(slice.seeds)]
  const child = spawn(process.execPath, [...process.execArgv, ...own, ...scenario], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Part)
      else reject(new Error(`a job ended with ${code}: ${output.slice(-2000)}`))
    })
  })
}

async function runSeeds(
  names: readonly ScenarioName[],
  from: number,
  seeds: number,
  stopAtFailure: boolean,
): Promise<Part> {
  const statistics = new Statistics()
  const part: Part = { seeds: 0, failed: [], events: 0, faults: 0, cpuMs: 0, counts: [], text: [] }
  const before = process.cpuUsage()
  for (let seed = from; seed < from + seeds; seed++) {
    const plan = drawPlan(seed, names[seed % names.length] ?? 'plain')
    const outcome = await runPlan(plan)
    part.seeds++
    part.events += outcome.history.length
    for (const [what, times] of outcome.counts) if (what.startsWith('faults.')) part.faults += times
    statistics.add(outcome.counts)
    if (Object.keys(outcome.failures).length === 0) continue
    if (await failsAnyway(plan)) continue
    part.failed.push(seed)
    if (part.failed.length <= SHOWN_FAILURES) part.text.push(...(await explain(outcome)))
    if (stopAtFailure) break
  }
  const { user, system } = process.cpuUsage(before)
  part.cpuMs = (user + system) / 1000
  part.counts = Array.from(statistics.counts)
  return part
}

/** Whether the plan fails without the bug that was made on purpose: then it proves nothing about it. */
async function failsAnyway(plan: Plan): Promise<boolean> {
  if (undo === undefined || values.break === undefined) return false
  undo()
  const broken = sabotageNamed(values.break)
  const end = broken.compare?.()
  const { failures } = await runPlan(plan)
  end?.()
  undo = broken.commit()
  return Object.keys(failures).length > 0
}

/** What failed, made smaller, and how to run it again. */
async function explain(outcome: Outcome): Promise<string[]> {
  const { plan, runs } = await shrink(outcome.plan, async (smaller) => sameFailure(outcome, await runPlan(smaller)))
  const smallest = await runPlan(plan)
  const { seed, scenario } = outcome.plan
  const flags = values.break === undefined ? '' : ` --break ${values.break}`
  return [
    `seed ${seed} (${scenario}) failed: ${JSON.stringify(outcome.failures)}`,
    `  again:   npm run simulate -- --seed ${seed} --scenario ${scenario}${flags}`,
    `  smaller: after ${runs} runs, ${smallest.history.length} of ${outcome.history.length} events: ${JSON.stringify(smallest.failures)}`,
    `  plan:    ${JSON.stringify(plan)}`,
    ...proof(smallest),
  ]
}

function proof(outcome: Outcome): string[] {
  const lines = outcome.thrown === undefined ? [] : [`  thrown: ${outcome.thrown}`]
  for (const { rule, message, events } of outcome.verdict.violations.slice(0, 4)) {
    lines.push(`  ${rule}: ${message}`, ...events.map((event) => `      ${JSON.stringify(event)}`))
  }
  return lines
}

async function showOne(plan: Plan): Promise<number> {
  const outcome = await runPlan(plan)
  console.log(`plan ${JSON.stringify(plan, null, 1)}`)
  for (const line of outcome.logLines) console.log(line)
  const statistics = new Statistics()
  statistics.add(outcome.counts)
  for (const line of [...statistics.print(), ...proof(outcome)]) console.log(line)
  console.log(
    `${outcome.history.length} events, ${Math.round(outcome.virtualMs)} virtual ms, failures ${JSON.stringify(outcome.failures)}`,
  )
  return Object.keys(outcome.failures).length === 0 ? 0 : 1
}

function report(parts: Part[], names: readonly string[], seconds: number, broken: string | undefined): number {
  const statistics = new Statistics()
  for (const part of parts) {
    statistics.add(new Map(part.counts))
    for (const line of part.text) console.log(line)
  }
  const sum = (of: (part: Part) => number): number => parts.reduce((total, part) => total + of(part), 0)
  const seeds = sum((p) => p.seeds)
  const failed = parts.flatMap((p) => p.failed)
  for (const line of statistics.print()) console.log(line)
  const perSeed = (total: number): string => (total / seeds).toFixed(1)
  console.log(
    `${seeds} seeds (${names.join(', ')}) in ${seconds.toFixed(1)} s: ${perSeed(sum((p) => p.events))} events, ${perSeed(sum((p) => p.faults))} faults and ${perSeed(sum((p) => p.cpuMs))} ms of processor each, ${failed.length} failed ${failed.slice(0, 20).join(' ')}`,
  )
  if (broken === undefined) {
    const missing = names.includes('layouts') && seeds >= SEEDS_THAT_MEET_ALL ? statistics.missingOfLayouts() : []
    if (missing.length > 0) console.log(`never occurred: ${missing.join(', ')}`)
    console.log(`${seeds - failed.length} passed, ${failed.length} failed`)
    return failed.length === 0 && missing.length === 0 ? 0 : 1
  }
  console.log(failed.length === 0 ? `${broken} was NOT found` : `${broken} was found by seed ${failed[0]}`)
  return failed.length === 0 ? 1 : 0
}

process.exitCode = await main()
