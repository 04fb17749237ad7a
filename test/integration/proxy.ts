/** Headgate as users start it: the built binary with a configuration file, in front of a broker. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, removeFolder, temporaryFolder } from '../../scripts/kafka/keeper.ts'
import { freePorts } from '../../scripts/kafka/ports.ts'

const main = join(import.meta.dirname, '../../dist/main.js')
const readyWithinMs = 30_000

export interface Proxy {
  /** `host:port` for bootstrap.servers. */
  readonly bootstrap: string
  /** Port of the broker with node id 0; node n is at basePort + n. */
  readonly basePort: number
  /** URL of the admin server. */
  readonly admin: string
  readonly pid: number
  /** SIGKILL, and a new process with the same configuration and ports; waits until that is ready. */
  crashAndRestart(): Promise<void>
  /** The text of /metrics. */
  metrics(): Promise<string>
  /** The last lines of the log. */
  tail(lines?: number): string
  /** SIGTERM; gives the exit code (null: it had to be killed after 20 s). */
  stop(): Promise<number | null>
}

export interface ProxyOptions {
  /** Lines that are added to the configuration file at top level. */
  readonly more?: string
  readonly mode?: 'ports' | 'loopback'
  /** The tap (`/api/tap`) is open. */
  readonly inspect?: boolean
}

/** Starts Headgate in front of `upstream` (`host:port,…`) and waits until it is ready. */
export async function startProxy(upstream: string, options: ProxyOptions = {}): Promise<Proxy> {
  const { more = '', mode = 'ports', inspect = false } = options
  const [bootstrapPort, basePort] = (await freePorts(11)) as [number, number]
  const [adminPort] = (await freePorts(1)) as [number]
  const folder = temporaryFolder('proxy')
  const config = join(folder, 'headgate.yaml')
  const address = mode === 'ports' ? 'bind: 127.0.0.1, advertise: 127.0.0.1, ' : ''
  writeFileSync(
    config,
    `upstream:
  bootstrap: '${upstream}'
listeners:
  - {name: test, mode: ${mode}, ${address}basePort: ${basePort}, bootstrapPort: ${bootstrapPort}}
admin:
  bind: 127.0.0.1:${adminPort}
  inspect: ${inspect}
${more}`,
  )
  const log = join(folder, 'headgate.log')
  const redirect = `exec "$0" "$1" serve --config "$2" >>"$3" 2>&1`
  const start = () => keep('sh', ['-c', redirect, process.execPath, main, config, log], { stdio: 'ignore' })
  const tail = (lines = 40) => readFileSync(log, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  const admin = `http://127.0.0.1:${adminPort}`
  let child = start()
  await untilReady(child, admin, tail)
  return {
    bootstrap: `127.0.0.1:${bootstrapPort}`,
    basePort,
    admin,
    get pid() {
      return child.pid as number
    },
    crashAndRestart: async () => {
      child.kill('SIGKILL')
      await exitOf(child)
      child = start()
      await untilReady(child, admin, tail)
    },
    metrics: async () => (await fetch(`${admin}/metrics`)).text(),
    tail,
    stop: async () => {
      child.kill('SIGTERM')
      const patience = setTimeout(() => child.kill('SIGKILL'), 20_000)
      const code = await exitOf(child)
      clearTimeout(patience)
      removeFolder(folder)
      return code
    },
  }
}

function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode)
  return new Promise((resolve) => child.on('exit', (code) => resolve(code)))
}

async function untilReady(child: ChildProcess, admin: string, tail: () => string): Promise<void> {
  const deadline = Date.now() + readyWithinMs
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`headgate serve ended with ${child.exitCode}\n${tail()}`)
    const answer = await fetch(`${admin}/readyz`).catch(() => undefined)
    if (answer?.status === 200) return
    await delay(50)
  }
  child.kill('SIGKILL')
  throw new Error(`headgate serve is not ready within ${readyWithinMs} ms\n${tail()}`)
}
