/**
 * Consumers at their default Metadata age (5 minutes, sarama 10) take up partitions within seconds after a change, because
 * they are made to: one group of each family on one topic that goes from 3 to 5, so that the old partitions wait for
 * commits of the new ones. Nothing is lost or doubled by it.
 *
 * `TEST_FAMILIES=a,b` narrows it, `TEST_MEMBERS=n` gives each group n members: with more than three some own nothing.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type FamilyName, familyNames } from '../../../scripts/setup/families.ts'
import { type ClientProgram, type Run, watching } from '../client.ts'
import { historyOf, type Part } from '../faults/history.ts'
import { preparePrograms } from '../programs.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { judge } from './scenario.ts'

const wanted = process.env['TEST_FAMILIES']?.split(',')
const size = Number(process.env['TEST_MEMBERS'] ?? 2)
const families = familyNames.filter((name) => wanted === undefined || wanted.includes(name))
const writer: FamilyName = 'aiokafka'
const clients = await preparePrograms([...families, writer])
const here = families.filter((family) => clients.here.includes(family))
const skip = clients.skipWithout([writer])

const topic = 'grows'
const [from, to] = [3, 5]

describe('consumers with old Metadata', { skip }, () => {
  let fleet: Fleet
  let sending: Run
  let openedAt = 0
  const groups = new Map<FamilyName, Run[]>()
  const programs: ClientProgram[] = []
  const program = (family: FamilyName): ClientProgram => {
    const one = clients.start(family)
    programs.push(one)
    return one
  }

  before(async () => {
    fleet = await startFleet(2, `topics:\n  ${topic}: {layouts: {goneAfter: 20s}}\n`)
    const way = fleet.way()
    await way.create(topic, from)
    for (const [i, family] of here.entries()) {
      const one = program(family)
      const bootstrap = way.bootstraps[i % way.bootstraps.length] ?? ''
      // A platformatic group of several is not made to join again: docs/layouts.md.
      const members = family === 'platformatic' ? 1 : size
      const common = { topics: [topic], group: family, commit: 'batch', sessionMs: 10_000 }
      const runs = Array.from({ length: members }, (_, m) =>
        one.start({ cmd: 'consume', bootstrap, ...common, member: `M${m}`, clientId: `${family}.M${m}` }),
      )
      groups.set(family, runs)
    }
    const send = { topic, keys: 40, rate: 50, count: 1_000_000, idempotent: true, sent: true }
    const [bootstrap = ''] = way.bootstraps
    sending = program(writer).start({ cmd: 'produce', bootstrap, ...send, producer: 'P', clientId: 'P' })
    for (const runs of groups.values())
      await watching(runs, 'records to every member', () => {
        const busy = runs.filter((run) => delivered([run]).length > 0).length
        return busy >= Math.min(runs.length, from) && delivered(runs).length > 50
      })
    await way.change(topic, to)
    openedAt = Date.now()
  })
  after(async () => {
    await Promise.all(programs.map((one) => one.kill()))
    await fleet?.stop()
  })

  for (const family of here) {
    test(`${family} is given records of the new partitions`, { timeout: 120_000 }, async (t) => {
      const runs = groups.get(family) ?? []
      await watching(runs, 'records of each new partition', () => {
        const seen = new Set(delivered(runs).map(({ partition }) => partition))
        return seen.has(to - 1) && seen.has(from)
      }).catch(async (error: Error) => {
        throw new Error(`${error.message}\n${await fleet.way().describe(topic)}`)
      })
      const first = delivered(runs).find(({ partition }) => (partition ?? 0) >= from)
      t.diagnostic(`after ${(first?.at ?? 0) - openedAt} ms`)
    })
  }

  for (const family of here) {
    test(`${family} loses nothing and doubles nothing`, { timeout: 120_000 }, async () => {
      const runs = groups.get(family) ?? []
      await sending.stop()
      const acknowledged = sending.events.filter(({ event }) => event === 'acknowledged')
      await watching(runs, 'all records', () => {
        const given = new Set(delivered(runs).map(({ sequence }) => sequence))
        return acknowledged.every(({ sequence }) => given.has(sequence))
      })
      const drained = { event: 'drained', group: family, topic, at: Date.now() } as const
      await Promise.all(runs.map((run) => run.stop()))
      const common = { group: family, isolation: 'read_uncommitted' }
      const history = historyOf(
        [
          { run: sending, who: { producer: 'P', idempotent: true, ordered: true } },
          ...runs.map((run, m): Part => ({ run, who: { member: `M${m}`, ...common } })),
        ],
        [drained],
      )
      assert.deepEqual(judge({ consumer: family, history }, { perProducer: true }).violations, [])
    })
  }
})

function delivered(runs: readonly Run[]) {
  return runs.flatMap((run) => run.events.filter(({ event }) => event === 'delivered'))
}
