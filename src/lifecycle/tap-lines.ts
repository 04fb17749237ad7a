/** The frames that pass as JSON lines, for the admin port; `headgate inspect` decodes them on its side. */
import type { LineStream } from '../admin/router.ts'
import type { Tap, TappedFrame } from '../pipeline/tap.ts'
import { apiName } from '../protocol/api-table.ts'

/** One line of `/api/tap`. */
export interface TapLine {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly direction: 'request' | 'response'
  readonly connection: number
  readonly listener: string
  readonly node: number
  readonly client: string
  readonly clientId: string | null
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  /** Bytes of the whole frame; `frame` may be less. */
  readonly size: number
  readonly latencyMs: number
  /** The frame in base64, size field included. */
  readonly frame: string
}

/** @param filter `client`: client id; `api`: names, separated by commas */
export function tapLines(tap: Tap, filter: URLSearchParams, wallNow: () => number): (lines: LineStream) => void {
  const client = filter.get('client')
  const names = filter.get('api')?.toLowerCase().split(',')
  return (lines) => {
    let dropped = 0
    const stop = tap.listen({
      wants: ({ connection, apiKey }) =>
        (client === null || connection.clientId === client) &&
        (names === undefined || names.includes(apiName(apiKey).toLowerCase())),
      onFrame: (frame) => {
        if (dropped > 0 && lines.send(JSON.stringify({ dropped }))) dropped = 0
        if (dropped > 0 || !lines.send(JSON.stringify(toLine(frame, wallNow())))) dropped++
      },
    })
    lines.onEnd(stop)
  }
}

function toLine({ direction, exchange, bytes, total, latencyMs }: TappedFrame, at: number): TapLine {
  const { connection, apiKey, apiVersion, correlationId } = exchange
  return {
    at,
    direction,
    connection: connection.id,
    listener: connection.listener,
    node: connection.nodeId,
    client: `${connection.remoteAddress}:${connection.client.remotePort}`,
    clientId: connection.clientId,
    apiKey,
    apiVersion,
    correlationId,
    size: total,
    latencyMs: Math.round(latencyMs * 1000) / 1000,
    frame: bytes.toString('base64'),
  }
}
