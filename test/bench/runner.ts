/**
 * Runs scenarios: the targets in turn, so that a machine that changes its speed changes it for all, and each round
 * begins with another one (A B C, B C A, …): whoever comes first after a pause, or after a certain other one, has it
 * easier or harder, and that must not be the same one each time.
 * Invariant: a target that fails is reported and left out of its round; it never ends the run of the others.
 */
import type { Programs } from './native.ts'
import type { ScenarioResult } from './report.ts'
import type { Measures, Scenario } from './measure.ts'
import { type RunningTarget, type StartOptions, startTarget, type Target } from './target.ts'
import { startDummy, startKafkaUpstream, type Upstream } from './upstream.ts'

export interface RunOptions extends StartOptions {
  readonly programs: Programs
  readonly targets: readonly Target[]
  readonly rounds: number
  readonly seconds: number
  readonly say: (line: string) => void
}

/** Runs the scenarios that stand on one kind of upstream after each other, and returns results in the given order. */
export async function runScenarios(scenarios: readonly Scenario[], options: RunOptions): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = []
  let kafka: Upstream | undefined
  try {
    for (const scenario of scenarios) {
      options.say(`${scenario.name}: ${scenario.title}`)
      if (scenario.upstream === 'kafka') {
        kafka ??= await startKafkaUpstream(options.programs, options.targets, options.say)
        results.push(await runScenario(scenario, kafka, options))
      } else {
        await kafka?.stop()
        kafka = undefined
        const dummy = await startDummy(options.programs, await scenario.upstreamArgs?.())
        results.push(await runScenario(scenario, dummy, options).finally(() => dummy.stop()))
      }
    }
  } finally {
    await kafka?.stop()
  }
  return results
}

/** Whether a scenario is measured for a target. */
export function takesPart({ name, features }: Target, { targets }: Pick<Scenario, 'targets'>): boolean {
  return targets?.includes(name) ?? features !== true
}

async function runScenario(scenario: Scenario, upstream: Upstream, options: RunOptions): Promise<ScenarioResult> {
  const { rounds, say } = options
  const targets = options.targets.filter((target) => takesPart(target, scenario))
  const measured = new Map<string, Measures[]>(targets.map(({ name }) => [name, []]))
  const running = new Map<string, RunningTarget>()
  try {
    for (let round = 1; round <= rounds; round++) {
      for (const target of turned(targets, round - 1)) {
        let measures: Measures = {}
        try {
          const proxy = running.get(target.name) ?? (await startTarget(target, upstream.place(target), options))
          running.set(target.name, proxy)
          measures = await scenario.measure({ programs: options.programs, running: proxy, seconds: options.seconds })
        } catch (error) {
          say(`  round ${round} ${target.name} FAILED: ${String(error).slice(0, 600)}`)
        }
        measured.get(target.name)?.push(measures)
        say(`  round ${round} ${target.name.padEnd(10)} ${short(measures)}`)
        if (scenario.fresh === true) {
          await running.get(target.name)?.stop()
          running.delete(target.name)
        }
      }
    }
  } finally {
    for (const proxy of running.values()) await proxy.stop()
  }
  return { name: scenario.name, title: scenario.title, rounds: Object.fromEntries(measured) }
}

/** The same in the same order, beginning with the one at `first` (counted on around). */
export function turned<T>(all: readonly T[], first: number): T[] {
  const at = all.length === 0 ? 0 : first % all.length
  return [...all.slice(at), ...all.slice(0, at)]
}

function short(measures: Measures): string {
  return Object.entries(measures)
    .map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
    .join('  ')
}
