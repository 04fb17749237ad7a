/** Recognises what people send to a Kafka port by mistake, so that the log can say what to change. */
import type { CloseReason } from '../telemetry/meter.ts'

export interface Stranger {
  readonly reason: CloseReason
  readonly detail: string
  /** What to say before closing. */
  readonly answer?: Buffer
}

const methods = ['GET ', 'HEAD', 'POST', 'PUT ', 'DELE', 'OPTI', 'PATC', 'CONN', 'PRI ']

/** @param bytes the first bytes of what should be a frame, at `at`; as many as have come */
export function recognise(bytes: Buffer, at: number, available: number): Stranger | undefined {
  if (available < 4) return undefined
  if (bytes[at] === 0x16 && bytes[at + 1] === 0x03)
    return {
      reason: 'tls_on_plain_port',
      detail:
        'a TLS handshake on a plaintext listener: set security.protocol=PLAINTEXT (or SASL_PLAINTEXT) in the client',
    }
  if (methods.includes(bytes.toString('latin1', at, at + 4)))
    return {
      reason: 'http_on_kafka_port',
      detail: 'an HTTP request on a Kafka port: the admin port serves HTTP (admin.bind)',
      answer: Buffer.from(
        'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n' +
          'This port speaks the Kafka protocol. Headgate serves HTTP on its admin port.\n',
      ),
    }
  return undefined
}
