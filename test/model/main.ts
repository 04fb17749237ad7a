/**
 * `npm run model -- --seeds N --from S`: runs seeds, prints how often every fault and state occurred, and stops at the
 * first seed with an uncounted violation, shrunk to the faults it needs. `--mutation NAME` breaks a rule on purpose,
 * `--trace` prints what happened, `--keep-going` runs all seeds.
 */
import { parseArgs } from 'node:util'
import { type Mutation, mutations, themeOf } from './mutations.ts'
import { type RunResult, runSeed } from './run.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
    mutation: { type: 'string' },
    skip: { type: 'string', default: '' },
    trace: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
  },
})
if (values.mutation !== undefined && !Object.hasOwn(mutations, values.mutation)) {
  throw new Error(`no mutation ${values.mutation}; there are ${Object.keys(mutations).join(', ')}`)
}
const mutation = values.mutation as Mutation | undefined
const theme = mutation === undefined ? undefined : themeOf[mutation]
const skip = new Set(values.skip.split(',').filter(Boolean).map(Number))

/** Leaves out one fault after the other while the seed still fails. */
function shrink(seed: number): { skip: Set<number>; result: RunResult } {
  let kept = new Set<number>(skip)
  let result = runSeed({ seed, mutation, theme, skip: kept })
  for (const { number } of [...result.model.scenario.faults]) {
    const without = new Set([...kept, number])
    const attempt = runSeed({ seed, mutation, theme, skip: without })
    if (attempt.failures.length === 0) continue
    kept = without
    result = attempt
  }
  return { skip: kept, result }
}

function report(seed: number): void {
  const { skip: left, result } = values.trace
    ? { skip, result: runSeed({ seed, mutation, theme, skip, isTracing: true }) }
    : shrink(seed)
  if (values.trace) console.log(result.model.world.trace.join('\n'))
  const { counts, order, producers, faults } = result.model.scenario
  console.log(
    `\nseed ${seed} fails: counts ${counts.join(' → ')}, order ${order}, ${result.model.scenario.proxies} proxies`,
  )
  for (const { name, family, startMs } of producers)
    console.log(`  ${name}: ${family.name}, refresh ${family.refreshMs ?? 'never'}, from ${startMs}`)
  for (const { number, kind, atMs, forMs } of faults) console.log(`  fault ${number}: ${kind} at ${atMs} for ${forMs}`)
  for (const { rule, text } of result.failures.slice(0, 5)) console.log(`  ${rule}: ${text.slice(0, 600)}`)
  console.log(
    `replay: npm run model -- --seeds 1 --from ${seed}${left.size > 0 ? ` --skip ${[...left].join(',')}` : ''}${mutation === undefined ? '' : ` --mutation ${mutation}`} --trace`,
  )
}

const totals = new Map<string, number>()
let events = 0
let counted = 0
let runsWithCounted = 0
let failed = 0
const started = process.hrtime.bigint()
const first = Number(values.from)
let ran = 0
for (let seed = first; seed < first + Number(values.seeds); seed++) {
  const result = runSeed({ seed, mutation, theme, skip })
  ran += 1
  for (const [what, count] of result.model.world.counts) totals.set(what, (totals.get(what) ?? 0) + count)
  events += result.model.world.history.length
  counted += result.counted.length
  if (result.counted.length > 0) runsWithCounted += 1
  if (result.failures.length === 0 && !values.trace) continue
  failed += 1
  if (values['keep-going'])
    console.log(
      `seed ${seed}: ${result.failures.length} ${result.failures[0]?.rule} ${result.failures[0]?.text.slice(0, 160)}`,
    )
  else {
    report(seed)
    break
  }
}
const elapsedMs = Number(process.hrtime.bigint() - started) / 1e6
console.log(
  [...totals]
    .sort()
    .map(([what, count]) => `${count.toString().padStart(9)} ${what}`)
    .join('\n'),
)
console.log(
  `${ran} seeds, ${failed} failed, ${events} events, ${(elapsedMs / ran).toFixed(1)} ms a seed; disorder in ${runsWithCounted} runs was counted (${counted} findings)`,
)
process.exitCode = failed > 0 ? 1 : 0
