/** The messages of one conversation, written and read in a Fetch version, as they would travel. */
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import type { FetchRequest, FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'

const api = codec(apiKeys.Fetch)

export function requestOnWire(request: Parameters<typeof api.encodeRequest>[1], version: number): FetchRequest {
  const writer = new Writer(256)
  api.encodeRequest(writer, request, version)
  const bytes = writer.finish()
  return api.decodeRequest(new Reader(bytes, 0, bytes.length), version)
}

export function responseOnWire(response: Parameters<typeof api.encodeResponse>[1], version: number): FetchResponse {
  const writer = new Writer(256)
  api.encodeResponse(writer, response, version)
  const bytes = writer.finish()
  return api.decodeResponse(new Reader(bytes, 0, bytes.length), version)
}
