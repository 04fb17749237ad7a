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

/**
 * Reads options; no positional arguments. Throws `UsageError`, with the nearest option that exists.
 * @param meant what somebody who wrote one argument too many may have meant; undefined: nobody knows
 */
export function readOptions<const T extends Record<string, Option>>(
  args: readonly string[],
  options: T,
  meant?: (argument: string) => string | undefined,
): Values<T> {
  const { values, tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'option') checkOption(token, options)
    if (token.kind !== 'positional') continue
    const instead = meant?.(token.value)
    throw new UsageError(
      `${token.value} is one argument too many${instead === undefined ? '' : `; did you mean ${instead}?`}`,
    )
  }
  return values
}

interface OptionToken {
  readonly name: string
  /** As it was written, with its dashes. */
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function checkOption(token: OptionToken, options: Readonly<Record<string, Option>>): void {
  const { name, rawName, value, inlineValue } = token
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (option === undefined) {
    const near = nearest(name.replace(/^no-/, ''), Object.keys(options))
    throw new UsageError(`there is no option ${rawName}${near === undefined ? '' : `; did you mean --${near}?`}`)
  }
  if (option.type === 'boolean' && value !== undefined) throw new UsageError(`${rawName} takes no value, not ${value}`)
  if (option.type === 'boolean') return
  if (value === undefined || value === '') throw new UsageError(`${rawName} wants a value`)
  // A negative number is one that the command can say something about.
  if (inlineValue === false && /^-\D/.test(value)) throw new UsageError(`${rawName} wants a value, not ${value}`)
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
