/** The two ways in which inflating fails. */
import { RecordsError } from '../errors.ts'

/** The error for bytes that inflate to more than allowed. */
export function tooLarge(codec: string, maxBytes: number): RecordsError {
  return new RecordsError('HG_RECORDS_TOO_LARGE', `${codec} inflates to more than ${maxBytes} bytes`)
}

/** The error for bytes that are not of their codec. */
export function notOfCodec(codec: string, why: unknown): RecordsError {
  const message = why instanceof Error ? why.message : String(why)
  return new RecordsError('HG_RECORDS_CODEC', `${codec}: ${message}`, -1, why instanceof Error ? why : undefined)
}
