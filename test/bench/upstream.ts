/** What stands behind the proxies: the dummy upstream, or one real Kafka broker whose data is kept in memory. */
import { existsSync, statfsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Kafka, logLevel } from 'kafkajs'
import { startKafka } from '../../scripts/kafka/cluster.ts'
import { keep } from '../../scripts/kafka/keeper.ts'
import { freePorts } from '../../scripts/kafka/ports.ts'
import { type Programs, runLoad } from './native.ts'
import type { Place, Target } from './target.ts'

export interface Upstream {
  readonly port: number
  /** Where a target finds it, and where it must listen, if the broker tells clients so. */
  place(target: Target): Place
  stop(): Promise<void>
}

/** Topics of the real broker. Records are 1 KiB, in batches of `recordsPerBatch`. */
export const kafkaTopics = { produce: 'bench-produce', consume: 'bench-consume', small: 'bench-small' } as const
export const kafkaPartitions = 4
export const recordsPerBatch = 64
export const recordBytes = 1017
/** What every partition of the consume topic holds at least: 64 MiB, which the page cache keeps. */
export const batchesPerPartition = 1024

export async function startDummy(programs: Programs, args: readonly string[] = []): Promise<Upstream> {
  const [port = 0] = await freePorts(1)
  const child = keep(programs.upstream, ['--port', String(port), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const output = child.stdout
  if (output === null) throw new Error('the dummy upstream has no output')
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: output }).once('line', () => resolve())
    child.once('exit', () => reject(new Error('the dummy upstream ended')))
  })
  const stop = async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }
  return { port, place: () => ({ upstreamPort: port }), stop }
}

/**
 * Starts Kafka and fills the topic that is consumed. Old segments go after a second, so that memory holds a long run.
 * A target that does not rewrite addresses gets a listener of its own, which advertises the target's port.
 */
export async function startKafkaUpstream(
  programs: Programs,
  targets: readonly Target[],
  say: (line: string) => void,
): Promise<Upstream> {
  const places = new Map<string, Required<Place>>()
  for (const { name, command, rewrites } of targets) {
    if (command === undefined || rewrites === true) continue
    const [port = 0, upstreamPort = 0] = await freePorts(2)
    places.set(name, { port, upstreamPort })
  }
  const before = process.env['TMPDIR']
  if (hasRoom('/dev/shm', 6 * 2 ** 30)) process.env['TMPDIR'] = '/dev/shm'
  const kafka = await startKafka({
    listeners: [...places.values()].map(({ port, upstreamPort }) => ({ port: upstreamPort, advertisedPort: port })),
    jvm: ['-Xms1g', '-Xmx1g', '-XX:+UseG1GC'],
    overrides: {
      'log.retention.check.interval.ms': '500',
      'log.segment.delete.delay.ms': '500',
      'num.network.threads': '3',
      'num.io.threads': '8',
    },
    say,
  }).finally(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
  try {
    const port = Number(kafka.bootstrap.split(':')[1])
    await createTopics(kafka.bootstrap)
    say('filling the topic to consume from, warming the broker up')
    const batches = 4 * batchesPerPartition * kafkaPartitions // not all partitions fill at the same speed
    await runLoad([...produceCommand(programs, port, kafkaTopics.consume), '--warmup', '0', '--count', String(batches)])
    await runLoad([...produceCommand(programs, port, kafkaTopics.produce), '--warmup', '0', '--seconds', '3'])
    const place = ({ name }: Target) => places.get(name) ?? { upstreamPort: port }
    return { port, place, stop: () => kafka.stop() }
  } catch (error) {
    await kafka.stop()
    throw error
  }
}

/** Four connections, one per partition, five requests in flight as Java's producer has. */
export function produceCommand(programs: Programs, port: number, topic: string): string[] {
  const options = { port, api: 'produce', version: 9, topic, partitions: kafkaPartitions, connections: kafkaPartitions }
  const sizes = { records: recordsPerBatch, 'record-bytes': recordBytes, inflight: 5 }
  return [
    programs.load,
    ...Object.entries({ ...options, ...sizes }).flatMap(([name, value]) => [`--${name}`, `${value}`]),
  ]
}

async function createTopics(bootstrap: string): Promise<void> {
  const admin = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  const short = { 'retention.bytes': String(64 << 20), 'segment.bytes': String(32 << 20) }
  const config = (entries: Record<string, string>) => Object.entries(entries).map(([name, value]) => ({ name, value }))
  await admin.createTopics({
    waitForLeaders: true,
    topics: [
      { topic: kafkaTopics.produce, numPartitions: kafkaPartitions, configEntries: config(short) },
      { topic: kafkaTopics.small, numPartitions: kafkaPartitions, configEntries: config(short) },
      { topic: kafkaTopics.consume, numPartitions: kafkaPartitions, configEntries: config({ 'retention.ms': '-1' }) },
    ],
  })
  await admin.disconnect()
}

function hasRoom(folder: string, bytes: number): boolean {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= bytes
}
