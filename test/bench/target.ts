/**
 * The proxies that are compared, from targets.json: starting one in front of an upstream, and what it costs.
 * Invariant: every target forwards `127.0.0.1:port` to the upstream and nothing else is asked of it, so that any TCP or
 * Kafka proxy can be added with one line.
 */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, removeFolder, temporaryFolder } from '../../scripts/kafka/keeper.ts'
import { freePorts } from '../../scripts/kafka/ports.ts'
import { cached, isCached } from '../../scripts/setup/cache.ts'
import { run, versionOf } from '../../scripts/setup/run.ts'
import { findNode22, node22 } from './node22.ts'

export interface Target {
  readonly name: string
  /**
   * The command line, without quoting. Placeholders, here and in the template: {port} to listen on, {portBelow} the one
   * below, {port2} and {port3} two more, {upstream} host:port, {upstreamPort}, {dir} a folder for its files, {files} the
   * folder of the templates, {root} of the repository, {venv} of the PyPI package, {node22} a Node
   * that has zstd. None: no proxy at all.
   */
  readonly command?: string
  /** A file of test/bench/targets that is copied to {dir}, placeholders filled in. */
  readonly template?: string
  /** It speaks Kafka and tells clients its own address; other proxies need a broker that does so for them. */
  readonly rewrites?: boolean
  /** A command that prints the version; it also shows whether the target is installed. */
  readonly version?: string
  /** The line that installs it. */
  readonly install?: string
  /** A feature is switched on: it is measured only by scenarios that name it. */
  readonly features?: boolean
  /** name==version, installed into the cache folder. */
  readonly pypi?: string
}

export interface RunningTarget {
  readonly target: Target
  /** Where clients connect. */
  readonly port: number
  /** Undefined: no proxy. */
  readonly pid: number | undefined
  /** From the start of the process to the first accepted connection, in milliseconds. */
  readonly startMs: number
  stop(): Promise<void>
}

const root = join(import.meta.dirname, '../..')
const files = join(import.meta.dirname, 'targets')

/** All targets, in the order of the file. */
export function readTargets(): Target[] {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'targets.json'), 'utf8')) as Target[]
}

/** Replaces every {name}; an unknown one is an error. */
export function fillIn(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{([a-z][a-zA-Z0-9]*)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`nothing is known for {${name}} in: ${text}`)
    return String(value)
  })
}

/** The version of an installed target, 'missing' with the way to get it otherwise. */
export async function findTarget(target: Target): Promise<{ version: string } | { missing: string }> {
  if (target.pypi !== undefined) await installFromPypi(target.pypi)
  if (target.command?.startsWith('{node22}') === true) await findNode22()
  if (target.version === undefined) return { version: process.version }
  const [command = '', ...args] = fillIn(target.version, places(target)).split(' ')
  const text = versionOf(command, args)
  if (text === undefined) return { missing: `${target.install ?? 'no way to install it is known'}` }
  return { version: /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? text.trim() }
}

const venvs = new Map<string, string>()

function places(target: Target) {
  return { root, files, venv: venvs.get(target.pypi ?? '') ?? '', node22: node22() ?? 'node22' }
}

async function installFromPypi(pypi: string): Promise<void> {
  const wanted = { name: `bench-${pypi.split('=')[0]}`, key: pypi }
  if (!isCached(wanted)) console.error(`installing ${pypi} into the cache folder: once, about a minute`)
  const build = async (folder: string) => {
    await run('python3', ['-m', 'venv', folder])
    await run(join(folder, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', pypi])
  }
  venvs.set(pypi, await cached({ ...wanted, build }))
}

export interface Place {
  readonly upstreamPort: number
  /** Where the target must listen (default: any free port). */
  readonly port?: number
}

export interface StartOptions {
  /** The core that the target runs on (default: any). */
  readonly pinTo?: number | undefined
  /** Where a Node target writes V8's CPU profile when it ends. */
  readonly profile?: string | undefined
}

/** Starts a target and waits until it accepts connections. */
export async function startTarget(target: Target, place: Place, options: StartOptions = {}): Promise<RunningTarget> {
  const { pinTo, profile } = options
  const { upstreamPort } = place
  if (target.command === undefined) {
    return { target, port: upstreamPort, pid: undefined, startMs: 0, stop: async () => {} }
  }
  const [portBelow = 0, freePort = 0, port2 = 0, port3 = 0] = await freePorts(4)
  const { port = freePort } = place
  const dir = temporaryFolder('bench')
  const upstream = `127.0.0.1:${upstreamPort}`
  const values = { ...places(target), port, portBelow, port2, port3, dir, upstream, upstreamPort }
  if (target.template !== undefined) {
    const text = readFileSync(join(files, target.template), 'utf8')
    writeFileSync(join(dir, target.template), fillTemplate(text, values))
  }
  const words = fillIn(target.command, values).split(' ')
  const node = words[0] === 'node' ? process.execPath : node22()
  if (node !== undefined && (words[0] === 'node' || words[0] === node)) {
    words.splice(0, 1, node, ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]))
  }
  const [command = '', ...args] = pinTo === undefined ? words : ['taskset', '-c', String(pinTo), ...words]
  const began = performance.now()
  const child = keep(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (output += text.toString()))
  const stop = async () => {
    await end(child)
    removeFolder(dir)
  }
  if (!(await accepts(port, child))) {
    await stop()
    throw new Error(`${target.name} does not listen on port ${port}\n${output.slice(-2000)}`)
  }
  return { target, port, pid: child.pid, startMs: performance.now() - began, stop }
}

/** In a template only the known placeholders are filled in: braces are part of most configuration languages. */
export function fillTemplate(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{ ?([a-z][a-zA-Z0-9]*) ?\}/g, (whole, name: string) => String(values[name] ?? whole))
}

async function accepts(port: number, child: ChildProcess): Promise<boolean> {
  for (const deadline = performance.now() + 20_000; performance.now() < deadline; await delay(2)) {
    if (child.exitCode !== null || child.signalCode !== null) return false
    if (await canConnect(port)) return true
  }
  return false
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 5000)
  await gone
  clearTimeout(late)
}
