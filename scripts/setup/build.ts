/** The build in dist/, made if the sources have changed since; several processes that want it make it once. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cached } from './cache.ts'
import { run } from './run.ts'

export const root = join(import.meta.dirname, '../..')

/** Path of dist/main.js, current. */
export async function builtMain(say: (line: string) => void = () => {}): Promise<string> {
  const main = join(root, 'dist/main.js')
  const hash = createHash('sha1')
    .update(root)
    .update(String(existsSync(main)))
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).sort()) {
    const { size, mtimeMs, ino } = statSync(join(root, 'src', name))
    hash.update(`${name} ${size} ${mtimeMs} ${ino}\n`)
  }
  const where = createHash('sha1').update(root).digest('hex').slice(0, 12)
  await cached({
    name: `build-${where}`,
    key: hash.digest('hex'),
    build: async () => {
      say('building (about 10 s)')
      await run('npm', ['run', '--silent', 'build'], { cwd: root })
    },
  })
  return main
}
