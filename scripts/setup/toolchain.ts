/**
 * The client families of the tests: what each needs on the machine, and how its program is built once into the cache.
 * Invariant: a missing toolchain is reported with the line that installs it, never a failure half-way.
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchJars, findMavenOrThrow, MissingToolError } from '../kafka/artifacts.ts'
import { findJava, findJavac } from '../kafka/java.ts'
import { cached } from './cache.ts'
import { run, versionOf } from './run.ts'

const clients = join(import.meta.dirname, '../../test/clients')

/** How to start a family's client program. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
}

export type Say = (line: string) => void

/** A key that changes with the content of the given files and folders of test/clients. */
function contentKey(...names: readonly string[]): string {
  const hash = createHash('sha1')
  for (const name of names) {
    const folder = join(clients, name)
    for (const file of filesIn(folder)) hash.update(file).update(readFileSync(join(folder, file)))
  }
  return hash.digest('hex')
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.map((entry) => entry.name).sort()
}

const quickClient = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto', '-Xmx256m']
const jacksonVersion = '2.21.2'

/** kafka-clients of the given version with the program compiled against it. */
export async function javaProgram(version: string, say: Say): Promise<Program> {
  const java = findJava()
  const javac = findJavac()
  if (java === undefined || javac === undefined) {
    throw new MissingToolError('a JDK 17 or newer is missing', 'apt-get install openjdk-17-jdk')
  }
  const jars = [
    ['org.apache.kafka', 'kafka-clients', version],
    ['com.fasterxml.jackson.core', 'jackson-databind', jacksonVersion],
    ['org.slf4j', 'slf4j-nop', version.startsWith('2.') ? '1.7.30' : '1.7.36'],
  ] as const
  const libraries = await cached({
    name: `kafka-clients-${version}`,
    key: jars.flat().join(' '),
    build: async (folder) => {
      findMavenOrThrow()
      say(`fetching kafka-clients ${version} with Maven, once (about 10 s)`)
      await fetchJars(jars, folder)
    },
  })
  const classes = await cached({
    name: `client-java-${version}`,
    key: `${version} ${contentKey('java')}`,
    build: async (folder) => {
      const sources = filesIn(join(clients, 'java')).map((file) => join(clients, 'java', file))
      await run(javac, ['-nowarn', '-cp', join(libraries, '*'), '-d', folder, ...sources])
    },
  })
  return { command: java, args: [...quickClient, '-cp', `${classes}:${join(libraries, '*')}`, 'Main'] }
}

/** @platformatic/kafka needs a newer Node than the oldest we support: both come from npm, in a folder of their own. */
export async function node22Program(say: Say): Promise<Program> {
  const folder = await cached({
    name: 'client-node22',
    key: contentKey('node22', 'js'),
    build: async (target) => {
      say('installing @platformatic/kafka and Node 22 from npm, once (about 20 s)')
      cpSync(join(clients, 'node22'), join(target, 'node22'), { recursive: true })
      cpSync(join(clients, 'js'), join(target, 'js'), { recursive: true })
      await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: join(target, 'node22') })
    },
  })
  const main = join(folder, 'node22/main.mjs')
  return { command: join(folder, 'node22/node_modules/node/bin/node'), args: [main] }
}

/** kafkajs is one of our development packages. */
export async function kafkajsProgram(): Promise<Program> {
  return { command: process.execPath, args: [join(clients, 'kafkajs/main.mjs')] }
}

/** A Python family: all share one virtual environment with pinned versions. */
export async function pythonProgram(file: string, say: Say): Promise<Program> {
  const python = ['python3', 'python'].find((name) => versionOf(name, ['-c', 'import venv, ensurepip']) !== undefined)
  if (python === undefined) throw new MissingToolError('Python 3 with venv is missing', 'apt-get install python3-venv')
  const requirements = join(clients, 'python/requirements.txt')
  const folder = await cached({
    name: 'client-python',
    key: `${versionOf(python, ['--version'])}${readFileSync(requirements, 'utf8')}`,
    build: async (target) => {
      say('installing the Python clients into a virtual environment, once (about 30 s)')
      await run(python, ['-m', 'venv', join(target, 'venv')])
      const pip = ['-m', 'pip', 'install', '--no-input', '--only-binary', ':all:', '-r', requirements]
      await run(join(target, 'venv/bin/python'), pip)
    },
  })
  return { command: join(folder, 'venv/bin/python'), args: ['-B', '-u', join(clients, 'python', file)] }
}

/** A Go family: one module, a binary for each. */
export async function goProgram(name: string, say: Say): Promise<Program> {
  const version = /go1\.(\d+)/.exec(versionOf('go', ['version']) ?? '')?.[1]
  // From 1.21 on, Go fetches the newer Go that go.mod asks for by itself.
  if (!(Number(version) >= 21)) throw new MissingToolError('Go 1.21 or newer is missing', 'apt-get install golang-go')
  const folder = await cached({
    name: 'client-go',
    key: goKey(),
    build: async (target) => {
      say('building the Go clients, once (about 60 s)')
      mkdirSync(join(target, 'bin'))
      const env = { GOFLAGS: '-mod=mod -buildvcs=false', CGO_ENABLED: '0' }
      await run('go', ['build', '-o', `${join(target, 'bin')}/`, './...'], { cwd: join(clients, 'go'), env })
    },
  })
  return { command: join(folder, 'bin', name), args: [] }
}

function goKey(): string {
  const folders = readdirSync(join(clients, 'go'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const hash = createHash('sha1').update(contentKey(...folders.map((entry) => join('go', entry.name))))
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(clients, 'go', file)))
  return hash.digest('hex')
}
