/** Whole frames made and opened with the generated codecs. */
import { responseHeaderVersion } from '../../src/protocol/api-table.ts'
import { codec } from '../../src/protocol/codecs.ts'
import { encodeRequestHeader } from '../../src/protocol/headers.ts'
import { Reader } from '../../src/protocol/reader.ts'
import { Writer } from '../../src/protocol/writer.ts'
import { sized } from './frames.ts'

function codecOf(apiKey: number) {
  const found = codec(apiKey)
  if (found === undefined) throw new Error(`no codec for api ${apiKey}`)
  return found
}

/** The body alone, without size and header. */
export function responseBody(apiKey: number, version: number, draft: object): Buffer {
  const writer = new Writer(1024)
  codecOf(apiKey).encodeResponse(writer, draft, version)
  return Buffer.from(writer.finish())
}

export function codecResponse(apiKey: number, version: number, correlationId: number, draft: object): Buffer {
  const writer = new Writer(1024)
  writer.int32(0)
  writer.int32(correlationId)
  if (responseHeaderVersion(apiKey, version) === 1) writer.uvarint(0)
  codecOf(apiKey).encodeResponse(writer, draft, version)
  return sized(Buffer.from(writer.finish()))
}

export function codecRequest(
  apiKey: number,
  version: number,
  correlationId: number,
  draft: object,
  clientId: string | null = 'test',
): Buffer {
  const writer = new Writer(1024)
  writer.int32(0)
  encodeRequestHeader(writer, { apiKey, apiVersion: version, correlationId, clientId })
  codecOf(apiKey).encodeRequest(writer, draft, version)
  return sized(Buffer.from(writer.finish()))
}

/** Decodes a whole response frame, to its last byte. */
export function openResponse(apiKey: number, version: number, frame: Buffer): object {
  const reader = new Reader(frame, 8)
  if (responseHeaderVersion(apiKey, version) === 1) reader.skipTags()
  const body = codecOf(apiKey).decodeResponse(reader, version)
  reader.expectEnd()
  return body
}
