/** The Kafka behind the demo: the first of what was asked for, Java with Maven, Docker, and our own fake broker. */
import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { canRunKafka, kafkaVersion } from '../kafka/artifacts.ts'
import { startKafka } from '../kafka/cluster.ts'
import { freePorts } from '../kafka/ports.ts'
import { askBrokers } from '../kafka/probe.ts'
import { run } from '../setup/run.ts'
import { FakeBroker } from '../../src/fake-broker/fake-broker.ts'
import { nodeRuntime } from '../../src/runtime/node-runtime.ts'

export const upstreamKinds = ['java', 'docker', 'fake'] as const
export type UpstreamKind = (typeof upstreamKinds)[number]

export interface Upstream {
  /** `host:port,…` */
  readonly bootstrap: string
  /** What it is, for people. */
  readonly what: string
  /** It belongs to somebody: leave nothing behind in it. */
  readonly foreign: boolean
  stop(): Promise<void>
}

export interface UpstreamOptions {
  readonly upstream: string | undefined
  /** Only this kind, instead of the first that works. */
  readonly only: UpstreamKind | undefined
  readonly containerName: string
  readonly say: (line: string) => void
}

/** Starts the first kind that works here; says which it tries, and why one was passed over. */
export async function startUpstream({ upstream, only, containerName, say }: UpstreamOptions): Promise<Upstream> {
  if (upstream !== undefined) return { bootstrap: upstream, what: 'your cluster', foreign: true, stop: async () => {} }
  const reasons: string[] = []
  for (const kind of only === undefined ? upstreamKinds : [only]) {
    try {
      const started = await starters[kind](say, containerName)
      if (typeof started !== 'string') return started
      reasons.push(`${kind}: ${started}`)
    } catch (error) {
      reasons.push(`${kind}: ${(error as Error).message.split('\n')[0]}`)
    }
    say(`not with ${reasons.at(-1)}`)
  }
  throw new Error(`no Kafka to put Headgate in front of (${reasons.join('; ')})`)
}

type Starter = (say: (line: string) => void, containerName: string) => Promise<Upstream | string>

const starters: Readonly<Record<UpstreamKind, Starter>> = {
  async java(say) {
    if (!canRunKafka()) return 'Java 17 or newer and Maven are needed'
    say(`starting Apache Kafka ${kafkaVersion} with Java (about 10 s)`)
    const kafka = await startKafka({ say })
    const what = `Apache Kafka ${kafkaVersion}, one node, data in a temporary folder`
    return { bootstrap: kafka.bootstrap, what, foreign: false, stop: () => kafka.stop() }
  },
  async docker(say, containerName) {
    if (spawnSync('docker', ['info'], { stdio: 'ignore', timeout: 10_000 }).status !== 0) return 'Docker is not running'
    const image = `apache/kafka:${kafkaVersion}`
    say(`starting ${image} with Docker (the first time it is fetched: 200 MB, a minute or more)`)
    const [port = 0] = await freePorts(1)
    const settings = dockerSettings(port).flatMap((setting) => ['-e', setting])
    await run('docker', [
      'run',
      '-d',
      '--rm',
      '--name',
      containerName,
      '-p',
      `127.0.0.1:${port}:${port}`,
      ...settings,
      image,
    ])
    const stop = async () => removeContainer(containerName)
    try {
      await answering(port)
    } catch (error) {
      await stop()
      throw error
    }
    return { bootstrap: `127.0.0.1:${port}`, what: `${image}, container ${containerName}`, foreign: false, stop }
  },
  async fake(say) {
    say('starting our own fake broker: a small imitation of Kafka in memory, good enough to look at Headgate')
    const broker = await FakeBroker.start(await nodeRuntime(), { nodeIds: [1, 2, 3] })
    const what = 'the fake broker: three nodes in memory, not a real Kafka'
    return { bootstrap: broker.bootstrap.join(','), what, foreign: false, stop: () => broker.stop() }
  },
}

function dockerSettings(port: number): string[] {
  return [
    'KAFKA_NODE_ID=1',
    'KAFKA_PROCESS_ROLES=broker,controller',
    `KAFKA_LISTENERS=PLAINTEXT://:${port},CONTROLLER://:${port === 9093 ? 9094 : 9093}`,
    `KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:${port}`,
    'KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER',
    `KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:${port === 9093 ? 9094 : 9093}`,
    'KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1',
    'KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1',
    'KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1',
    'KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0',
  ]
}

async function answering(port: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      if ((await askBrokers(port)) > 0) return
    } catch (error) {
      if (attempt === 120) throw error
    }
    await delay(500)
  }
}

export function removeContainer(name: string): void {
  spawnSync('docker', ['rm', '-f', name], { stdio: 'ignore', timeout: 30_000 })
}
