/**
 * While a topic shrinks from 6 to 3, the three partitions that stay and the three that are drained are balanced each for
 * themselves, for every assignor of the client families that have them: left alone, range gives one of two members all
 * that run dry, and so do sticky assignors when a second member comes to the first.
 */
import { after, before, describe, test } from 'node:test'
import type { FamilyName } from '../../../scripts/setup/families.ts'
import { builtMain } from '../../../scripts/setup/build.ts'
import { type SharedKafka, sharedKafka } from '../../kafka/shared.ts'
import { type ClientProgram, type Run, watching } from '../client.ts'
import { preparePrograms } from '../programs.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { wayThrough } from './fleet.ts'

const assignors: Partial<Record<FamilyName, readonly string[]>> = {
  java: ['range', 'roundrobin', 'sticky', 'cooperative'],
  librdkafka: ['range', 'roundrobin', 'cooperative'],
}
const families = Object.keys(assignors) as FamilyName[]
const clients = await preparePrograms(families)
const { here } = clients
const skip = clients.skipWithout(['java'])

const topic = `marked.${process.pid}`
const [from, to] = [6, 3]

describe('partitions that are to be removed', { skip, timeout: 200_000 }, () => {
  let kafka: SharedKafka | undefined
  let proxy: Proxy | undefined
  const programs = new Map<FamilyName, ClientProgram>()

  before(async () => {
    await builtMain()
    kafka = await sharedKafka()
    proxy = await startProxy(kafka.bootstrap, { more: `topics:\n  '${topic.replaceAll('.', '\\.')}': {layouts: {}}\n` })
    const way = wayThrough([proxy])
    await way.create(topic, from)
    await way.change(topic, to)
    for (const family of here) programs.set(family, clients.start(family))
  })
  after(async () => {
    await Promise.all([...programs.values()].map((one) => one.kill()))
    await proxy?.stop()
    await kafka?.stop()
  })

  for (const family of here)
    for (const assignor of assignors[family] ?? [])
      test(`${family}, ${assignor}: both members own of both kinds`, { timeout: 150_000 }, async () => {
        const group = `${topic}.${family}.${assignor}`
        const join = (member: string): Run => {
          const common = { topics: [topic], group, assignor, commit: 'batch', member, clientId: `${group}.${member}` }
          return (programs.get(family) as ClientProgram).start({
            ...{ cmd: 'consume', bootstrap: proxy?.bootstrap ?? '' },
            ...common,
          })
        }
        const first = join('M0')
        await watching([first], 'assignment of all', () => owned(first).length === from)
        const members = [first, join('M1')]
        const shares = () => members.map(owned)
        await watching(members, 'even shares of both kinds', () => isEven(shares())).catch((error: Error) => {
          throw new Error(`they own ${JSON.stringify(shares())}: ${error.message}`)
        })
        await Promise.all(members.map((run) => run.stop()))
      })
})

/** Partitions that a member owns now, in ascending order. */
function owned(run: Run): number[] {
  const mine = new Set<number>()
  for (const { event, partitions = [] } of run.events) {
    for (const [, partition] of partitions) {
      if (event === 'assigned') mine.add(partition)
      else if (event === 'revoked' || event === 'lost') mine.delete(partition)
    }
  }
  return [...mine].sort((a, b) => a - b)
}

/** Each partition is owned by one of them, and of each kind they own as many, give or take one. */
function isEven(shares: readonly number[][]): boolean {
  const all = shares.flat().sort((a, b) => a - b)
  if (all.length !== from || all.some((partition, index) => partition !== index)) return false
  return [true, false].every((isMarked) => {
    const sizes = shares.map((share) => share.filter((partition) => partition >= to === isMarked).length)
    return Math.max(...sizes) - Math.min(...sizes) <= 1
  })
}
