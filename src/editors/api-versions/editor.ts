/**
 * ApiVersions: each connection is told what its own broker and Headgate both know. A request newer than Headgate is
 * answered as a broker does, with error 35 in the body of version 0 (KIP-511); franz-go 1.22 opens with v5. The
 * request also names the client's software.
 */
import { apiByKey, apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { responseFrame } from '../../protocol/encode.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { frameOf } from '../../pipeline/frame.ts'
import type { Handler, Interest, Verdict } from '../../pipeline/handler.ts'
import { intersect } from './intersect.ts'

const api = codec(apiKeys.ApiVersions)

export class ApiVersionsEditor implements Handler {
  readonly name = 'api-versions'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.ApiVersions, side: 'request', depth: 'full' },
    { apiKey: apiKeys.ApiVersions, side: 'response', depth: 'full' },
  ]

  onRequest(exchange: Exchange): Verdict {
    if (exchange.apiVersion > api.maxVersion) return { kind: 'answer', frame: frameOf(unsupportedVersion()) }
    this.introduce(exchange)
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const { response, apiVersion } = exchange
    if (response === undefined) return undefined
    const bodyAt = response.at + 8
    // A broker that does not know the version answers in version 0.
    const reader = new Reader(response.bytes, bodyAt, response.at + response.total)
    try {
      const version = reader.int16() === errorCodes.UNSUPPORTED_VERSION ? 0 : apiVersion
      reader.at = bodyAt
      const broker = api.decodeResponse(reader, version)
      exchange.response = frameOf(responseFrame(0, api, intersect(broker), version))
      return undefined
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      exchange.connection.context.meter.undecodable(exchange.apiKey, apiVersion)
      return { kind: 'close', reason: 'malformed_response', detail: error.message }
    }
  }

  private introduce(exchange: Exchange): void {
    const { request, apiVersion, connection } = exchange
    const bodyAt = exchange.requestBodyAt()
    if (request === undefined || bodyAt < 0 || apiVersion < 3 || connection.instance === undefined) return
    try {
      const body = api.decodeRequest(new Reader(request.bytes, bodyAt, request.at + request.total), apiVersion)
      connection.instance.softwareName = body.clientSoftwareName
      connection.instance.softwareVersion = body.clientSoftwareVersion
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error // the broker refuses it
    }
  }
}

/** Error 35 and the range of ApiVersions itself, in version 0, as brokers send it. */
function unsupportedVersion(): Buffer {
  const { minVersion = 0, maxVersion = 0 } = apiByKey(apiKeys.ApiVersions) ?? {}
  const body = {
    errorCode: errorCodes.UNSUPPORTED_VERSION,
    apiKeys: [{ apiKey: apiKeys.ApiVersions, minVersion, maxVersion }],
  }
  return responseFrame(0, api, body, 0)
}
