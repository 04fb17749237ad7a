/** What has taken too long on a connection. */
import type { FrameReader } from '../net/frame-reader.ts'
import type { CloseReason } from '../telemetry/meter.ts'
import type { ConnectionLimits } from './connection.ts'

export interface Overdue {
  readonly reason: CloseReason
  readonly detail: string
}

/** A client that has begun a request and does not go on with it. */
export function slowClient(reader: FrameReader, limits: ConnectionLimits, now: number): Overdue | undefined {
  if (!reader.incomplete) return undefined
  const { headerTimeoutMs, progressTimeoutMs } = limits
  if (reader.waitsForHeader && now - reader.partialSince > headerTimeoutMs)
    return {
      reason: 'progress_timeout',
      detail: `the client sent less than a request's header in ${headerTimeoutMs} ms`,
    }
  if (now - reader.lastByteAt > progressTimeoutMs)
    return { reason: 'progress_timeout', detail: `no byte of a begun request in ${progressTimeoutMs} ms` }
  return undefined
}

/** A broker that has begun an answer and does not go on with it. */
export function slowBroker(reader: FrameReader, limits: ConnectionLimits, now: number): Overdue | undefined {
  const { progressTimeoutMs } = limits
  if (!reader.incomplete || now - reader.lastByteAt <= progressTimeoutMs) return undefined
  return { reason: 'progress_timeout', detail: `no byte of a begun answer in ${progressTimeoutMs} ms` }
}
