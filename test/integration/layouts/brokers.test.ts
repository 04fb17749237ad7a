/**
 * A broker of three dies (kill -9) and comes back at a step of a change: the one that leads the state topic, a partition
 * of the topic, or the fleet's group. A quick run has one step and one role, chosen by the printed seed; `TEST_FULL=1` all
 * steps with all roles. `TEST_SEED=n` replays a choice.
 */
import { after, before, describe, test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import { type KafkaCluster, startKafka } from '../../../scripts/kafka/cluster.ts'
import type { FamilyName } from '../../../scripts/setup/families.ts'
import type { FaultEvent } from '../../checker/history.ts'
import { until } from '../../support/until.ts'
import { preparePrograms } from '../programs.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { wayThrough } from './fleet.ts'
import { assertOrdered, play } from './scenario.ts'
import { StateWatch } from './state-watch.ts'

const full = process.env['TEST_FULL'] === '1'
const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const families: readonly FamilyName[] = ['franz-go', 'kafkajs']
const programs = await preparePrograms(families)
const skip = programs.skipWithout(families)

/** The record after which the broker dies. */
const steps = ['proposal', 'preparing', 'open', 'vote', 'sealed'] as const
const roles = ['the state topic', 'a partition', "the fleet's group"] as const

interface Case {
  readonly step: (typeof steps)[number]
  readonly role: (typeof roles)[number]
}

function cases(): Case[] {
  const all = steps.flatMap((step) => roles.map((role) => ({ step, role })))
  return full ? all : all.slice(seed % all.length).slice(0, 1)
}

/** In place of a node's id. */
const nobody = -1

/** The node that has the role now. */
async function nodeOf(role: Case['role'], topic: string, { bootstrap }: KafkaCluster): Promise<number> {
  const admin = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    if (role === "the fleet's group") return await leaderOf(admin, '__consumer_offsets', groupPartition)
    return await leaderOf(admin, role === 'a partition' ? topic : '__headgate_state', 0)
  } finally {
    await admin.disconnect()
  }
}

/** Of `__headgate`, among the four partitions that test clusters have: Java's hash of the name. */
const groupPartition = [...'__headgate'].reduce((hash, c) => (Math.imul(31, hash) + c.charCodeAt(0)) | 0, 0) & 3

async function leaderOf(admin: ReturnType<Kafka['admin']>, topic: string, partition: number): Promise<number> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return topics[0]?.partitions.find(({ partitionId }) => partitionId === partition)?.leader ?? nobody
}

describe(`brokers fail while a topic grows (TEST_SEED=${seed})`, { skip }, () => {
  let kafka: KafkaCluster
  const proxies: Proxy[] = []
  let watch: StateWatch
  before(async () => {
    kafka = await startKafka({ nodes: 3 })
    const more = "topics:\n  'brokers\\..*': {layouts: {goneAfter: 15s}}\n"
    for (let i = 0; i < 2; i++) proxies.push(await startProxy(kafka.bootstrap, { more }))
    watch = await StateWatch.start(kafka.bootstrap)
  })
  after(async () => {
    await watch?.stop()
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    await kafka?.stop()
  })
  for (const [number, { step, role }] of cases().entries()) {
    test(`the broker that leads ${role} dies after ${step}`, { timeout: 600_000 }, async () => {
      const topic = `brokers.${number}`
      const faults: FaultEvent[] = []
      const scenario = { topic, producer: 'franz-go', consumer: 'kafkajs', idempotent: true, counts: [3, 6] } as const
      const outcome = await play(scenario, wayThrough(proxies), programs.start, async () => {
        await watch.recorded(topic, step)
        const victim = await nodeOf(role, topic, kafka)
        const at = Date.now()
        await kafka.nodes.find(({ id }) => id === victim)?.kill()
        await until(async () => ![victim, nobody].includes(await nodeOf(role, topic, kafka)))
        await kafka.restart(victim)
        faults.push({ event: 'fault', kind: 'broker killed', at, until: Date.now() })
      })
      const history = [...outcome.history, ...faults].sort((a, b) => a.at - b.at)
      assertOrdered({ ...outcome, history })
    })
  }
})
