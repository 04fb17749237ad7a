/**
 * `npm run demo` on a fresh clone: plain JavaScript that installs the packages if need be, then runs demo.ts.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname ?? new URL('..', import.meta.url).pathname, import.meta.dirname ? '..' : '.')

if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error(`The demo needs Node 20 or newer; this is ${process.version}.`)
  process.exit(2)
}

/** Whether node_modules holds what the lock file names. npm keeps its own copy of the lock file there. */
function isInstalled() {
  try {
    const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
    const present = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8')).packages
    return ['tsx', 'typescript', 'kafkajs', 'zod', 'pino', 'prom-client', 'yaml'].every(
      (name) => wanted[`node_modules/${name}`]?.version === present[`node_modules/${name}`]?.version,
    )
  } catch {
    return false
  }
}

if (!isInstalled()) {
  console.log('installing packages, once (about 20 s) …')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  const install = spawnSync(npm, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
  if (install.status !== 0) {
    console.error('npm ci failed; is the package registry reachable?')
    process.exit(1)
  }
}

const { register } = await import('tsx/esm/api')
register()
await import('./demo.ts')
