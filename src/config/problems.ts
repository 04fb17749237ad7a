/** What is wrong with a configuration, said so that it can be put right: where, which key, what, and the fix. */
import type { z } from 'zod'

export interface Problem {
  /** `config.yaml:7`, `environment variable X`, `--set`. Empty if nothing was written for that key. */
  readonly where: string
  /** `listeners[0].basePort`; empty for the file as a whole. */
  readonly key: string
  readonly message: string
  readonly fix: string
}

/** Every problem found, one line each in `message`. */
export class ConfigError extends Error {
  readonly code = 'HG_CONFIG'
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export function formatProblem({ where, key, message, fix }: Problem): string {
  const place = [where, key].filter((part) => part !== '').join(': ')
  return `${place === '' ? '' : `${place} `}${message}${fix === '' ? '' : ` (fix: ${fix})`}`
}

/** `['listeners', 0, 'bind']` as `listeners[0].bind`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? String(part) : `${text}.${String(part)}`
  }, '')
}

/** The candidate closest to `name` by edits, if it is close enough to be what was meant. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[-_]/g, '')
  const scored = candidates.map((candidate) => ({ candidate, edits: editDistance(plain(name), plain(candidate)) }))
  const best = scored.sort((a, b) => a.edits - b.edits)[0]
  // A third of the letters: three letters may differ in one, not in two.
  return best && best.edits <= Math.min(4, Math.max(1, Math.floor(name.length / 3))) ? best.candidate : undefined
}

/** Letters changed, added or left out; two neighbours that changed places count once. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? (before[j - 2] ?? 0) + 1 : Infinity
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** Fix for a name that does not exist: the nearest that does, or all of them. */
export function didYouMean(name: string, candidates: readonly string[]): string {
  const near = nearest(name, candidates)
  return near === undefined ? `known here: ${candidates.join(', ')}` : `did you mean ${near}?`
}

/** Message and fix of one zod issue. Our own messages carry the fix in `params.fix` or after a line break. */
export function explain(issue: z.core.$ZodIssue): { message: string; fix: string } {
  if (issue.code === 'custom') return { message: issue.message, fix: String(issue.params?.fix ?? '') }
  const split = issue.message.indexOf('\n')
  if (split >= 0) return { message: issue.message.slice(0, split), fix: issue.message.slice(split + 1) }
  switch (issue.code) {
    case 'invalid_type':
      return { message: 'has the wrong type', fix: `write ${typeNames[issue.expected] ?? issue.expected}` }
    case 'invalid_value':
      return { message: 'is not a known value', fix: `use one of: ${issue.values.map(String).join(', ')}` }
    case 'too_small':
      return { message: 'is too small', fix: `write at least ${issue.minimum}` }
    case 'too_big':
      return { message: 'is too large', fix: `write at most ${issue.maximum}` }
    default:
      return { message: issue.message, fix: '' }
  }
}

const typeNames: Readonly<Record<string, string>> = {
  object: 'a map of keys (key: value, indented)',
  record: 'a map (key: value, indented; in an environment variable as JSON)',
  array: 'a list (each entry after "- ")',
  boolean: 'true or false',
  string: 'text',
}
