/** Runs set-up commands and finds tools. Output is kept and shown only when a command fails. */
import { spawn, spawnSync } from 'node:child_process'

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a command to its end; the error carries the last lines it printed. */
export function run(command: string, args: readonly string[], { cwd, env }: RunOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
      ...(cwd === undefined ? {} : { cwd }),
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(output)
      const tail = output.trimEnd().split('\n').slice(-25).join('\n')
      reject(new Error(`${[command, ...args].join(' ')} failed (${signal ?? `exit code ${code}`})\n${tail}`))
    })
  })
}

/** What a command prints when asked for its version, or undefined if there is no such command. */
export function versionOf(command: string, args: readonly string[]): string | undefined {
  const asked = spawnSync(command, args, { encoding: 'utf8', timeout: 30_000 })
  return asked.status === 0 ? asked.stdout + asked.stderr : undefined
}
