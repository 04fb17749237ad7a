/** How an API of the fake broker is written: a codec, the versions it is offered in, and what it does. */
import type { Codec, Draft } from '../protocol/codec.ts'
import type { Reader } from '../protocol/reader.ts'
import type { Writer } from '../protocol/writer.ts'
import type { Cluster, Node } from './cluster.ts'

/** One request on its way through the model. */
export interface Call<Request, Response> {
  readonly cluster: Cluster
  readonly node: Node
  readonly connectionId: number
  readonly clientId: string
  readonly clientHost: string
  readonly version: number
  readonly request: Request
  /** Monotonic milliseconds. */
  readonly nowMs: number
  /** Answers later; for calls whose handler returned undefined. */
  reply(response: Draft<Response>): void
}

/** Returns the answer, or undefined when `call.reply` will bring it. */
export type Handle<Request, Response> = (call: Call<Request, Response>) => Draft<Response> | undefined

export interface Api {
  readonly key: number
  readonly minVersion: number
  readonly maxVersion: number
  /** Whether this request gets no answer at all (Produce with acks=0). */
  isSilent(request: unknown): boolean
  decode(reader: Reader, version: number): object
  encode(writer: Writer, response: object, version: number): void
  handle(call: Call<unknown, object>): object | undefined
}

export interface ApiLimits<Request> {
  /** Default: what the codec knows. */
  min?: number
  max?: number
  isSilent?: (request: Request) => boolean
}

/** Ties a handler to its codec; from here on requests and responses are opaque. */
export function api<Request, Response>(
  codec: Codec<Request, Response>,
  handle: Handle<Request, Response>,
  limits: ApiLimits<Request> = {},
): Api {
  return {
    key: codec.key,
    minVersion: limits.min ?? codec.minVersion,
    maxVersion: limits.max ?? codec.maxVersion,
    isSilent: (request) => limits.isSilent?.(request as Request) ?? false,
    decode: (reader, version) => codec.decodeRequest(reader, version) as object,
    encode: (writer, response, version) => codec.encodeResponse(writer, response as Draft<Response>, version),
    handle: (call) => handle(call as Call<Request, Response>) as object | undefined,
  }
}
