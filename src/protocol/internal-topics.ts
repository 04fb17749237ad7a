/**
 * Records of `__consumer_offsets` and `__transaction_state`, for inspection. The int16 in front of a key is the record's
 * type, the one in front of a value its version. A type or version that is not known is shown as bytes, not an error:
 * brokers add types in every release.
 */
import type { RecordCodec } from './codec.ts'
import { recordsByType as offsets } from './generated/offsets-registry.ts'
import { recordsByType as transactions } from './generated/transactions-registry.ts'
import { Reader } from './reader.ts'

export interface InternalRecord {
  /** Such as `OffsetCommit`; `type 99` for one that is not known. */
  readonly name: string
  readonly type: number
  /** Decoded; undefined when the type is not known. */
  readonly key: object | undefined
  /** Version of the value; undefined for a deletion. */
  readonly version: number | undefined
  /** Decoded; null for a deletion; undefined when type or version is not known. */
  readonly value: object | null | undefined
}

type AnyRecord = RecordCodec<object, object>

const tables: Readonly<Record<string, Readonly<Record<number, AnyRecord | undefined>>>> = {
  __consumer_offsets: offsets,
  __transaction_state: transactions,
}

/** Whether {@link decodeInternalRecord} knows this topic. */
export function isInternalTopic(topic: string): boolean {
  return Object.hasOwn(tables, topic)
}

/** Decodes one record of an internal topic; throws ProtocolError on damaged bytes of a known type and version. */
export function decodeInternalRecord(topic: string, keyBytes: Buffer, valueBytes: Buffer | null): InternalRecord {
  const keyReader = new Reader(keyBytes)
  const type = keyReader.int16()
  const codec = tables[topic]?.[type]
  if (codec === undefined) {
    const version = valueBytes === null || valueBytes.length < 2 ? undefined : valueBytes.readInt16BE(0)
    return { name: `type ${type}`, type, key: undefined, version, value: valueBytes === null ? null : undefined }
  }
  const key = codec.decodeKey(keyReader)
  if (valueBytes === null) return { name: codec.name, type, key, version: undefined, value: null }
  const valueReader = new Reader(valueBytes)
  const version = valueReader.int16()
  const known = version >= codec.minVersion && version <= codec.maxVersion
  return { name: codec.name, type, key, version, value: known ? codec.decodeValue(valueReader, version) : undefined }
}
