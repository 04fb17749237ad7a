/** Prints decoded frames, one line each, and what could not be read with the bytes around it. */
import { zeroUuid } from '../../protocol/uuid.ts'
import type { Decoded } from './decode.ts'
import type { FoundFrame } from './frames.ts'

const AROUND_BYTES = 16
const LINE_CHARS = 400

export interface Style {
  readonly json: boolean
  /** The whole body, however long; else a line is cut. */
  readonly full: boolean
}

export function formatFrame(frame: FoundFrame, decoded: Decoded, { json, full }: Style): string {
  const { tapped } = frame
  if (json) {
    const when =
      tapped === undefined ? {} : { at: tapped.at, connection: tapped.connection, latencyMs: tapped.latencyMs }
    return JSON.stringify({ ...when, ...decoded })
  }
  const arrow = decoded.direction === 'request' ? '→' : '←'
  const latency = tapped !== undefined && decoded.direction === 'response' ? ` ${tapped.latencyMs.toFixed(1)} ms` : ''
  const client = decoded.clientId === null ? '' : ` ${decoded.clientId}`
  const when = tapped === undefined ? '' : `${new Date(tapped.at).toISOString().slice(11, 23)} #${tapped.connection} `
  const what = `${decoded.api} v${decoded.apiVersion} ${decoded.correlationId}`
  const head = `${when}${arrow} ${what}${client} ${decoded.size} B${latency}`
  const body = decoded.body === undefined ? '' : ` ${compact(decoded.body)}`
  const line = full || head.length + body.length <= LINE_CHARS ? head + body : `${(head + body).slice(0, LINE_CHARS)}…`
  if (decoded.problem === undefined) return line
  const { message, offset } = decoded.problem
  return `${line}\n  cannot read on at offset ${offset}: ${message}\n${bytesAround(frame.bytes, offset)}`
}

/** The bytes before and after an offset, the one at it marked. */
export function bytesAround(bytes: Buffer, offset: number): string {
  const from = Math.max(0, Math.min(offset, bytes.length) - AROUND_BYTES)
  const to = Math.min(bytes.length, offset + AROUND_BYTES)
  const shown: string[] = []
  for (let at = from; at < to; at++) {
    const hex = (bytes[at] ?? 0).toString(16).padStart(2, '0')
    shown.push(at === offset ? `[${hex}]` : hex)
  }
  if (offset >= bytes.length) shown.push('[end]')
  return `  ${String(from).padStart(6)}: ${shown.join(' ')}`
}

/** JSON without quotes around names, and without what has its empty value. */
function compact(value: unknown): string {
  return JSON.stringify(value, (_, entry: unknown) => (isEmpty(entry) ? undefined : entry)).replace(/"(\w+)":/g, '$1:')
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === zeroUuid || (Array.isArray(value) && value.length === 0)
}
