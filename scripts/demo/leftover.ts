/**
 * What a running demo has started, in a file in the cache folder: so that the next demo finds one that still runs, and
 * clears up after one that was killed.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../setup/cache.ts'
import { removeContainer } from './upstream.ts'

export interface DemoState {
  readonly pid: number
  /** When the process started, as the system counts: a process id alone may belong to somebody else by now. */
  readonly startedAt: string
  readonly container: string
  readonly admin: string
  readonly proxyPid: number
  readonly proxyStartedAt: string
}

const fileOf = (name: string) => join(cacheFolder(), `${name}.json`)

export function remember(name: string, state: DemoState): void {
  mkdirSync(cacheFolder(), { recursive: true })
  writeFileSync(fileOf(name), `${JSON.stringify(state)}\n`)
}

export function forget(name: string): void {
  rmSync(fileOf(name), { force: true })
}

/** A demo of this name that still runs, or `cleared` if one was killed and its leftovers have now been removed. */
export function findLeftover(name: string): { running: DemoState } | 'cleared' | undefined {
  let state: DemoState
  try {
    state = JSON.parse(readFileSync(fileOf(name), 'utf8')) as DemoState
  } catch {
    return undefined
  }
  if (state.startedAt !== '' && startOf(state.pid) === state.startedAt) return { running: state }
  if (state.proxyStartedAt !== '' && startOf(state.proxyPid) === state.proxyStartedAt)
    process.kill(state.proxyPid, 'SIGTERM')
  if (state.container !== '') removeContainer(state.container)
  forget(name)
  return 'cleared'
}

/** When a process started: the same text for the same process only. Empty if there is none, or where /proc is missing. */
export function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold anything; field 22 counts from behind it. A zombie has ended.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? '' : (fields[19] ?? '')
  } catch {
    return ''
  }
}
