/**
 * The brokers in an answer, replaced by what clients are to see, without decoding the rest: the list stands near the
 * front of Metadata and DescribeCluster, so everything behind it (thousands of topics) is copied as it is.
 */
import { ProtocolError } from '../../protocol/errors.ts'
import type { Reader } from '../../protocol/reader.ts'
import type { Writer } from '../../protocol/writer.ts'
import type { Target } from '../../pipeline/connection.ts'
import type { KnownBroker } from '../addresses.ts'

/** Endpoint type in DescribeCluster v1+. */
const CONTROLLERS = 2

/** A broker in an answer, and where the fields behind its port (rack, flags, tags) lie. */
export interface ListedBroker extends KnownBroker {
  readonly restFrom: number
  readonly restTo: number
}

/** Where the list is in the answer's bytes. */
export interface BrokerList {
  readonly from: number
  readonly to: number
  readonly flexible: boolean
  readonly brokers: readonly ListedBroker[]
  /** These are the controllers' own addresses (KIP-919): of no use to clients of brokers, and nothing to learn from. */
  readonly controllers: boolean
}

/** Reads a list of brokers at the reader's position; `skipRest` passes over what follows each port. */
export function readBrokerList(
  reader: Reader,
  flexible: boolean,
  skipRest: () => void,
  controllers = false,
): BrokerList {
  const from = reader.at
  const count = flexible ? reader.compactCount(10) : reader.count(10)
  const brokers: ListedBroker[] = []
  for (let i = 0; i < count; i++) {
    const nodeId = reader.int32()
    const host = flexible ? reader.compactString() : reader.string()
    const port = reader.int32()
    const restFrom = reader.at
    skipRest()
    brokers.push({ nodeId, host, port, restFrom, restTo: reader.at })
  }
  return { from, to: reader.at, flexible, brokers, controllers }
}

/** Writes the list with other addresses; a broker without one is left out. */
export function writeBrokerList(
  writer: Writer,
  list: BrokerList,
  source: Buffer,
  advertised: (nodeId: number) => Target | undefined,
): void {
  const shown = list.brokers.flatMap((broker) => {
    const address = advertised(broker.nodeId)
    return address === undefined ? [] : [{ broker, address }]
  })
  if (list.flexible) writer.uvarint(shown.length + 1)
  else writer.int32(shown.length)
  for (const { broker, address } of shown) {
    writer.int32(broker.nodeId)
    if (list.flexible) writer.compactString(address.host)
    else writer.string(address.host)
    writer.int32(address.port)
    writer.raw(source.subarray(broker.restFrom, broker.restTo))
  }
}

/** Where the list of a Metadata answer is. */
export function metadataBrokers(reader: Reader, version: number): BrokerList {
  const flexible = version >= 9
  if (version >= 3) reader.int32() // throttle time
  return readBrokerList(reader, flexible, () => {
    if (version >= 1) skipNullableString(reader, flexible) // rack
    if (flexible) reader.skipTags()
  })
}

/** Where the list of a DescribeCluster answer is. */
export function clusterBrokers(reader: Reader, version: number): BrokerList {
  reader.int32() // throttle time
  reader.int16() // error
  reader.compactNullableString()
  const controllers = version >= 1 && reader.int8() === CONTROLLERS
  reader.compactString() // cluster id
  reader.int32() // controller id
  const skipRest = (): void => {
    reader.compactNullableString() // rack
    if (version >= 2) reader.bool() // fenced
    reader.skipTags()
  }
  return readBrokerList(reader, true, skipRest, controllers)
}

function skipNullableString(reader: Reader, flexible: boolean): void {
  if (flexible) reader.compactNullableString()
  else reader.nullableString()
}

/** Whether an error says that bytes could not be read, and not that the code is wrong. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof ProtocolError
}
