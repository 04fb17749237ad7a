/**
 * Real brokers, real clients, real trouble: an application, the proxy and a broker are killed while records flow, and the
 * history checker judges what the clients saw. Families are chosen by a printed seed (`TEST_SEED`); `TEST_FULL=1`: more pairs.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type KafkaCluster, startKafka } from '../../../scripts/kafka/cluster.ts'
import type { FamilyName } from '../../../scripts/setup/families.ts'
import { check } from '../../checker/checker.ts'
import type { FaultEvent } from '../../checker/history.ts'
import { type ClientProgram, type Run, watching } from '../client.ts'
import { preparePrograms } from '../programs.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { historyOf, type Part } from './history.ts'

const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const producers: readonly FamilyName[] = ['java', 'franz-go', 'librdkafka']
const consumers: readonly FamilyName[] = ['java', 'kafkajs', 'librdkafka', 'franz-go']
const partitions = 6
/** Records that must have passed before the next fault, and after the last. */
const progress = 300

const pairs = producers.flatMap((producer) => consumers.map((consumer) => [producer, consumer] as const))
const first = seed % pairs.length
const chosen = process.env['TEST_FULL'] === '1' ? pairs : [pairs[first] as (typeof pairs)[number]]

const needed = [...new Set<FamilyName>(['java', ...chosen.flat()])]
const clients = await preparePrograms(needed)
const skip = clients.skipWithout(needed)

describe(`an application, the proxy and a broker die (TEST_SEED=${seed})`, { skip }, () => {
  let kafka: KafkaCluster
  let proxy: Proxy
  before(async () => {
    kafka = await startKafka({ nodes: 3 })
    proxy = await startProxy(kafka.bootstrap)
  })
  after(async () => {
    await proxy?.stop()
    await kafka?.stop()
  })
  for (const [number, [producer, consumer]] of chosen.entries()) {
    test(`${producer} → ${consumer}`, { timeout: 480_000 }, () => endure(kafka, proxy, producer, consumer, number))
  }
})

async function endure(kafka: KafkaCluster, proxy: Proxy, from: FamilyName, to: FamilyName, number: number) {
  const topic = `faults.${process.pid}.${number}`
  const { bootstrap } = proxy
  const programs: ClientProgram[] = []
  const program = (family: FamilyName): ClientProgram => {
    const one = clients.start(family)
    programs.push(one)
    return one
  }
  const faults: FaultEvent[] = []
  const fault = async (kind: string, cause: () => Promise<void>) => {
    const at = Date.now()
    await cause()
    faults.push({ event: 'fault', kind, at, until: Date.now() })
  }
  try {
    const admin = program('java')
    const create = { cmd: 'admin', op: 'createTopic', bootstrap, topic, partitions, replicas: 3 } as const
    assert.equal((await admin.run(create)).at(-1)?.ok, true)
    const members: Run[] = []
    const member = (one: ClientProgram, name: string): Run => {
      const how = { topics: [topic], group: topic, member: name, commit: 'batch', sessionMs: 6000 }
      const run = one.start({ cmd: 'consume', bootstrap, ...how })
      members.push(run)
      return run
    }
    const send = { topic, keys: 40, rate: 150, count: 1_000_000, producer: 'P', idempotent: true, sent: true }
    const sending = program(from).start({ cmd: 'produce', bootstrap, ...send })
    const doomed = program(to)
    const steady = program(to)
    const a = member(steady, 'A')
    const b = member(doomed, 'B')
    const flows = (...runs: Run[]) => passed(progress, sending, runs, members)

    await flows(a, b)
    let crashedAt = 0
    await fault('kill application', async () => {
      await doomed.kill()
      crashedAt = Date.now()
    })
    const c = member(program(to), 'C')
    await flows(a, c)
    await fault('kill proxy', () => proxy.crashAndRestart())
    await flows(a, c)
    const victim = kafka.nodes[number % kafka.nodes.length] as (typeof kafka.nodes)[number]
    await fault('kill broker', async () => {
      await victim.kill()
      await kafka.restart(victim.id)
    })
    await flows(a, c)
    await sending.stop()
    const acknowledged = originsOf(sending, 'acknowledged')
    await delivered('all records', acknowledged, [a, c], members)
    const drainedAt = Date.now()
    await Promise.all([a.stop(), c.stop()])

    const common = { group: topic, isolation: 'read_uncommitted' }
    const parts: Part[] = [
      { run: sending, who: { producer: 'P', idempotent: true, ordered: true } },
      { run: a, who: { member: 'A', ...common } },
      { run: b, who: { member: 'B', ...common }, crashedAt },
      { run: c, who: { member: 'C', ...common } },
    ]
    const drained = { event: 'drained', group: topic, topic, at: drainedAt } as const
    const { violations, events } = check(historyOf(parts, [...faults, drained]), { settings: { slack: 100 } })
    assert.ok((events['acknowledged'] ?? 0) >= 4 * progress, JSON.stringify(events))
    assert.deepEqual(violations, [])
  } finally {
    await Promise.all(programs.map((one) => one.kill()))
  }
}

/**
 * Waits until `count` more records were acknowledged and then delivered. `live` must not end meanwhile; a record may have
 * gone to any of the `members`: one that was killed may have been given it before its acknowledgement was seen here.
 */
async function passed(count: number, sending: Run, live: readonly Run[], members: readonly Run[]): Promise<void> {
  const sent = originsOf(sending, 'acknowledged').length
  const now = () => originsOf(sending, 'acknowledged')
  await watching([sending], `${count} more acknowledged`, () => now().length >= sent + count)
  await delivered(`${count} more delivered`, now().slice(sent), live, members)
}

async function delivered(what: string, wanted: readonly string[], live: readonly Run[], members: readonly Run[]) {
  const missing = (): string[] => {
    const given = new Set(members.flatMap((run) => originsOf(run, 'delivered')))
    return wanted.filter((origin) => !given.has(origin))
  }
  await watching(live, what, () => missing().length === 0).catch((error: Error) => {
    throw new Error(`${error.message}\nmissing: ${missing().slice(0, 20).join(', ')}`)
  })
}

function originsOf(run: Run, event: 'acknowledged' | 'delivered'): string[] {
  return run.events.flatMap((one) => (one.event === event ? [`${one.producer} ${one.sequence}`] : []))
}
