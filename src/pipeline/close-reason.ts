/** What a socket error means for the connection it belongs to. */
import { ProtocolError } from '../protocol/errors.ts'
import type { CloseReason } from '../telemetry/meter.ts'

const network: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ERR_STREAM_WRITE_AFTER_END',
  'ERR_STREAM_DESTROYED',
])

/** @param network_ the reason if it is the network's doing; anything else is a bug of ours (or a malformed message) */
export function closeReasonOf(error: NodeJS.ErrnoException, fromNetwork: CloseReason): CloseReason {
  if (error instanceof ProtocolError) return 'malformed_request'
  return error.code !== undefined && network.has(error.code) ? fromNetwork : 'internal_error'
}
