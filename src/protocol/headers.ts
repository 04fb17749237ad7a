/**
 * Request and response headers (the bytes between a frame's size and its body). The client id stays a plain nullable
 * string even in the flexible header, so that a broker can read it before it knows the version.
 */
import { requestHeaderVersion, responseHeaderVersion } from './api-table.ts'
import type { Reader, UnknownTag } from './reader.ts'
import type { Writer } from './writer.ts'

export interface RequestHeader {
  readonly apiKey: number
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
  readonly unknownTags?: readonly UnknownTag[]
}

export interface ResponseHeader {
  readonly correlationId: number
  readonly unknownTags?: readonly UnknownTag[]
}

/** Reads a request header; the reader then stands at the body. */
export function decodeRequestHeader(reader: Reader): RequestHeader {
  const apiKey = reader.int16()
  const apiVersion = reader.int16()
  const correlationId = reader.int32()
  const headerVersion = requestHeaderVersion(apiKey, apiVersion)
  const clientId = headerVersion === 0 ? null : reader.nullableString()
  const unknownTags = headerVersion === 2 ? reader.unknownTags() : undefined
  if (unknownTags === undefined) return { apiKey, apiVersion, correlationId, clientId }
  return { apiKey, apiVersion, correlationId, clientId, unknownTags }
}

export function encodeRequestHeader(writer: Writer, header: RequestHeader): void {
  const headerVersion = requestHeaderVersion(header.apiKey, header.apiVersion)
  writer.int16(header.apiKey)
  writer.int16(header.apiVersion)
  writer.int32(header.correlationId)
  if (headerVersion >= 1) writer.nullableString(header.clientId)
  if (headerVersion === 2) writer.unknownTags(header.unknownTags)
}

/** Reads the header of the response to a request of this API and version; the reader then stands at the body. */
export function decodeResponseHeader(reader: Reader, apiKey: number, apiVersion: number): ResponseHeader {
  const correlationId = reader.int32()
  const unknownTags = responseHeaderVersion(apiKey, apiVersion) === 1 ? reader.unknownTags() : undefined
  return unknownTags === undefined ? { correlationId } : { correlationId, unknownTags }
}

export function encodeResponseHeader(writer: Writer, header: ResponseHeader, apiKey: number, apiVersion: number): void {
  writer.int32(header.correlationId)
  if (responseHeaderVersion(apiKey, apiVersion) === 1) writer.unknownTags(header.unknownTags)
}
