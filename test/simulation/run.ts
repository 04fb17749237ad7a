/** Runs one plan from its first event to the verdict. The same plan gives the same run, byte for byte. */
import { check, type Verdict } from '../checker/checker.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { Violation } from '../checker/rule.ts'
import { scheduleFaults } from './faults.ts'
import { LayoutsRun, orderRules } from './layouts.ts'
import type { Plan } from './plan.ts'
import { GROUP, TOPIC, World } from './world.ts'

/** By then everything has been sent and given, or never will be. */
const LOAD_MS = 90_000
const DRAIN_MS = 120_000
const QUIET_MS = 500

export interface Outcome {
  plan: Plan
  history: HistoryEvent[]
  verdict: Verdict
  /** Rule or failure names with how often; empty where all is well. */
  failures: Record<string, number>
  counts: ReadonlyMap<string, number>
  virtualMs: number
  clockEvents: number
  logLines: string[]
  /** An error that something threw inside the run. */
  thrown: string | undefined
}

export async function runPlan(plan: Plan): Promise<Outcome> {
  const world = new World(plan)
  // Promises that the proxy's own code leaves alone.
  process.on('unhandledRejection', world.fail)
  const layouts = plan.layouts === undefined ? undefined : new LayoutsRun(world, plan.layouts)
  try {
    await live(world, () => world.failure !== undefined, layouts)
  } catch (error) {
    world.fail(error)
  } finally {
    process.off('unhandledRejection', world.fail)
    layouts?.end()
  }
  return judge(world, world.failure, layouts)
}

async function live(world: World, broken: () => boolean, layouts: LayoutsRun | undefined): Promise<void> {
  const { clock, ledger, plan } = world
  await world.open()
  ledger.record({ event: 'run', at: 0, ...(plan.scenario === 'filtered' ? { shared: true } : {}) })
  scheduleFaults(world)
  for (const { name, leaveMs } of plan.consumers) {
    if (leaveMs !== undefined) clock.schedule(leaveMs, () => leave(world, name))
  }
  const { grow } = plan
  if (grow !== undefined) clock.schedule(grow.atMs, () => growTopic(world, grow.to))
  const lastFaultMs = Math.max(
    0,
    ...plan.gates.map((gate) => gate.openMs),
    ...plan.faults.map((f) => f.atMs + ('forMs' in f ? f.forMs : 0)),
  )
  const isOver = (): boolean => clock.nowMs > lastFaultMs && world.producersDone && layouts?.isSettled !== false
  await clock.run(LOAD_MS, () => broken() || isOver())
  // Small fetches behind long polls take minutes: it is over when nothing came for that long.
  for (let before = Infinity; ledger.open > 0 && ledger.open < before && !broken(); ) {
    before = ledger.open
    await clock.run(clock.nowMs + DRAIN_MS, () => broken() || ledger.open === 0)
  }
  await clock.run(clock.nowMs + QUIET_MS, broken)
  ledger.record({
    event: 'drained',
    at: clock.nowMs,
    group: GROUP,
    topic: TOPIC,
    ...(compacts(plan) ? { compacted: true } : {}),
  })
}

function growTopic({ broker }: World, to: number): void {
  const { topics } = broker.cluster
  const topic = topics.named(TOPIC)
  if (topic !== undefined) topics.grow(topic, to, broker.cluster.upNodeIds())
}

function compacts(plan: Plan): boolean {
  return plan.faults.some((f) => f.kind === 'compact')
}

function leave(world: World, name: string): void {
  const live = world.consumers.find((c) => c.plan.name === name)
  if (live === undefined || live.gone || live.membership === undefined) return
  live.gone = true
  const { membership, consumer, process } = live
  process.enter(() => {
    membership
      .leave()
      .then(() => world.ledger.record({ event: 'closed', at: world.clock.nowMs, ...consumer.who() }))
      .catch(world.fail)
  })
}

function judge(world: World, thrown: unknown, layouts: LayoutsRun | undefined): Outcome {
  const { ledger, clock, statistics, plan, logLines } = world
  const verdict = check(ledger.history, { keep: 3 })
  const failures: Record<string, number> = {}
  if (layouts !== undefined) judgeOrder(verdict, layouts.violations(ledger.history))
  for (const [rule, count] of Object.entries(verdict.counts)) if (count > 0) failures[rule] = count
  if (thrown !== undefined) failures.thrown = 1
  const bypasses = Array.from(world.network.dialled).filter((pair) => /^[pc]\d.*>broker-/.test(pair))
  if (plan.proxies > 0 && bypasses.length > 0) failures['proxy-bypassed'] = bypasses.length
  if ((layouts?.lateBehindSeals ?? 0) > 0) failures['late-behind-a-seal'] = layouts?.lateBehindSeals ?? 0
  if (world.leaks > 0) failures['gate-leaked'] = world.leaks
  if (plan.gates.length > 0) statistics.count('filter.gates', plan.gates.length)
  if (plan.editFromMs !== undefined && plan.editFromMs > 0) statistics.count('filter.switched on under running clients')
  if (!world.producersDone) failures['producers-stuck'] = 1
  for (const [event, count] of Object.entries(verdict.events)) statistics.count(`history.${event}`, count)
  return {
    plan,
    history: ledger.history,
    verdict,
    failures,
    counts: statistics.counts,
    virtualMs: clock.nowMs,
    clockEvents: clock.events,
    logLines,
    thrown:
      thrown === undefined
        ? undefined
        : thrown instanceof Error
          ? (thrown.stack ?? thrown.message)
          : JSON.stringify(thrown),
  }
}

/** Puts the violations of order that count in the place of those that the rules alone found. */
function judgeOrder(verdict: Verdict, violations: readonly Violation[]): void {
  for (const name of orderRules) verdict.counts[name] = violations.filter(({ rule }) => rule === name).length
  verdict.violations = [...violations, ...verdict.violations.filter(({ rule }) => !orderRules.includes(rule))]
}
