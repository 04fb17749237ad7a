/** A cell is one message in one version: its definition, its codec functions and its name in Kafka's classes. */
import { readDefinitions } from '../../scripts/codegen/definitions.ts'
import type { Definition, Message } from '../../scripts/codegen/model.ts'
import type { AnyCodec } from '../../src/protocol/codecs.ts'
import { codec } from '../../src/protocol/codecs.ts'
import type { Format, RecordCodec } from '../../src/protocol/codec.ts'
import { consumerProtocolAssignment } from '../../src/protocol/generated/data-consumer-protocol-assignment.ts'
import { consumerProtocolSubscription } from '../../src/protocol/generated/data-consumer-protocol-subscription.ts'
import { endTxnMarker } from '../../src/protocol/generated/data-end-txn-marker.ts'
import { recordsByType as offsetRecords } from '../../src/protocol/generated/offsets-registry.ts'
import { recordsByType as transactionRecords } from '../../src/protocol/generated/transactions-registry.ts'
import type { Reader } from '../../src/protocol/reader.ts'
import type { Writer } from '../../src/protocol/writer.ts'

export interface Cell {
  /** Such as `Fetch response v12`. */
  readonly name: string
  readonly message: Message
  readonly version: number
  readonly flexible: boolean
  /** API key; -1 for formats that are no API. */
  readonly key: number
  readonly javaClass: string
  decode(reader: Reader): object
  encode(writer: Writer, value: object): void
}

const formats: readonly Format<object>[] = [consumerProtocolAssignment, consumerProtocolSubscription, endTxnMarker]

/** Every cell of every definition. */
export function allCells(): Cell[] {
  return readDefinitions().flatMap((definition) =>
    definition.messages.flatMap((message) => {
      const cells: Cell[] = []
      for (let version = message.versions.from; version <= message.versions.to; version++) {
        cells.push(cellOf(definition, message, version))
      }
      return cells
    }),
  )
}

/** The same message in another version. */
export function atVersion(cells: readonly Cell[], cell: Cell, version: number): Cell | undefined {
  return cells.find((other) => other.message === cell.message && other.version === version)
}

function cellOf(definition: Definition, message: Message, version: number): Cell {
  return {
    name: `${definition.name} ${message.side} v${version}`,
    message,
    version,
    flexible: version >= message.flexibleFrom,
    key: definition.kind === 'api' ? (definition.key ?? -1) : -1,
    javaClass: javaClass(definition, message),
    ...functions(definition, message, version),
  }
}

function javaClass(definition: Definition, message: Message): string {
  if (definition.kind === 'record') {
    const group = definition.file.startsWith('offsets-') ? 'group' : 'transaction'
    return `org.apache.kafka.coordinator.${group}.generated.${message.name}`
  }
  return `org.apache.kafka.common.message.${message.name}${definition.kind === 'api' ? 'Data' : ''}`
}

function functions(definition: Definition, message: Message, version: number): Pick<Cell, 'decode' | 'encode'> {
  if (definition.kind === 'api') {
    const found: AnyCodec | undefined = codec(definition.key ?? -1)
    if (found === undefined) throw new Error(`${definition.name} has no codec`)
    return message.side === 'request'
      ? {
          decode: (reader) => found.decodeRequest(reader, version),
          encode: (writer, value) => found.encodeRequest(writer, value, version),
        }
      : {
          decode: (reader) => found.decodeResponse(reader, version),
          encode: (writer, value) => found.encodeResponse(writer, value, version),
        }
  }
  if (definition.kind === 'data') {
    const format = formats.find(({ name }) => name === definition.name)
    if (format === undefined) throw new Error(`${definition.name} has no format`)
    return {
      decode: (reader) => format.decode(reader, version),
      encode: (writer, value) => format.encode(writer, value, version),
    }
  }
  return recordFunctions(definition, message, version)
}

function recordFunctions(definition: Definition, message: Message, version: number): Pick<Cell, 'decode' | 'encode'> {
  const records: Readonly<Record<number, RecordCodec<object, object> | undefined>> = definition.file.startsWith(
    'offsets-',
  )
    ? offsetRecords
    : transactionRecords
  const record = records[definition.key ?? -1]
  if (record === undefined) throw new Error(`${definition.name} has no record codec`)
  if (message.side === 'key') {
    return {
      decode: (reader) => record.decodeKey(reader),
      encode: (writer, value) => record.encodeKey(writer, value),
    }
  }
  return {
    decode: (reader) => record.decodeValue(reader, version),
    encode: (writer, value) => record.encodeValue(writer, value, version),
  }
}
