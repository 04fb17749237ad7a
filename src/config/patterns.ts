/** Maps whose keys are regular expressions of a whole topic name or group id. */
import type { z } from 'zod'
import { refuse } from './fields.ts'

/** The expression for the whole name; undefined, with an error at the key, where it is none. */
export function toPattern(name: string, what: 'topic name' | 'group id', context: z.core.$RefinementCtx) {
  try {
    return new RegExp(`^(?:${name})$`)
  } catch (error) {
    const message = `is not a regular expression: ${(error as Error).message}`
    refuse(context, message, `write a ${what}, or escape its dots`, [name])
    return undefined
  }
}
