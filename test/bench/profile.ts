/** What a Node target spends its time on: V8's CPU profile, summed by function. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The part of V8's .cpuprofile that matters here; times are microseconds. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export interface Spent {
  readonly what: string
  /** Share of the time in which the process was not idle. */
  readonly share: number
}

/** Time in each function itself, largest first; waiting is left out. */
export function selfTimes(profile: CpuProfile): Spent[] {
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const times = new Map<string, number>()
  let total = 0
  profile.samples.forEach((id, index) => {
    const name = names.get(id) ?? '(unknown)'
    if (name === '(idle)') return
    const spent = profile.timeDeltas[index] ?? 0
    total += spent
    times.set(name, (times.get(name) ?? 0) + spent)
  })
  return [...times].map(([what, time]) => ({ what, share: time / total })).sort((a, b) => b.share - a.share)
}

function nameOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  const file = /(?:dist|targets|node:)\/?(.*)$/.exec(url)?.[1]
  if (file === undefined || file === '') return functionName === '' ? '(native)' : functionName
  return `${functionName === '' ? '(anonymous)' : functionName} ${url.startsWith('node:') ? 'node:' : ''}${file}:${lineNumber + 1}`
}

/** The most expensive functions of the newest profile in `folder`, as lines of text. */
export function summarise(folder: string, count = 25): string[] {
  const newest = readdirSync(folder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .sort()
    .at(-1)
  if (newest === undefined) return [`no profile was written to ${folder}`]
  const times = selfTimes(JSON.parse(readFileSync(join(folder, newest), 'utf8')) as CpuProfile)
  return times.slice(0, count).map(({ what, share }) => `${(share * 100).toFixed(1).padStart(5)} %  ${what}`)
}
