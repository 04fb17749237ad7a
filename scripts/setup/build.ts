/** The build in dist/, made if the sources have changed since; several processes that want it make it once. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cached, isCached } from './cache.ts'
import { run } from './run.ts'

export const root = join(import.meta.dirname, '../..')

/** Path of dist/main.js, current. */
export async function builtMain(say: (line: string) => void = () => {}): Promise<string> {
  const main = join(root, 'dist/main.js')
  const build = async () => {
    say('building (about 10 s)')
    await run('npm', ['run', '--silent', 'build'], { cwd: root })
  }
  const wanted = { name: `build-${digest(root).slice(0, 12)}`, key: digest(sources()) }
  // Somebody removed dist/ and not the note of it in the cache.
  if (isCached(wanted) && !existsSync(main)) await build()
  await cached({ ...wanted, build })
  return main
}

function digest(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}

/** Name, size and time of every source file. */
function sources(): string {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).sort()
  const lines = names.map((name) => {
    const { size, mtimeMs, ino } = statSync(join(root, 'src', name))
    return `${name} ${size} ${mtimeMs} ${ino}`
  })
  return lines.join('\n')
}
