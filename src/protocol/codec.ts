/** What every generated codec looks like, and the few things the generated code calls. */
import { ProtocolError } from './errors.ts'
import type { Reader, UnknownTag } from './reader.ts'
import type { Writer } from './writer.ts'

/**
 * What encoding accepts: every field may be absent and then has its default, and nothing is changed. A field that the
 * version does not have is dropped when Kafka calls it ignorable, and is an error when it holds more than its default.
 */
export type Draft<T> = T extends string | number | boolean | bigint | null | undefined
  ? T
  : T extends Uint8Array
    ? Uint8Array
    : T extends UnknownTag
      ? UnknownTag
      : T extends readonly (infer E)[]
        ? readonly Draft<E>[]
        : { readonly [K in keyof T]?: Draft<T[K]> | undefined }

/** Request and response of one API. Decoders leave the reader behind the last field; bytes may follow. */
export interface Codec<Request, Response> {
  readonly key: number
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  decodeRequest(reader: Reader, version: number): Request
  encodeRequest(writer: Writer, value: Draft<Request>, version: number): void
  decodeResponse(reader: Reader, version: number): Response
  encodeResponse(writer: Writer, value: Draft<Response>, version: number): void
}

/** What one record type of an internal topic holds. The int16 in front of a key is the type, in front of a value its version. */
export interface RecordCodec<Key, Value> {
  readonly type: number
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  decodeKey(reader: Reader): Key
  encodeKey(writer: Writer, key: Draft<Key>): void
  decodeValue(reader: Reader, version: number): Value
  encodeValue(writer: Writer, value: Draft<Value>, version: number): void
}

/** A versioned format that is no API: it travels inside group messages or control records, behind an int16 version. */
export interface Format<Value> {
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
  decode(reader: Reader, version: number): Value
  encode(writer: Writer, value: Draft<Value>, version: number): void
}

export const none: readonly never[] = []
export const nothing = {}
export const noBytes = Buffer.alloc(0)

export function checkVersion(subject: string, version: number, min: number, max: number): void {
  if (version >= min && version <= max) return
  throw new ProtocolError('HG_PROTOCOL_VERSION', `version ${version} is not in ${min}-${max}`, -1, '', subject)
}

/** Adds to an error where it happened: which field of which message. */
export function explain(reader: Reader, error: unknown, fields: readonly string[], subject: string): unknown {
  if (!(error instanceof ProtocolError)) return error
  return error.locate(fieldAt(fields[reader.field] ?? '', reader, error), subject)
}

/** Which field of a run (`a:4,b:2`) the error is in: a run is claimed at once, so its end or the error's place tells. */
function fieldAt(entry: string, reader: Reader, error: ProtocolError): string {
  const parts = entry.split(',').map((part) => part.split(':'))
  const total = parts.reduce((sum, [, bytes]) => sum + Number(bytes ?? 0), 0)
  const truncated = error.code === 'HG_PROTOCOL_TRUNCATED'
  let left = truncated ? reader.end - reader.at : error.offset - (reader.at - total)
  for (const [path = '', bytes = '0'] of parts) {
    left -= Number(bytes)
    if (left < 0 || parts.length === 1) return path
  }
  return parts.at(-1)?.[0] ?? ''
}
