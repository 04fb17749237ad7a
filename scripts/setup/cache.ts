/**
 * The cache folder and what is built into it once: `$HEADGATE_CACHE`, default `${XDG_CACHE_HOME:-~/.cache}/headgate`.
 * Invariant: a folder whose stamp equals its key is complete, so that a second run needs no network; two processes
 * that want the same folder build it once.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** The cache folder (not created). */
export function cacheFolder(): string {
  return process.env['HEADGATE_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'headgate')
}

export interface CachedFolder {
  /** Name of the folder below the cache folder. */
  readonly name: string
  /** What the content depends on (versions, lock files): another key rebuilds it. */
  readonly key: string
  /** Fills the empty folder. */
  build(folder: string): Promise<void>
}

/** Whether `folder` is complete and current. */
export function isCached({ name, key }: Pick<CachedFolder, 'name' | 'key'>): boolean {
  return readText(join(cacheFolder(), name, '.stamp')) === key
}

/** The path of a cached folder, built first if it is missing or stale. Errors of `build` leave no stamp. */
export async function cached(wanted: CachedFolder): Promise<string> {
  const folder = join(cacheFolder(), wanted.name)
  if (isCached(wanted)) return folder
  mkdirSync(cacheFolder(), { recursive: true })
  const unlock = await lock(`${folder}.lock`)
  try {
    if (isCached(wanted)) return folder
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    await wanted.build(folder)
    writeFileSync(join(folder, '.stamp'), wanted.key)
    return folder
  } finally {
    unlock()
  }
}

/** Takes a lock folder that holds the owner's pid; one whose owner is gone is taken over. */
async function lock(path: string): Promise<() => void> {
  for (;;) {
    try {
      mkdirSync(path)
      writeFileSync(join(path, 'pid'), String(process.pid))
      return () => rmSync(path, { recursive: true, force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const owner = Number(readText(join(path, 'pid')))
      if (owner > 0 && !isAlive(owner)) rmSync(path, { recursive: true, force: true })
      else await delay(200)
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
