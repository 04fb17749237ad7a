/** The real binary for tests: starts dist/main.js in a process of its own, on free ports, and talks to its admin port. */
import type { ChildProcess } from 'node:child_process'
import { keep } from '../../scripts/kafka/keeper.ts'
import { freePorts } from '../../scripts/kafka/ports.ts'
import { builtMain } from '../../scripts/setup/build.ts'
import { until } from '../support/until.ts'

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A process of `headgate`: what it prints, and its end. */
export class Process {
  stdout = ''
  stderr = ''
  readonly child: ChildProcess
  readonly finished: Promise<Finished>

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text))
    this.finished = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })))
  }

  /** The log so far, as objects. Throws if a line is not JSON. */
  get log(): Record<string, unknown>[] {
    const lines = this.stdout.split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }
}

type Env = Readonly<Record<string, string>>

/** Runs a command of headgate. The environment holds nothing of ours but `env`. */
export async function headgate(args: readonly string[], env: Env = {}): Promise<Process> {
  const main = await builtMain()
  const { PATH = '', HOME = '' } = process.env
  const options = { env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] }
  return new Process(keep(process.execPath, [main, ...args], options))
}

export interface Served extends Process {
  /** For clients: host:port of the bootstrap address. */
  readonly bootstrap: string
  readonly admin: string
}

/** `headgate serve` on free ports, up to where the admin port answers. Ports: bootstrap, nodes 0 to 3, admin. */
export async function serve(upstream: string, env: Env = {}): Promise<Served> {
  const [bootstrapPort = 0, basePort = 0, , , , adminPort = 0] = await freePorts(6)
  const served = await headgate(['serve'], {
    UPSTREAM_BOOTSTRAP: upstream,
    HEADGATE_LISTENERS_0_BOOTSTRAP_PORT: String(bootstrapPort),
    HEADGATE_LISTENERS_0_BASE_PORT: String(basePort),
    HEADGATE_LISTENERS_0_NODE_IDS: '0-3',
    HEADGATE_ADMIN_BIND: `127.0.0.1:${adminPort}`,
    ...env,
  })
  const admin = `http://127.0.0.1:${adminPort}`
  let ended = false
  void served.finished.then(() => (ended = true))
  await until(async () => {
    if (ended) throw new Error(`headgate ended: ${served.stderr}${served.stdout}`)
    return (await status(`${admin}/livez`)) === 200
  })
  return Object.assign(served, { bootstrap: `127.0.0.1:${bootstrapPort}`, admin })
}

/** HTTP status of a GET; 0 if nobody answers. */
export async function status(url: string): Promise<number> {
  try {
    const answer = await fetch(url)
    await answer.body?.cancel()
    return answer.status
  } catch {
    return 0
  }
}

export async function getJson(url: string): Promise<unknown> {
  return (await fetch(url)).json()
}

/** The metrics page as a map from series to value. */
export async function metrics(admin: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}
