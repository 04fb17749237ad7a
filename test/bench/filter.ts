/**
 * The scenario `filter`: what it costs to take half of the records out of Fetch answers, and what that costs those who
 * are not filtered. Which records a client gets depends on its client id, and so does what the dummy upstream answers
 * with: one proxy serves all parts.
 * Invariant: a part whose answers are not half of what the upstream sent is an error, not a figure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { canned, type CannedCodec, cannedCodecs } from './canned.ts'
import { bulk, command, type Measures, megabyte, named, requests, type Run, type Scenario, timed } from './measure.ts'
import { runLoad } from './native.ts'
import { resetPeak, usageOf } from './usage.ts'

const fetch = { api: 'fetch', version: 12 }
/** What the memory is measured with: each client fetches one partition. */
const partitionMaxBytes = 1 << 20
const clients = 32

function clientOf(codec: CannedCodec): string {
  return `bench-${codec}`
}

async function upstreamArgs(): Promise<string[]> {
  const all = await Promise.all(cannedCodecs.map(async (codec) => ({ codec, made: await canned(codec) })))
  return all.flatMap(({ codec, made }) => (made === undefined ? [] : ['--canned', `${clientOf(codec)}=${made.file}`]))
}

/** A client without ranges: as much as it can get, and the latency of 1,000 answers of 64 KiB a second. */
async function beside(run: Run): Promise<Measures> {
  const { cpuSecondsPerGb } = await bulk(run, command(run, { ...fetch, dummy: true, connections: 4, inflight: 4 }))
  const steady = { ...fetch, dummy: true, size: 70_000, connections: 10, rate: 1000 }
  const { p99Ms } = await requests(run, command(run, steady))
  return named('plain', {
    ...(cpuSecondsPerGb === undefined ? {} : { cpuSecondsPerGb }),
    ...(p99Ms === undefined ? {} : { p99Ms }),
  })
}

/** Half of the records kept, in MB of what the upstream sends, as it lies on the wire. */
async function half(run: Run, codec: CannedCodec): Promise<Measures> {
  const made = await canned(codec)
  if (made === undefined) return {}
  const options = { ...fetch, client: clientOf(codec), size: 4 * partitionMaxBytes, connections: 4, inflight: 2 }
  const { answers, bytesIn, cpuSeconds } = await timed(run, command(run, options))
  const share = bytesIn / answers / made.inflatedBytes
  if (!(share > 0.45 && share < 0.55)) throw new Error(`${codec}: ${share} of the records were delivered, not half`)
  const input = answers * made.bytes
  if (!cpuSeconds) return {}
  return named(codec, {
    cpuSecondsPerGb: (cpuSeconds / input) * 1e9,
    mbPerCpuSecond: input / megabyte / cpuSeconds,
    inflatedMbPerCpuSecond: (answers * made.inflatedBytes) / megabyte / cpuSeconds,
  })
}

/** What a further client adds, each with one Fetch of one partition at a time. Before that one client has warmed the code. */
async function memory(run: Run): Promise<Measures> {
  const { pid } = run.running
  if (pid === undefined) return {}
  const options = { ...fetch, client: clientOf('none'), size: partitionMaxBytes, warmup: 0 }
  await delay(500)
  const before = usageOf(pid).residentBytes
  resetPeak(pid)
  await runLoad(command(run, { ...options, connections: clients, count: 4 * clients }))
  return { addedMbPerClient: (usageOf(pid).peakBytes - before) / megabyte / clients }
}

async function measure(run: Run): Promise<Measures> {
  const { features, name } = run.running.target
  if (features !== true) return beside(run)
  if (name === 'ranges-node22') return half(run, 'zstd')
  const plain = await beside(run)
  const parts = { ...(await half(run, 'none')), ...(await half(run, 'lz4')) }
  return { ...plain, ...parts, ...(await memory(run)) }
}

export const filter: Scenario = {
  name: 'filter',
  title: 'canned 1 MiB Fetch answers of 1 KiB records, half kept by key ranges, per byte of input; others beside it',
  upstream: 'dummy',
  targets: ['headgate', 'ranges', 'ranges-node22'],
  upstreamArgs,
  measure,
}
