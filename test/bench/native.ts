/** The two C programs of the bench, compiled once into the cache folder, and running the load generator. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { cached } from '../../scripts/setup/cache.ts'
import { run, versionOf } from '../../scripts/setup/run.ts'

const sources = join(import.meta.dirname, 'native')
const flags = ['-O2', '-Wall', '-Wextra', '-Wno-unused-function']

export interface Programs {
  readonly load: string
  readonly upstream: string
}

/** The line that installs what the bench needs, for where `findCompiler` finds nothing. */
export const compilerInstall = 'apt-get install gcc libc6-dev'

export function findCompiler(): string | undefined {
  return ['gcc', 'cc', 'clang'].find((name) => versionOf(name, ['--version']) !== undefined)
}

/** Compiles what is missing. The error says how to get a compiler. */
export async function compilePrograms(): Promise<Programs> {
  const compiler = findCompiler()
  if (compiler === undefined) throw new Error(`the bench needs a C compiler: ${compilerInstall}`)
  const hash = createHash('sha256').update(flags.join(' '))
  for (const name of readdirSync(sources).sort()) hash.update(readFileSync(join(sources, name)))
  const folder = await cached({
    name: 'bench',
    key: hash.digest('hex'),
    build: async (into) => {
      for (const name of ['load', 'upstream']) {
        await run(compiler, [...flags, '-o', join(into, name), join(sources, `${name}.c`)])
      }
    },
  })
  return { load: join(folder, 'load'), upstream: join(folder, 'upstream') }
}

/** What load.c reports; bytes are whole frames, times are in milliseconds unless they say seconds. */
export interface LoadResult {
  readonly seconds: number
  readonly answers: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly openingMs: number
}

export interface LoadEvents {
  /** All connections are open; with `--open` the generator goes on when the promise is fulfilled. */
  onOpen?(): Promise<void> | void
  /** The measured time begins. */
  onStart?(): void
  /** The measured time is over. */
  onResult?(): void
}

/** Runs the load generator to its end. A fault that it found (order, content, error code) is an error. */
export function runLoad(command: readonly string[], events: LoadEvents = {}): Promise<LoadResult> {
  const [program = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    let result: LoadResult | undefined
    let complaint = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as { event: string } & LoadResult
      if (message.event === 'open') {
        void Promise.resolve(events.onOpen?.()).then(() => child.stdin.end(), reject)
      } else if (message.event === 'start') events.onStart?.()
      else if (message.event === 'result') {
        events.onResult?.()
        result = message
      }
    })
    child.stdin.on('error', () => {})
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0 && result !== undefined) resolve(result)
      else reject(new Error(`${complaint.trim() || 'the load generator failed'}\n  ${command.join(' ')}`))
    })
  })
}
