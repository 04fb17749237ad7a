/** Coordinator addresses in FindCoordinator answers: one at the top level before v4, a list from v4 on (KIP-699). */
import { errorCodes } from '../../protocol/error-codes.ts'
import type { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Target } from '../../pipeline/connection.ts'
import type { Frame } from '../../pipeline/frame.ts'
import type { KnownBroker } from '../addresses.ts'
import type { Rewritten } from './rewritten.ts'

/** A broker named by an answer, the bytes of its node id, host and port, and where its error code is. */
interface Place extends KnownBroker {
  readonly from: number
  readonly to: number
  readonly errorAt: number
}

export function rewriteCoordinators(
  frame: Frame,
  reader: Reader,
  version: number,
  address: (nodeId: number) => Target | undefined,
): Rewritten {
  const flexible = version >= 3
  if (version >= 1) reader.int32() // throttle time
  const places: Place[] = []
  if (version >= 4) {
    for (let left = reader.compactCount(13); left > 0; left--) {
      reader.compactString() // key
      places.push(place(reader, flexible, undefined))
      reader.int16() // error
      reader.compactNullableString()
      reader.skipTags()
    }
  } else {
    const errorAt = reader.at
    reader.int16()
    if (version >= 1) skipText(reader, flexible)
    places.push(place(reader, flexible, errorAt))
  }
  const named = places.filter((broker) => broker.nodeId >= 0) // −1 with an empty host goes with an error
  return { seen: named, build: () => build(frame, named, flexible, address) }
}

/** @param errorAt where the error code is, if not right behind */
function place(reader: Reader, flexible: boolean, errorAt: number | undefined): Place {
  const from = reader.at
  const nodeId = reader.int32()
  const host = flexible ? reader.compactString() : reader.string()
  const port = reader.int32()
  return { nodeId, host, port, from, to: reader.at, errorAt: errorAt ?? reader.at }
}

function skipText(reader: Reader, flexible: boolean): void {
  if (flexible) reader.compactNullableString()
  else reader.nullableString()
}

/** A coordinator that cannot be given an address is one that is not available: clients ask again. */
function build(
  frame: Frame,
  places: readonly Place[],
  flexible: boolean,
  address: (nodeId: number) => Target | undefined,
): Buffer {
  const source = Buffer.from(frame.bytes.subarray(frame.at, frame.at + frame.total))
  const writer = new Writer(frame.total + 64)
  const shown = places.map((broker) => address(broker.nodeId))
  for (const [i, broker] of places.entries())
    if (shown[i] === undefined) source.writeInt16BE(errorCodes.COORDINATOR_NOT_AVAILABLE, broker.errorAt - frame.at)
  let at = 0
  for (const [i, broker] of places.entries()) {
    writer.raw(source.subarray(at, broker.from - frame.at))
    const { host, port } = shown[i] ?? { host: '', port: -1 }
    writer.int32(shown[i] === undefined ? -1 : broker.nodeId)
    if (flexible) writer.compactString(host)
    else writer.string(host)
    writer.int32(port)
    at = broker.to - frame.at
  }
  writer.raw(source.subarray(at))
  const built = writer.finish()
  built.writeInt32BE(built.length - 4, 0)
  return built
}
