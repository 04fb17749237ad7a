/** Our codecs as calls to measure. */
import type { AnyCodec } from '../../../src/protocol/codecs.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import { requestBytes, responseBytes } from '../../../src/protocol/encode.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'

export type Call = () => unknown

type Side = 'Request' | 'Response'

export function bytesOf(key: number, side: Side, version: number, value: object): Buffer {
  const writer = new Writer()
  codecOf(key)[`encode${side}`](writer, value, version)
  return Buffer.from(writer.finish())
}

function codecOf(key: number): AnyCodec {
  const found = codec(key)
  if (found === undefined) throw new Error(`no codec for ${key}`)
  return found
}

export function decoding(key: number, side: Side, version: number, bytes: Buffer): Call {
  const api = codecOf(key)
  return () => api[`decode${side}`](new Reader(bytes), version)
}

/** Bytes of their own per call, as the rivals give. */
export function encoding(key: number, side: Side, version: number, value: object): Call {
  const api = codecOf(key)
  const warm = api[`decode${side}`](new Reader(bytesOf(key, side, version, value)), version)
  if (side === 'Request') return () => requestBytes(api, warm, version)
  return () => responseBytes(api, warm, version)
}
