/**
 * Messages and whole frames as bytes of their own. One writer is kept for all of them: what it wrote is copied out in
 * exactly its size, so that growing buffers is not paid per message. Encoders call nobody else, so it is never shared
 * by two messages at once.
 */
import type { Codec, Draft } from './codec.ts'
import type { RequestHeader } from './headers.ts'
import { encodeRequestHeader, encodeResponseHeader } from './headers.ts'
import { Writer } from './writer.ts'

const FIRST_CAPACITY_BYTES = 16 * 1024
/** A message larger than this gives its buffer back to the garbage collector. */
const KEPT_CAPACITY_BYTES = 2 * 1024 * 1024

let scratch = new Writer(FIRST_CAPACITY_BYTES)

function start(): Writer {
  if (scratch.buffer.length > KEPT_CAPACITY_BYTES) scratch = new Writer(FIRST_CAPACITY_BYTES)
  scratch.reset()
  return scratch
}

function copyOut(writer: Writer): Buffer {
  const bytes = Buffer.allocUnsafe(writer.at)
  writer.buffer.copy(bytes, 0, 0, writer.at)
  return bytes
}

/** A request's body. Throws ProtocolError for a value that this version cannot hold. */
export function requestBytes<Request>(codec: Codec<Request, unknown>, value: Draft<Request>, version: number): Buffer {
  const writer = start()
  codec.encodeRequest(writer, value, version)
  return copyOut(writer)
}

/** A response's body. Throws ProtocolError for a value that this version cannot hold. */
export function responseBytes<Response>(
  codec: Codec<unknown, Response>,
  value: Draft<Response>,
  version: number,
): Buffer {
  const writer = start()
  codec.encodeResponse(writer, value, version)
  return copyOut(writer)
}

/** A whole request frame: size, header and body. The codec's version is the header's. */
export function requestFrame<Request>(
  header: RequestHeader,
  codec: Codec<Request, unknown>,
  value: Draft<Request>,
): Buffer {
  const writer = start()
  writer.int32(0)
  encodeRequestHeader(writer, header)
  codec.encodeRequest(writer, value, header.apiVersion)
  writer.int32At(0, writer.at - 4)
  return copyOut(writer)
}

/** A whole request frame around a body that is encoded already. */
export function requestFrameOf(header: RequestHeader, body: Uint8Array): Buffer {
  const writer = start()
  writer.int32(0)
  encodeRequestHeader(writer, header)
  writer.raw(body)
  writer.int32At(0, writer.at - 4)
  return copyOut(writer)
}

/** A whole response frame: size, header and body. */
export function responseFrame<Response>(
  correlationId: number,
  codec: Codec<unknown, Response>,
  value: Draft<Response>,
  version: number,
): Buffer {
  const writer = start()
  writer.int32(0)
  encodeResponseHeader(writer, { correlationId }, codec.key, version)
  codec.encodeResponse(writer, value, version)
  writer.int32At(0, writer.at - 4)
  return copyOut(writer)
}
