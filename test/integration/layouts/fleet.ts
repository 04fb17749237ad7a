/** Several proxies in front of one broker, as one fleet; each behind a relay of its own, so that it can be cut off. */
import { Kafka, logLevel } from 'kafkajs'
import { startKafka, type KafkaCluster } from '../../../scripts/kafka/cluster.ts'
import { freePorts } from '../../../scripts/kafka/ports.ts'
import { until } from '../../support/until.ts'
import { type Proxy, startProxy } from '../proxy.ts'
import { Relay } from './relay.ts'
import type { Way } from './scenario.ts'

export interface FleetMember {
  readonly proxy: Proxy
  /** Between it and the cluster, for clients' and its own connections alike. */
  readonly relay: Relay
}

export interface Fleet {
  readonly kafka: KafkaCluster
  readonly members: readonly FleetMember[]
  /** Clients spread over the proxies; changes are asked of the last one, by CreatePartitions or (shrink) its API. */
  way(): Way
  stop(): Promise<void>
}

/** @param more lines of the configuration, at top level */
export async function startFleet(size: number, more: string): Promise<Fleet> {
  const ports = await freePorts(2 * size)
  const pairs = Array.from({ length: size }, (_, i) => ({
    port: ports[2 * i] ?? 0,
    advertisedPort: ports[2 * i + 1] ?? 0,
  }))
  const kafka = await startKafka({ listeners: pairs })
  const members: FleetMember[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(members.map(({ proxy }) => proxy.stop()))
    for (const { relay } of members) relay.stop()
    await kafka.stop()
  }
  try {
    for (const { port, advertisedPort } of pairs) {
      const relay = await Relay.start(advertisedPort, port)
      members.push({ proxy: await startProxy(`127.0.0.1:${advertisedPort}`, { more }), relay })
    }
    await until(() => areActing(members.map(({ proxy }) => proxy)))
  } catch (error) {
    await stop()
    throw error
  }
  return { kafka, members, way: () => wayThrough(members.map(({ proxy }) => proxy)), stop }
}

/** Whether all proxies know each other as one fleet that can change topics. */
export async function areActing(proxies: readonly Proxy[]): Promise<boolean> {
  const acts = async ({ admin }: Proxy): Promise<boolean> => {
    const state = (await (await fetch(`${admin}/api/state`)).json()) as { condition: string; proxies: unknown[] }
    return state.condition === 'ready' && state.proxies.length === proxies.length
  }
  return (await Promise.all(proxies.map(acts))).every(Boolean)
}

/** Clients spread over the proxies; changes are asked of the last one. */
export function wayThrough(proxies: readonly Proxy[]): Way {
  const asked = proxies.at(-1) as Proxy
  const plain = directly(asked.bootstrap)
  return {
    bootstraps: proxies.map(({ bootstrap }) => bootstrap),
    async create(topic, partitions) {
      await plain.create(topic, partitions)
      // In the log, so that a change is not asked for too early.
      await until(async () => (await Promise.all(proxies.map((proxy) => phaseAt(proxy, topic)))).every(Boolean))
    },
    count: (topic) => plain.count(topic),
    isDecided: async (topic) => (await areActing(proxies)) && (await phaseAt(asked, topic)) !== 'preparing',
    async counted(topic) {
      const pages = proxies.map(async ({ admin }) => (await fetch(`${admin}/api/topics/${topic}`)).json())
      const topics = (await Promise.all(pages)) as { counted: Record<string, number> }[]
      return topics.flatMap(({ counted }) => Object.values(counted)).reduce((sum, count) => sum + count, 0)
    },
    async describe(topic) {
      const paths = [`topics/${topic}`, `groups/${topic}/gates`]
      const pages = proxies.flatMap(({ admin }) => paths.map((path) => `${admin}/api/${path}`))
      return (await Promise.all(pages.map(async (url) => `${url} ${await (await fetch(url)).text()}`))).join('\n')
    },
    async change(topic, to) {
      const from = await plain.count(topic)
      if (to > from) return plain.change(topic, to)
      await post(`${asked.admin}/api/topics/${topic}/shrink`, { to })
    },
  }
}

/** What is under way at the topic; undefined: the proxy does not know it. */
async function phaseAt({ admin }: Proxy, topic: string): Promise<string | undefined> {
  const answer = await fetch(`${admin}/api/topics/${topic}`)
  const { phase } = (await answer.json()) as { phase?: string }
  return answer.ok ? phase : undefined
}

/** As an admin client does it, at any address of the cluster. */
export function directly(bootstrap: string): Way {
  const once = async <T>(ask: (admin: ReturnType<Kafka['admin']>) => Promise<T>): Promise<T> => {
    const admin = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, requestTimeout: 60_000 }).admin()
    await admin.connect()
    try {
      return await ask(admin)
    } finally {
      await admin.disconnect()
    }
  }
  return {
    bootstraps: [bootstrap],
    create: async (topic, numPartitions) => {
      await once(async (admin) => {
        await admin.createTopics({ topics: [{ topic, numPartitions }], waitForLeaders: false })
        // Brokers know a new topic and its leaders a moment later.
        const isServed = (): Promise<boolean> =>
          admin.fetchTopicOffsets(topic).then(
            (offsets) => offsets.length === numPartitions,
            () => false,
          )
        await until(isServed)
      })
    },
    change: async (topic, count) => {
      await once((admin) => admin.createPartitions({ topicPartitions: [{ topic, count }], timeout: 45_000 }))
    },
    isDecided: async () => true,
    counted: async () => 0,
    describe: async () => '',
    count: async (topic) => {
      const { topics } = await once((admin) => admin.fetchTopicMetadata({ topics: [topic] }))
      return topics[0]?.partitions.length ?? 0
    },
  }
}

async function post(url: string, body: object): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`POST ${url}: ${answer.status} ${await answer.text()}`)
}
