/** Decodes one frame: which message it is, and its body with records as counts and sizes. */
import { apiByKey, apiKeys, apiName } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { peekBodyStart, peekClientId, peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { FoundFrame } from './frames.ts'
import { layoutBytes, requestHead, responseHead } from './layouts.ts'
import { describeRecords } from './records.ts'

/** Which message a response answers: it does not say so itself. */
export interface Asked {
  readonly apiKey: number
  readonly apiVersion: number
}

export interface Decoded {
  readonly direction: 'request' | 'response'
  readonly api: string
  readonly apiVersion: number
  readonly correlationId: number
  readonly clientId: string | null
  /** Bytes of the whole frame. */
  readonly size: number
  readonly body: unknown
  /** Names of topics anywhere in the body. */
  readonly topics: readonly string[]
  /** Why the body, or part of it, is missing. */
  readonly problem?: { readonly message: string; readonly offset: number }
}

/** Knows what was asked on each connection, so that responses can be read. */
export class FrameDecoder {
  private readonly asked = new Map<string, Asked & { clientId: string | null }>()
  private readonly assume: Asked | undefined
  private readonly withRecords: boolean

  /** @param assume what responses answer whose request was not seen */
  constructor(assume: Asked | undefined, withRecords: boolean) {
    this.assume = assume
    this.withRecords = withRecords
  }

  decode(frame: FoundFrame): Decoded {
    const isResponse = frame.direction === 'response' || (frame.direction === undefined && this.assume !== undefined)
    return isResponse ? this.response(frame) : this.request(frame)
  }

  private request(frame: FoundFrame): Decoded {
    const { bytes } = frame
    if (bytes.length < layoutBytes.request) return unreadable('request', frame, 'the frame is shorter than its header')
    const head = requestHead.parse(bytes)
    const clientId = peekClientId(bytes, 4, bytes.length)
    this.asked.set(this.key(frame, head.correlationId), {
      apiKey: head.apiKey,
      apiVersion: head.apiVersion,
      clientId,
    })
    const bodyAt = peekBodyStart(bytes, 4, bytes.length)
    return this.body('request', frame, head, head.correlationId, clientId, bodyAt)
  }

  private response(frame: FoundFrame): Decoded {
    const { bytes, tapped } = frame
    if (bytes.length < layoutBytes.response)
      return unreadable('response', frame, 'the frame is shorter than its header')
    const correlationId = tapped?.correlationId ?? responseHead.parse(bytes).correlationId
    const key = this.key(frame, correlationId)
    const asked = this.asked.get(key)
    this.asked.delete(key)
    const message = tapped ?? asked ?? this.assume
    if (message === undefined) {
      const hint = 'its request is not here; say what it answers with --as Fetch:12'
      return unreadable('response', frame, hint, correlationId)
    }
    const bodyAt = peekResponseBodyStart(message.apiKey, message.apiVersion, bytes, 4, bytes.length)
    return this.body('response', frame, message, correlationId, tapped?.clientId ?? asked?.clientId ?? null, bodyAt)
  }

  private key(frame: FoundFrame, correlationId: number): string {
    return `${frame.tapped?.connection ?? 0}/${correlationId}`
  }

  private body(
    direction: Decoded['direction'],
    frame: FoundFrame,
    { apiKey, apiVersion }: Asked,
    correlationId: number,
    clientId: string | null,
    bodyAt: number,
  ): Decoded {
    const size = frame.total ?? frame.bytes.length
    const known = { direction, api: apiName(apiKey), apiVersion, correlationId, clientId, size }
    const api = codec(apiKey)
    if (api === undefined || bodyAt < 0) {
      const message = bodyAt < 0 ? 'the header cannot be read' : `${describeApi(apiKey)} is not an API that is decoded`
      return { ...known, body: undefined, topics: [], problem: { message, offset: bodyAt < 0 ? 12 : 4 } }
    }
    const reader = new Reader(frame.bytes, bodyAt)
    try {
      const version = direction === 'response' ? answerVersion(apiKey, apiVersion, frame.bytes, bodyAt) : apiVersion
      const value = direction === 'request' ? api.decodeRequest(reader, version) : api.decodeResponse(reader, version)
      const topics = new Set<string>()
      const body = this.show(value, topics)
      if (reader.remaining === 0) return { ...known, body, topics: [...topics] }
      const message = `${reader.remaining} bytes are left over after the last field`
      return { ...known, body, topics: [...topics], problem: { message, offset: reader.at } }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const cut = frame.bytes.length < size ? `only ${frame.bytes.length} of ${size} bytes are here: ` : ''
      const offset = error.offset < 0 ? reader.at : error.offset
      return { ...known, body: undefined, topics: [], problem: { message: cut + error.message, offset } }
    }
  }

  /** The value as it is printed: records as counts and sizes, other bytes as their length, big numbers as text. */
  private show(value: unknown, topics: Set<string>, name = ''): unknown {
    if (typeof value === 'bigint') return value.toString()
    if (Buffer.isBuffer(value)) {
      if (name === 'records') return describeRecords(value, this.withRecords)
      return this.withRecords ? value.toString('base64') : `${value.length} bytes`
    }
    if (Array.isArray(value)) return value.map((entry) => this.show(entry, topics, name))
    if (typeof value !== 'object' || value === null) {
      if (typeof value === 'string' && topicFields.has(name)) topics.add(value)
      return value
    }
    const shown: Record<string, unknown> = {}
    for (const [key, entry] of Object.entries(value)) {
      const isTopicName = key === 'name' && name === 'topics'
      shown[key] = this.show(entry, topics, isTopicName ? 'topic' : key)
    }
    return shown
  }
}

const topicFields: ReadonlySet<string> = new Set(['topic', 'topicName', 'topics', 'topicNames'])

/** A broker that does not know the version of ApiVersions answers in version 0 (KIP-511). */
function answerVersion(apiKey: number, version: number, bytes: Buffer, bodyAt: number): number {
  const unsupported =
    apiKey === apiKeys.ApiVersions &&
    bytes.length >= bodyAt + 2 &&
    bytes.readInt16BE(bodyAt) === errorCodes.UNSUPPORTED_VERSION
  return unsupported ? 0 : version
}

function describeApi(apiKey: number): string {
  return apiByKey(apiKey) === undefined ? `api key ${apiKey}` : apiName(apiKey)
}

function unreadable(direction: Decoded['direction'], frame: FoundFrame, message: string, correlationId = -1): Decoded {
  const size = frame.total ?? frame.bytes.length
  const problem = { message, offset: Math.min(frame.bytes.length, correlationId < 0 ? 4 : 8) }
  return {
    direction,
    api: '?',
    apiVersion: -1,
    correlationId,
    clientId: null,
    size,
    body: undefined,
    topics: [],
    problem,
  }
}
