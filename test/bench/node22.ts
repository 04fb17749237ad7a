/** A Node whose zlib knows zstd (22.15 or newer): the one that runs this, or the one the client matrix installs from npm. */
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import { node22Program } from '../../scripts/setup/toolchain.ts'

let found: string | undefined

/** Its program, installed into the cache folder if need be. Errors of npm are thrown. */
export async function findNode22(): Promise<string> {
  found ??= 'zstdCompressSync' in zlib ? process.execPath : await installed()
  return found
}

/** What `findNode22` has found; undefined before, or where it failed. */
export function node22(): string | undefined {
  return found
}

async function installed(): Promise<string> {
  const { command } = await node22Program((line) => console.error(line))
  return join(dirname(command), 'node')
}
