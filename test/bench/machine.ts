/** What a result depends on: the machine, the kernel and the versions of everything that took part. */
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os'
import { findTarget, type Target } from './target.ts'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly kernel: string
  readonly node: string
  /** The load average of the last minute when the run began: above about 0.5 others were working too. */
  readonly load: number
  readonly at: string
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() || /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] || 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    load: loadavg()[0] ?? 0,
    at: new Date().toISOString(),
  }
}

export interface Found {
  readonly target: Target
  readonly version: string
}

/** The targets that are installed; `missing` is told how to get the others. */
export async function installed(targets: readonly Target[], missing: (line: string) => void): Promise<Found[]> {
  const found: Found[] = []
  for (const target of targets) {
    try {
      const state = await findTarget(target)
      if ('version' in state) found.push({ target, version: state.version })
      else missing(`${target.name} is left out; to have it: ${state.missing}`)
    } catch (error) {
      missing(`${target.name} is left out: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return found
}
