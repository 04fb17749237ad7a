/** Maps whose keys are regular expressions of a whole topic name or group id. */
import type { z } from 'zod'
import { refuse } from './fields.ts'

/** The expression for the whole name; undefined, with an error at the key, where it is none. */
export function toPattern(name: string, what: 'topic name' | 'group id', context: z.core.$RefinementCtx) {
  try {
    return new RegExp(`^(?:${name})$`)
  } catch (error) {
    const why = (error as Error).message.split(': ').at(-1)?.toLowerCase()
    const fix = `write a ${what}, or an expression that matches the whole of it, such as orders-.*`
    refuse(context, `is not a regular expression: ${why}`, fix, [name])
    return undefined
  }
}

/** The expression as it stands in the configuration. */
export function writtenAs(pattern: RegExp): string {
  return /^\^\(\?:(.*)\)\$$/s.exec(pattern.source)?.[1] ?? pattern.source
}
