/**
 * Errors of the wire layer. Every failure to read or write Kafka bytes is a ProtocolError with a stable code, the
 * offset where it stopped and, when it came out of a generated codec, the field it was at.
 */

export type ProtocolErrorCode =
  | 'HG_PROTOCOL_TRUNCATED' // the bytes end inside a field
  | 'HG_PROTOCOL_LENGTH' // a length or count that is negative or larger than what remains
  | 'HG_PROTOCOL_NULL' // null where this version allows none
  | 'HG_PROTOCOL_VARINT' // a varint longer than its type
  | 'HG_PROTOCOL_INT64' // a 64-bit number that JavaScript cannot hold exactly
  | 'HG_PROTOCOL_TAG' // a tagged field whose size does not match its content
  | 'HG_PROTOCOL_TRAILING' // bytes left over after the last field
  | 'HG_PROTOCOL_VERSION' // a version that this codec does not know
  | 'HG_PROTOCOL_VALUE' // a value that cannot be written (ours to fix, not the peer's)

/** The bytes, or the value to be written, break the Kafka protocol. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ProtocolErrorCode
  /** Absolute position in the buffer that was read or written; -1 where there is none. */
  readonly offset: number
  /** Path of the field, such as `topics[].partitions[].records`; empty where unknown. */
  field: string
  /** What was being read, such as `Fetch response v12`; empty where unknown. */
  subject: string
  private readonly detail: string

  constructor(code: ProtocolErrorCode, detail: string, offset = -1, field = '', subject = '') {
    super(describe(detail, offset, field, subject))
    this.code = code
    this.detail = detail
    this.offset = offset
    this.field = field
    this.subject = subject
  }

  /** Names the field and the message; the first caller that knows wins. */
  locate(field: string, subject: string): this {
    if (this.field === '') this.field = field
    if (this.subject === '') this.subject = subject
    this.message = describe(this.detail, this.offset, this.field, this.subject)
    return this
  }
}

function describe(detail: string, offset: number, field: string, subject: string): string {
  const where = [subject, field === '' ? '' : `field ${field}`, offset < 0 ? '' : `offset ${offset}`]
  const place = where.filter((part) => part !== '').join(', ')
  return place === '' ? detail : `${detail} (${place})`
}
