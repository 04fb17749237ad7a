/**
 * Makes a failing plan smaller: leaves out faults, clients and load, and simplifies the rest, as long as the same
 * failure stays. Greedy, bounded by a number of runs; the result is a plan that can be replayed.
 */
import type { Plan } from './plan.ts'
import type { Outcome } from './run.ts'

export interface Shrunk {
  plan: Plan
  runs: number
}

/** `failsAlike`: runs a plan and tells whether it still fails for the same reason. */
export async function shrink(plan: Plan, failsAlike: (plan: Plan) => Promise<boolean>, maxRuns = 150): Promise<Shrunk> {
  let smallest = plan
  let runs = 0
  for (let progress = true; progress && runs < maxRuns; ) {
    progress = false
    for (const candidate of smaller(smallest)) {
      if (runs++ >= maxRuns) break
      if (!(await failsAlike(candidate))) continue
      smallest = candidate
      progress = true
      break
    }
  }
  return { plan: smallest, runs }
}

/** Whether two runs broke the same rule. */
export function sameFailure(a: Outcome, b: Outcome): boolean {
  return Object.keys(a.failures).some((name) => name in b.failures)
}

/** Plans that are one step simpler, the boldest first. */
function* smaller(plan: Plan): Generator<Plan> {
  if (plan.faults.length > 1) {
    const half = plan.faults.length >> 1
    yield { ...plan, faults: plan.faults.slice(0, half) }
    yield { ...plan, faults: plan.faults.slice(half) }
  }
  for (const i of plan.faults.keys()) yield { ...plan, faults: without(plan.faults, i) }
  for (const i of plan.gates.keys()) yield { ...plan, gates: without(plan.gates, i) }
  const { editFromMs, ...unedited } = plan
  if (editFromMs !== undefined && plan.gates.length === 0) yield unedited
  if (plan.producers.length > 1) {
    for (const i of plan.producers.keys()) yield { ...plan, producers: without(plan.producers, i) }
  }
  if (plan.consumers.length > 1 && plan.scenario !== 'filtered') {
    // Faults name consumers by number: the last one goes.
    const last = plan.consumers.length - 1
    const faults = plan.faults.filter((f) => !('consumer' in f) || f.consumer !== last)
    yield { ...plan, consumers: plan.consumers.slice(0, last), faults }
  }
  for (const [i, producer] of plan.producers.entries()) {
    if (producer.records > 2) yield replaced(plan, i, { records: producer.records >> 1 })
    if (producer.transactional) yield replaced(plan, i, { transactional: false })
    if (producer.burst > 1) yield replaced(plan, i, { burst: 1 })
    if (producer.keys > 1) yield replaced(plan, i, { keys: 1 })
  }
  for (const [i, { leaveMs, ...consumer }] of plan.consumers.entries()) {
    if (leaveMs !== undefined) yield { ...plan, consumers: plan.consumers.with(i, consumer) }
  }
  if (plan.proxies > 1 && !plan.faults.some((f) => 'proxy' in f && f.proxy > 0)) yield { ...plan, proxies: 1 }
  if (plan.nodes > 1 && !plan.faults.some((f) => 'node' in f && f.node > 0)) yield { ...plan, nodes: 1 }
  if (plan.partitions > 1 && !plan.faults.some((f) => 'partition' in f && f.partition > 0))
    yield { ...plan, partitions: 1 }
  if (plan.splitChance > 0) yield { ...plan, splitChance: 0 }
  if (plan.maxDelayMs > 1) yield { ...plan, maxDelayMs: 1 }
}

function without<T>(list: readonly T[], index: number): T[] {
  return list.filter((_, i) => i !== index)
}

function replaced(plan: Plan, index: number, change: Partial<Plan['producers'][number]>): Plan {
  const producer = plan.producers[index]
  return producer === undefined ? plan : { ...plan, producers: plan.producers.with(index, { ...producer, ...change }) }
}
