/**
 * Settings from environment variables: `limits.inFlight` is HEADGATE_LIMITS_IN_FLIGHT, `listeners[0].basePort` is
 * HEADGATE_LISTENERS_0_BASE_PORT. An unknown HEADGATE_ name is an error, except those that Kubernetes makes up for a
 * Service called headgate.
 */
import { didYouMean, type Problem } from './problems.ts'
import { type Setting, settings } from './settings.ts'

/** A value for one key from outside the file. */
export interface Override {
  readonly path: readonly (string | number)[]
  readonly value: unknown
  /** Shown by `headgate config` and in errors. */
  readonly source: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Variables that are not settings: read by other parts of Headgate. `DEFAULT_BIND` is set by the container image. */
const reserved = new Set(['HEADGATE_CONFIG', 'HEADGATE_CACHE', 'HEADGATE_DEFAULT_BIND', 'HEADGATE_ADMIN'])
const shortNames: Readonly<Record<string, string>> = { UPSTREAM_BOOTSTRAP: 'HEADGATE_UPSTREAM_BOOTSTRAP' }
const madeByKubernetes =
  /^HEADGATE(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/

/** `HEADGATE_LISTENERS_N_BASE_PORT` for `listeners[].basePort`. */
export function variableName(setting: Setting): string {
  const words = setting.path.map((part) => (part === '[]' ? 'N' : part.replace(/([A-Z])/g, '_$1').toUpperCase()))
  return ['HEADGATE', ...words].join('_')
}

/** Overrides from the environment, and what is wrong with it. Empty variables count as not set. */
export function readEnvironment(environment: Environment): { overrides: Override[]; problems: Problem[] } {
  const overrides: Override[] = []
  const problems: Problem[] = []
  const known = new Map(settings().map((setting) => [variableName(setting), setting]))
  for (const [variable, text] of Object.entries(environment)) {
    const name = shortNames[variable] ?? variable
    if (!name.startsWith('HEADGATE_') || reserved.has(name) || text === undefined || text === '') continue
    if (name !== variable && environment[name] !== undefined && environment[name] !== '') continue
    const index = /_(\d+)_/.exec(name)?.[1]
    const setting = known.get(name.replace(/_\d+_/, '_N_'))
    if (setting) overrides.push(toOverride(setting, text, `environment ${variable}`, index))
    else if (!madeByKubernetes.test(name)) {
      const fix = didYouMean(
        name,
        [...known.keys()].map((key) => key.replace('_N_', `_${index ?? '0'}_`)),
      )
      problems.push({ where: `environment ${variable}`, key: '', message: 'is not a setting', fix: shorten(fix) })
    }
  }
  return { overrides, problems }
}

const shorten = (fix: string) => (fix.startsWith('known') ? 'see `headgate config` for the names' : fix)

/** One `key=value` from the command line (`--set limits.inFlight=64`). */
export function readAssignment(text: string): { override?: Override; problem?: Problem } {
  const split = text.indexOf('=')
  const key = text.slice(0, split)
  const index = /(?:\[|\.)(\d+)(?:\]|\.|$)/.exec(key)?.[1]
  const setting = settings().find((s) => s.key === key.replace(/\[\d+\]/, '[]'))
  const source = split > 0 ? `--set ${key}` : '--set'
  if (split > 0 && setting) return { override: toOverride(setting, text.slice(split + 1), source, index) }
  const message = split > 0 ? 'is not a setting' : `is not key=value: ${text}`
  const fix =
    split > 0
      ? didYouMean(
          key,
          settings().map((s) => s.key.replace('[]', `[${index ?? 0}]`)),
        )
      : 'write --set limits.inFlight=64'
  return { problem: { where: source, key: '', message, fix } }
}

function toOverride(setting: Setting, text: string, source: string, index: string | undefined): Override {
  const path = setting.path.map((part) => (part === '[]' ? Number(index ?? 0) : part))
  return { path, value: coerce(setting, text.trim()), source }
}

/** Text as the type that the setting wants; what does not fit stays text and is refused by the schema. */
function coerce(setting: Setting, text: string): unknown {
  const numeric = setting.types.includes('integer') || setting.types.includes('number')
  if (numeric && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (setting.types.length === 1 && setting.types[0] === 'object' && text.startsWith('{')) return parseJson(text)
  if (setting.types.includes('boolean') && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  return text
}

/** A map in JSON; text that is none stays text. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
