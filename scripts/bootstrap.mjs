/**
 * First step of `npm test` and `npm run demo` on a fresh clone: plain JavaScript, because no package is there yet. Installs
 * the locked packages if they are missing or stale, then runs the given TypeScript file: `node scripts/bootstrap.mjs FILE ARGUMENTS…`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldestNode = 20
const root = dirname(dirname(fileURLToPath(import.meta.url)))

if (Number(process.versions.node.split('.')[0]) < oldestNode) {
  console.error(`Headgate needs Node ${oldestNode} or newer; this is ${process.versions.node}`)
  process.exit(1)
}
if (!areInstalled()) {
  console.error('installing packages from npm, once (about 20 s)')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const install = spawnSync(npm, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', process.stderr, process.stderr],
  })
  if (install.status !== 0) {
    console.error('npm ci failed: packages could not be installed')
    process.exit(install.status ?? 1)
  }
}
const [file, ...args] = process.argv.slice(2)
const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], { cwd: root, stdio: 'inherit' })
// The terminal sends Ctrl-C to both: the child cleans up and decides when to end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(signal === null ? code : 1))

/** npm writes its own copy of the lock file last; it is older than ours after a pull that changed it. */
function areInstalled() {
  try {
    return (
      statSync(join(root, 'node_modules/.package-lock.json')).mtimeMs >=
      statSync(join(root, 'package-lock.json')).mtimeMs
    )
  } catch {
    return false
  }
}
