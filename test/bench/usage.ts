/** What a process and its children cost, read from /proc. CPU counts in ticks of 10 ms, so a run should last seconds. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** Linux reports CPU time in units of 1/100 s on every architecture that Node runs on. */
const ticksPerSecond = 100

export interface Usage {
  /** User and system CPU time since the start. */
  readonly cpuSeconds: number
  /** Resident memory now, in bytes. */
  readonly residentBytes: number
  /** The most that was resident since the start or the last `resetPeak`, in bytes. */
  readonly peakBytes: number
}

/** Sums over the process and everything it started; a process that has just gone counts as nothing. */
export function usageOf(pid: number): Usage {
  let ticks = 0
  let residentBytes = 0
  let peakBytes = 0
  for (const one of family(pid)) {
    const fields = statFields(one)
    ticks += Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)
    const status = readText(`/proc/${one}/status`) ?? ''
    residentBytes += kilobytes(status, 'VmRSS') * 1024
    peakBytes += kilobytes(status, 'VmHWM') * 1024
  }
  return { cpuSeconds: ticks / ticksPerSecond, residentBytes, peakBytes }
}

/** Makes `peakBytes` count from now on. */
export function resetPeak(pid: number): void {
  for (const one of family(pid)) writeFileSync(`/proc/${one}/clear_refs`, '5')
}

function family(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    const id = Number(name)
    if (Number.isInteger(id)) parents.set(id, Number(statFields(id)?.[1] ?? 0))
  }
  const members = [pid]
  for (const member of members) for (const [id, parent] of parents) if (parent === member) members.push(id)
  return members
}

/** The fields of /proc/PID/stat after the command name, which may contain spaces: state, parent, … user, system. */
function statFields(pid: number): string[] | undefined {
  const text = readText(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')
}

function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
