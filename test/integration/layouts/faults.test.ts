/**
 * A proxy of three dies, is stopped (SIGSTOP) for longer than its session, or is cut off from the cluster, at each step of
 * a change. A quick run has one kind of fault per step, chosen by the printed seed; `TEST_FULL=1` all kinds at all steps to
 * all three proxies. `TEST_SEED=n` replays a choice.
 */
import { after, before, describe, test } from 'node:test'
import type { FamilyName } from '../../../scripts/setup/families.ts'
import type { FaultEvent } from '../../checker/history.ts'
import { until } from '../../support/until.ts'
import { preparePrograms } from '../programs.ts'
import type { Proxy } from '../proxy.ts'
import { areActing, type Fleet, type FleetMember, startFleet } from './fleet.ts'
import { assertOrdered, play } from './scenario.ts'
import { StateWatch } from './state-watch.ts'

const full = process.env['TEST_FULL'] === '1'
const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const families: readonly FamilyName[] = ['franz-go', 'kafkajs']
const programs = await preparePrograms(families)
const skip = programs.skipWithout(families)

/** The record after which the fault happens. */
const steps = ['proposal', 'preparing', 'open', 'vote', 'sealed'] as const
const kinds = ['killed', 'stopped', 'cut off'] as const

interface Case {
  readonly step: (typeof steps)[number]
  readonly kind: (typeof kinds)[number]
  readonly victim: number
}

function cases(): Case[] {
  const all = steps.flatMap((step) => kinds.flatMap((kind) => [0, 1, 2].map((victim) => ({ step, kind, victim }))))
  if (full) return all
  return steps.map((step, i) => ({
    step,
    kind: kinds[(seed + i) % kinds.length] ?? 'killed',
    victim: Math.floor(seed / 3 + i) % 3,
  }))
}

/** It comes back when the others have expelled it, or at once if it was killed. */
async function strike({ proxy, relay }: FleetMember, kind: Case['kind'], others: readonly Proxy[]): Promise<void> {
  if (kind === 'killed') return proxy.crashAndRestart()
  const expelled = (): Promise<void> => until(() => areActing(others))
  if (kind === 'cut off') {
    relay.cut()
    return expelled().finally(() => relay.mend())
  }
  process.kill(proxy.pid, 'SIGSTOP')
  return expelled().finally(() => process.kill(proxy.pid, 'SIGCONT'))
}

describe(`proxies fail while a topic grows (TEST_SEED=${seed})`, { skip }, () => {
  let fleet: Fleet
  let watch: StateWatch
  before(async () => {
    fleet = await startFleet(3, "topics:\n  'faults\\..*': {layouts: {goneAfter: 15s}}\n")
    watch = await StateWatch.start(fleet.kafka.bootstrap)
  })
  after(async () => {
    await watch?.stop()
    await fleet?.stop()
  })
  for (const [number, { step, kind, victim }] of cases().entries()) {
    test(`proxy ${victim} is ${kind} after ${step}`, { timeout: 600_000 }, async () => {
      const topic = `faults.${number}`
      const faults: FaultEvent[] = []
      const producer = families[number % 2] ?? 'franz-go'
      const scenario = { topic, producer, consumer: 'kafkajs', idempotent: true, counts: [3, 6] } as const
      const outcome = await play(scenario, fleet.way(), programs.start, async () => {
        await watch.recorded(topic, step)
        const at = Date.now()
        const struck = fleet.members[victim] as FleetMember
        const others = fleet.members.filter((member) => member !== struck)
        await strike(
          struck,
          kind,
          others.map((member) => member.proxy),
        )
        faults.push({ event: 'fault', kind, at, until: Date.now() })
      })
      const history = [...outcome.history, ...faults].sort((a, b) => a.at - b.at)
      assertOrdered({ ...outcome, history })
    })
  }
})
