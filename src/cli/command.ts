/** What a command of `headgate` is, and how its options are read. */
import { parseArgs } from 'node:util'
import type { LoadOptions } from '../config/load.ts'
import { nearest } from '../config/problems.ts'

export interface Io {
  out(text: string): void
  err(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Command {
  /** What `headgate help <command>` prints. */
  readonly help: string
  /** Returns the exit code: 0 done, 1 failed, 2 used or configured wrongly. */
  run(args: readonly string[], io: Io): Promise<number>
}

/** The command line makes no sense; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: boolean
}

type Values<T extends Record<string, Option>> = {
  [K in keyof T]?: T[K] extends { type: 'boolean' } ? boolean : T[K] extends { multiple: true } ? string[] : string
}

/** Reads options; no positional arguments. Throws `UsageError`, with the nearest option that exists. */
export function readOptions<const T extends Record<string, Option>>(args: readonly string[], options: T): Values<T> {
  for (const arg of args) {
    const name = /^--(?:no-)?([^=]+)/.exec(arg)?.[1]
    if (name !== undefined && !(name in options) && arg !== '--') {
      const near = nearest(name, Object.keys(options))
      throw new UsageError(`there is no option --${name}${near === undefined ? '' : `; did you mean --${near}?`}`)
    }
  }
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0] ?? '')
  }
}

/** The options by which every command finds the configuration. */
export const configOptions = {
  config: { type: 'string', short: 'c' },
  upstream: { type: 'string' },
  set: { type: 'string', multiple: true },
} as const satisfies Record<string, Option>

export const configHelp = `
  -c, --config FILE      YAML configuration (or HEADGATE_CONFIG; default: none)
      --upstream LIST    host:port,… of the Kafka cluster (or UPSTREAM_BOOTSTRAP)
      --set KEY=VALUE    any setting, for example --set limits.inFlight=64; may be repeated`

export function loadOptions(values: Values<typeof configOptions>, io: Io): LoadOptions {
  return {
    file: values.config ?? (io.env.HEADGATE_CONFIG || undefined),
    upstream: values.upstream,
    assignments: values.set ?? [],
    environment: io.env,
  }
}
