/** Why connections end: what a socket error means for the connection it belongs to, and how it is logged. */
import { ProtocolError } from '../protocol/errors.ts'
import type { CloseReason } from '../telemetry/meter.ts'
import type { Connection } from './connection.ts'

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

/**
 * @param fromNetwork the reason if it is the network's doing; anything else is a malformed message, or a bug of ours
 */
export function closeReasonOf(
  error: NodeJS.ErrnoException,
  fromNetwork: CloseReason,
  malformed: CloseReason = 'malformed_request',
): CloseReason {
  if (error instanceof ProtocolError) return malformed
  return error.code !== undefined && network.has(error.code) ? fromNetwork : 'internal_error'
}

/** What is a matter of course, and not worth a warning. */
const normal: ReadonlySet<CloseReason> = new Set([
  'client_closed',
  'broker_closed',
  'idle_timeout',
  'drained',
  'shutdown',
])

/** One line for the end of a connection. */
export function logClose(connection: Connection, reason: CloseReason, detail: string): void {
  const { log, runtime } = connection.context
  const fields = {
    connection: connection.id,
    listener: connection.listener,
    node: connection.nodeId,
    client: `${connection.client.remoteAddress}:${connection.client.remotePort}`,
    clientId: connection.clientId,
    reason,
    requests: connection.requestCount,
    seconds: Math.round(runtime.now() - connection.openedAt) / 1000,
    ...(detail === '' ? {} : { detail }),
  }
  if (normal.has(reason)) log.info(fields, 'connection closed')
  else log.warn(fields, `connection closed: ${detail === '' ? reason : detail}`)
}

export function describeError(error: NodeJS.ErrnoException): string {
  return error.code === undefined ? error.message : `${error.code} (${error.message})`
}
