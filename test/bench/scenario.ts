/**
 * What is measured. Each scenario runs one load against one target and returns numbers under names that carry their unit.
 * Invariant: the load is the same for every target; what belongs to the proxy (CPU, memory) is missing for `direct`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { javaConsume, javaProduce } from './java.ts'
import { filter } from './filter.ts'
import { layouts } from './layouts.ts'
import { bulk, command, known, type Measures, megabyte, requests, type Run, type Scenario } from './measure.ts'
import { type LoadResult, runLoad } from './native.ts'
import {
  batchesPerPartition,
  kafkaPartitions,
  kafkaTopics,
  produceCommand,
  recordBytes,
  recordsPerBatch,
} from './upstream.ts'
import { resetPeak, usageOf } from './usage.ts'

const dummyBulk = { dummy: true, connections: 4, inflight: 4 }
const smallProduce = { api: 'produce', version: 9, records: 1, 'record-bytes': 100 }
const onKafka = { topic: kafkaTopics.small, partitions: kafkaPartitions }

/** Opens `count` connections at once, each with an ApiVersions exchange, and closes them when `whileOpen` is done. */
async function openConnections(run: Run, count: number, whileOpen: () => Promise<void>): Promise<LoadResult> {
  return runLoad(command(run, { connections: count, open: true }), { onOpen: whileOpen })
}

/** A Java client, its start included in the proxy's CPU; `transfer` returns bytes a second. */
async function java(
  run: Run,
  recordsPerSecond: number,
  transfer: typeof javaConsume,
  topic: string,
): Promise<Measures> {
  const { pid, port } = run.running
  const records = Math.min(800_000, Math.round(recordsPerSecond * run.seconds))
  const before = pid === undefined ? 0 : usageOf(pid).cpuSeconds
  if (pid !== undefined) resetPeak(pid)
  const rate = await transfer(port, topic, records)
  const after = pid === undefined ? undefined : usageOf(pid)
  return known({
    mbPerSecond: rate / megabyte,
    cpuSecondsPerGb: after && ((after.cpuSeconds - before) / (records * 1024)) * 1e9,
    peakMb: after && after.peakBytes / megabyte,
  })
}

async function connections(run: Run): Promise<Measures> {
  const { pid } = run.running
  const count = 1000
  await openConnections(run, 100, async () => {}) // warm: what a proxy compiles or allocates once is not counted
  await delay(100)
  const before = pid === undefined ? 0 : usageOf(pid).cpuSeconds
  const { openingMs } = await openConnections(run, count, async () => {})
  await delay(200) // the proxy sees the ends
  const cpuSeconds = pid === undefined ? undefined : usageOf(pid).cpuSeconds - before
  return known({ openingMs, cpuUsPerConnection: cpuSeconds && (cpuSeconds / count) * 1e6 })
}

async function idle({ running: { pid, startMs } }: Run): Promise<Measures> {
  if (pid === undefined) return {}
  await delay(1000)
  return { startMs, idleMb: usageOf(pid).residentBytes / megabyte }
}

async function idleConnections(run: Run): Promise<Measures> {
  const { pid } = run.running
  if (pid === undefined) return {}
  await delay(500)
  const before = usageOf(pid).residentBytes
  let after = 0
  await openConnections(run, 1000, async () => {
    await delay(500)
    after = usageOf(pid).residentBytes
  })
  return { addedMb: (after - before) / megabyte }
}

/** One answer and one request of nearly 100 MiB, the broker's limit, each alone. */
async function largeFrame(run: Run): Promise<Measures> {
  const { pid } = run.running
  if (pid === undefined) return {}
  await openConnections(run, 1, async () => {})
  await delay(500)
  const before = usageOf(pid).residentBytes
  resetPeak(pid)
  const once = { dummy: true, count: 1, warmup: 0 }
  await runLoad(command(run, { ...once, api: 'fetch', version: 12, size: 104_857_600 }))
  const answerMb = (usageOf(pid).peakBytes - before) / megabyte
  await runLoad(command(run, { ...once, api: 'produce', version: 9, records: 1600, 'record-bytes': 65_000 }))
  return { answerAddedMb: answerMb, addedMb: (usageOf(pid).peakBytes - before) / megabyte }
}

const canned: Scenario[] = [
  {
    name: 'opaque-fetch',
    title: 'canned 1 MiB Fetch v12 answers, 4 connections × 4 in flight',
    upstream: 'dummy',
    measure: (run) => bulk(run, command(run, { ...dummyBulk, api: 'fetch', version: 12 })),
  },
  {
    name: 'opaque-fetch-hints',
    title: 'canned 1 MiB Fetch v17 answers that end in leader addresses, 4 connections × 4 in flight',
    upstream: 'dummy',
    measure: (run) => bulk(run, command(run, { ...dummyBulk, api: 'fetch', version: 17, hints: true })),
  },
  {
    name: 'opaque-produce',
    title: '1 MiB Produce v9 requests, 4 connections × 4 in flight',
    upstream: 'dummy',
    measure: (run) =>
      bulk(run, command(run, { ...dummyBulk, api: 'produce', version: 9, records: 1024, 'record-bytes': recordBytes })),
  },
  {
    name: 'small',
    title: '50 connections, 100 B Produce ping-pong, dummy upstream',
    upstream: 'dummy',
    measure: (run) => requests(run, command(run, { ...smallProduce, dummy: true, connections: 50 })),
  },
  {
    name: 'pipelined',
    title: '16 connections × 16 in flight, 100 B Produce, dummy upstream',
    upstream: 'dummy',
    measure: (run) => requests(run, command(run, { ...smallProduce, dummy: true, connections: 16, inflight: 16 })),
  },
]

const real: Scenario[] = [
  {
    name: 'consume',
    title: 'Fetch of 1 KiB records from Kafka, 4 connections, unthrottled',
    upstream: 'kafka',
    measure: (run) => {
      const whole = { step: 16 * recordsPerBatch, offsets: (batchesPerPartition - 16) * recordsPerBatch }
      const options = { api: 'fetch', version: 12, topic: kafkaTopics.consume, partitions: kafkaPartitions, ...whole }
      return bulk(run, command(run, { ...options, size: 1 << 20, connections: 4, inflight: 2 }))
    },
  },
  {
    name: 'produce',
    title: 'Produce of 1 KiB records to Kafka, 4 connections, batches of 64 KiB, acks=1, unthrottled',
    upstream: 'kafka',
    measure: (run) => bulk(run, produceCommand(run.programs, run.running.port, kafkaTopics.produce)),
  },
  {
    name: 'java-consume',
    title: "1 KiB records from Kafka with Kafka's ConsumerPerformance",
    upstream: 'kafka',
    measure: (run) => java(run, 250_000, javaConsume, kafkaTopics.consume),
  },
  {
    name: 'java-produce',
    title: "1 KiB records to Kafka with Kafka's ProducerPerformance, batches of 128 KiB, acks=1",
    upstream: 'kafka',
    measure: (run) => java(run, 150_000, javaProduce, kafkaTopics.produce),
  },
  {
    name: 'ping-pong',
    title: '50 connections, 100 B records, acks=1, one in flight each, Kafka',
    upstream: 'kafka',
    measure: (run) => requests(run, command(run, { ...smallProduce, ...onKafka, connections: 50 })),
  },
  {
    name: 'latency',
    title: '5,000 Produce requests a second of 100 B over 50 connections, Kafka',
    upstream: 'kafka',
    measure: (run) => requests(run, command(run, { ...smallProduce, ...onKafka, connections: 50, rate: 5000 })),
  },
]

const costs: Scenario[] = [
  {
    name: 'connections',
    title: '1,000 connections opened, asked for ApiVersions, and closed',
    upstream: 'dummy',
    measure: connections,
  },
  {
    name: 'metadata',
    title: 'Metadata of 1,000 topics × 10 partitions, one at a time',
    upstream: 'dummy',
    upstreamArgs: () => ['--topics', '1000', '--partitions', '10'],
    measure: (run) => requests(run, command(run, { api: 'metadata', version: 12 })),
  },
  { name: 'idle', title: 'start to listening, and memory when idle', upstream: 'dummy', fresh: true, measure: idle },
  {
    name: 'idle-connections',
    title: 'memory that 1,000 idle connections add',
    upstream: 'dummy',
    fresh: true,
    measure: idleConnections,
  },
  {
    name: 'large-frame',
    title: 'memory that one 100 MiB answer, and then one such request, add',
    upstream: 'dummy',
    fresh: true,
    measure: largeFrame,
  },
  {
    name: 'slow-readers',
    title: '64 connections with 1 MiB answers, read at 1.6 MB/s each',
    upstream: 'dummy',
    fresh: true,
    measure: (run) => {
      const slowly = { 'slow-bytes': 32_768, 'slow-ms': 20 }
      const options = { dummy: true, api: 'fetch', version: 12, connections: 64, inflight: 4, ...slowly }
      return bulk(run, command(run, options))
    },
  },
]

/** Every scenario, in the order in which they are run. */
export const scenarios: readonly Scenario[] = [...canned, ...real, ...costs, filter, layouts]
