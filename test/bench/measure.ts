/**
 * How a load is put on a target and what is read off: the command line of the generator, CPU and memory of the proxy.
 * Invariant: what belongs to the proxy belongs to the measured time only, and is missing where there is no proxy.
 */
import { type LoadResult, type Programs, runLoad } from './native.ts'
import type { RunningTarget } from './target.ts'
import { resetPeak, usageOf } from './usage.ts'

export interface Run {
  readonly programs: Programs
  readonly running: RunningTarget
  /** How long the measured part of a timed load lasts. */
  readonly seconds: number
}

export type Measures = Record<string, number>

export interface Scenario {
  readonly name: string
  readonly title: string
  readonly upstream: 'dummy' | 'kafka'
  /** Arguments of the dummy upstream, made when it is started. */
  upstreamArgs?(): Promise<readonly string[]> | readonly string[]
  /** The targets that take part (default: all but those with a feature switched on). */
  readonly targets?: readonly string[]
  /** A new proxy process for every run: its memory at the start is part of the measurement. */
  readonly fresh?: boolean
  measure(run: Run): Promise<Measures>
}

/** A million bytes: figures are in MB, not MiB. */
export const megabyte = 1e6

type Options = Readonly<Record<string, string | number | boolean>>

/** The command line of the load generator. */
export function command({ programs, running }: Run, options: Options): string[] {
  const all: Options = { port: running.port, ...options }
  const words = Object.entries(all).map(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  )
  return [programs.load, ...words.flat()]
}

export interface Timed extends LoadResult {
  readonly cpuSeconds: number | undefined
  readonly peakBytes: number | undefined
}

/** Runs a timed load; CPU and peak memory of the proxy belong to the measured time only. */
export async function timed({ running, seconds }: Run, words: readonly string[]): Promise<Timed> {
  const { pid } = running
  let before = 0
  let after: ReturnType<typeof usageOf> | undefined
  const result = await runLoad([...words, '--seconds', String(seconds), '--warmup', String(Math.min(1, seconds / 2))], {
    onStart: () => {
      if (pid === undefined) return
      resetPeak(pid)
      before = usageOf(pid).cpuSeconds
    },
    onResult: () => {
      if (pid !== undefined) after = usageOf(pid)
    },
  })
  return { ...result, cpuSeconds: after && after.cpuSeconds - before, peakBytes: after?.peakBytes }
}

/** Drops what is not known. */
export function known(measures: Record<string, number | undefined>): Measures {
  return Object.fromEntries(
    Object.entries(measures).filter((entry): entry is [string, number] => entry[1] !== undefined),
  )
}

/** Each measure's name begins with its part. */
export function named(part: string, measures: Measures): Measures {
  return Object.fromEntries(
    Object.entries(measures).map(([name, value]) => [`${part}${name[0]?.toUpperCase()}${name.slice(1)}`, value]),
  )
}

/** Bytes a second and what they cost: frames in both directions, as the client sees them. */
export async function bulk(run: Run, words: readonly string[]): Promise<Measures> {
  const { bytesIn, bytesOut, seconds, cpuSeconds, peakBytes } = await timed(run, words)
  const bytes = bytesIn + bytesOut
  return known({
    mbPerSecond: bytes / megabyte / seconds,
    cpuSecondsPerGb: cpuSeconds && (cpuSeconds / bytes) * 1e9,
    peakMb: peakBytes && peakBytes / megabyte,
  })
}

/** Requests a second and their latency. */
export async function requests(run: Run, words: readonly string[]): Promise<Measures> {
  const { answers, seconds, p50Ms, p99Ms, cpuSeconds, peakBytes } = await timed(run, words)
  return known({
    requestsPerSecond: answers / seconds,
    cpuUsPerRequest: cpuSeconds && (cpuSeconds / answers) * 1e6,
    p50Ms,
    p99Ms,
    peakMb: peakBytes && peakBytes / megabyte,
  })
}
