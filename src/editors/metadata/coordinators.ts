/** Coordinator addresses in FindCoordinator answers: one at the top level before v4, a list from v4 on (KIP-699). */
import type { Reader } from '../../protocol/reader.ts'
import { Writer } from '../../protocol/writer.ts'
import type { Target } from '../../pipeline/connection.ts'
import type { Frame } from '../../pipeline/frame.ts'
import type { KnownBroker } from '../addresses.ts'
import type { Rewritten } from './editor.ts'

/** A broker named by an answer, and the bytes of its node id, host and port. */
interface Place extends KnownBroker {
  readonly from: number
  readonly to: number
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
      places.push(place(reader, flexible))
      reader.int16() // error
      reader.compactNullableString()
      reader.skipTags()
    }
  } else {
    reader.int16() // error
    if (version >= 1) skipText(reader, flexible)
    places.push(place(reader, flexible))
  }
  const named = places.filter((broker) => broker.nodeId >= 0) // −1 with an empty host goes with an error
  return { seen: named, build: () => build(frame, named, flexible, address) }
}

function place(reader: Reader, flexible: boolean): Place {
  const from = reader.at
  const nodeId = reader.int32()
  const host = flexible ? reader.compactString() : reader.string()
  const port = reader.int32()
  return { nodeId, host, port, from, to: reader.at }
}

function skipText(reader: Reader, flexible: boolean): void {
  if (flexible) reader.compactNullableString()
  else reader.nullableString()
}

function build(
  frame: Frame,
  places: readonly Place[],
  flexible: boolean,
  address: (nodeId: number) => Target | undefined,
): Buffer {
  const writer = new Writer(frame.total + 64)
  let at = frame.at
  for (const broker of places) {
    writer.raw(frame.bytes.subarray(at, broker.from))
    const shown = address(broker.nodeId) ?? { host: '', port: -1 }
    writer.int32(broker.nodeId)
    if (flexible) writer.compactString(shown.host)
    else writer.string(shown.host)
    writer.int32(shown.port)
    at = broker.to
  }
  writer.raw(frame.bytes.subarray(at, frame.at + frame.total))
  const built = writer.finish()
  built.writeInt32BE(built.length - 4, 0)
  return built
}
