/** The codecs of kafkajs and kafka-ts as calls to measure. */
import { createRequire } from 'node:module'
import { batch, produceRequest } from './messages.ts'
import type { Call } from './ours.ts'

const require = createRequire(import.meta.url)

interface KafkaJsEncoder {
  writeString(value: string | null): this
  writeInt16(value: number): this
  writeInt32(value: number): this
  writeBuffer(value: Buffer): this
  writeArray(value: unknown[]): this
}
interface KafkaTsEncoder {
  writeInt32(value: number): this
  writeInt16(value: number): this
  writeCompactString(value: string | null): this
  writeUVarInt(value: number): this
  write(value: Buffer): this
  writeTagBuffer(): this
  writeCompactArray<T>(list: T[], write: (encoder: KafkaTsEncoder, item: T) => void): this
  value(): Buffer
}
interface KafkaTsApi {
  request(encoder: KafkaTsEncoder, data: object): KafkaTsEncoder
  response(decoder: object): unknown
}
const load = <T>(name: string): T => require(name) as T
const JsEncoder = load<new () => KafkaJsEncoder>('kafkajs/src/protocol/encoder.js')
const { Encoder: TsEncoder } = load<{ Encoder: new () => KafkaTsEncoder }>('kafka-ts/dist/utils/encoder.js')
const { Decoder: TsDecoder } = load<{ Decoder: new (bytes: Buffer) => object }>('kafka-ts/dist/utils/decoder.js')

export function jsDecode(name: string, version: number, bytes: Buffer): Call {
  type Response = { decode(bytes: Buffer): Promise<unknown> }
  const response = load<Response>(`kafkajs/src/protocol/requests/${name}/v${version}/response.js`)
  return () => response.decode(bytes)
}

export function jsEncode(name: string, version: number, value: object): Call {
  type Request = (value: object) => { encode(): Promise<{ buffer: Buffer }> }
  const request = load<Request>(`kafkajs/src/protocol/requests/${name}/v${version}/request.js`)
  return () => request(value).encode()
}

function tsApi(name: string, version: number): KafkaTsApi {
  const module = load<Record<string, KafkaTsApi>>(`kafka-ts/dist/api/${name}/v${version}.js`)
  const api = module[`${name.toUpperCase().replaceAll('-', '_')}_V${version}`]
  if (api === undefined) throw new Error(`kafka-ts has no ${name} v${version}`)
  return api
}

export function tsDecode(name: string, version: number, bytes: Buffer): Call {
  const api = tsApi(name, version)
  return () => api.response(new TsDecoder(bytes))
}

export function tsEncode(name: string, version: number, value: object): Call {
  const api = tsApi(name, version)
  return () => api.request(new TsEncoder(), value).value()
}

/** What kafkajs's Produce v3 to v7 writes around its batches. */
export function jsProduce(): Call {
  const encodePartition = (index: number) =>
    new JsEncoder().writeInt32(index).writeInt32(batch.length).writeBuffer(batch)
  return () =>
    new JsEncoder()
      .writeString(null)
      .writeInt16(-1)
      .writeInt32(30_000)
      .writeArray([
        new JsEncoder()
          .writeString('orders')
          .writeArray(produceRequest.topicData[0]?.partitionData.map(({ index }) => encodePartition(index)) ?? []),
      ])
}

/** What kafka-ts's Produce v9 writes around its batches. */
export function tsProduce(): Call {
  return () =>
    new TsEncoder()
      .writeCompactString(null)
      .writeInt16(-1)
      .writeInt32(30_000)
      .writeCompactArray(produceRequest.topicData, (topicEncoder, topic) =>
        topicEncoder
          .writeCompactString(topic.name)
          .writeCompactArray(topic.partitionData, (encoder, { index, records }) =>
            encoder
              .writeInt32(index)
              .writeUVarInt(records.length + 1)
              .write(records)
              .writeTagBuffer(),
          )
          .writeTagBuffer(),
      )
      .writeTagBuffer()
      .value()
}
