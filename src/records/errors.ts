/** What goes wrong in record batches: always the peer's bytes, so the scope is the partition that carried them. */

export type RecordsErrorCode =
  | 'HG_RECORDS_CORRUPT' // lengths, counts or deltas that contradict each other
  | 'HG_RECORDS_CRC' // the checksum is not that of the bytes
  | 'HG_RECORDS_CODEC' // an unknown codec, or compressed bytes that are not of it
  | 'HG_RECORDS_TOO_LARGE' // inflating would pass the limit

export class RecordsError extends Error {
  override readonly name = 'RecordsError'
  readonly scope = 'request'
  readonly code: RecordsErrorCode
  /** Byte position of the batch in the slice it was read from; -1 when no slice is known (compressed bytes alone). */
  readonly at: number

  constructor(code: RecordsErrorCode, message: string, at = -1, cause?: unknown) {
    super(at < 0 ? message : `batch at byte ${at}: ${message}`, cause === undefined ? undefined : { cause })
    this.code = code
    this.at = at
  }
}

/** The error of a batch whose bytes contradict each other; `at` is the batch's position in its slice. */
export function corrupt(at: number, message: string): RecordsError {
  return new RecordsError('HG_RECORDS_CORRUPT', message, at)
}
