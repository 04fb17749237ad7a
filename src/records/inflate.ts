/** Inflating the records of an entry, with errors that name the entry. */
import { codecOf } from './batch.ts'
import { decompress } from './compression/decompress.ts'
import { RecordsError } from './errors.ts'

/**
 * `bytes[from, end)` of the entry at `at`, inflated with the entry's codec.
 * @throws RecordsError with codes HG_RECORDS_CODEC, HG_RECORDS_TOO_LARGE.
 */
export function inflate(bytes: Buffer, from: number, end: number, at: number, maxBytes: number): Buffer {
  try {
    return decompress(codecOf(bytes, at), bytes.subarray(from, end), maxBytes)
  } catch (error) {
    if (error instanceof RecordsError && error.at < 0) throw new RecordsError(error.code, error.message, at, error)
    throw error
  }
}
