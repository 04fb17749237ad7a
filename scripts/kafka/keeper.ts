/**
 * Child processes and temporary folders that end with this process, even when it is killed (guard.mjs does it then).
 * Children run in a process group of their own, so that Ctrl-C reaches only us and we end them in order.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'

let guard: Writable | undefined

function tell(line: string): void {
  if (guard === undefined) {
    const script = join(import.meta.dirname, 'guard.mjs')
    const child = spawn(process.execPath, [script], { stdio: ['pipe', 'ignore', 'inherit'], detached: true })
    child.unref()
    const input = child.stdin as Writable & { unref?: () => void }
    input.unref?.()
    input.on('error', () => {})
    guard = input
  }
  guard.write(`${line}\n`)
}

/** Starts a process that is killed when this one ends. */
export function keep(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, { ...options, detached: true })
  const { pid } = child
  if (pid !== undefined) {
    tell(`+pid ${pid}`)
    child.on('exit', () => tell(`-pid ${pid}`))
  }
  return child
}

/** A new temporary folder that is removed when this process ends, or by `removeFolder`. */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), `headgate-${prefix}-`))
  tell(`+dir ${folder}`)
  return folder
}

/** Removes a temporary folder now. */
export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  tell(`-dir ${folder}`)
}
