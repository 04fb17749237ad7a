/**
 * Our codecs beside those of kafkajs and kafka-ts, on the same messages in one run: in turn, round by round, the median
 * per call. `npm run bench -- codecs [--rounds 9]`; ratios above 1 mean that ours is faster.
 *
 * kafkajs is compared in its highest version, kafka-ts in a flexible one. Records are no part of this: Fetch answers
 * carry none where the rivals would decode them, and Produce requests carry ready batches, written with the rivals' own
 * encoders field by field as their request functions do (those would build and check a batch first).
 */
import { createRequire } from 'node:module'
import { apiKeys } from '../../src/protocol/api-table.ts'
import type { AnyCodec } from '../../src/protocol/codecs.ts'
import { codec } from '../../src/protocol/codecs.ts'
import { requestBytes, responseBytes } from '../../src/protocol/encode.ts'
import { Reader } from '../../src/protocol/reader.ts'
import { Writer } from '../../src/protocol/writer.ts'

const require = createRequire(import.meta.url)
const rounds = Number(process.argv[2] ?? 9)
const roundMs = 60

type Call = () => unknown

interface Comparison {
  readonly name: string
  readonly bytes: number
  readonly ours: Call
  readonly rival: Call
  readonly rivalName: string
  /** How many times faster than the rival ours must be. */
  readonly target: number
}

// --- the messages ---------------------------------------------------------------------------------------------------

const replicas = [1, 2, 3]
const uuid = 'AAECAwQFBgcICQoLDA0ODw'
const metadata = {
  brokers: [1, 2, 3].map((nodeId) => ({ nodeId, host: `broker-${nodeId}.example.com`, port: 9092, rack: 'zone-a' })),
  clusterId: 'abcdefghijklmnopqrstuv',
  controllerId: 1,
  topics: Array.from({ length: 1000 }, (_, t) => ({
    name: `orders-by-region-${t}`,
    partitions: Array.from({ length: 10 }, (_, p) => ({
      partitionIndex: p,
      leaderId: 1 + (p % 3),
      replicaNodes: replicas,
      isrNodes: replicas,
    })),
  })),
}
const fetchRequest = {
  maxWaitMs: 500,
  minBytes: 1,
  sessionEpoch: 0,
  topics: [
    {
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: 1_000_000 + partition,
        partitionMaxBytes: 1 << 20,
      })),
    },
  ],
}
const fetchResponse = (records: Buffer | null) => ({
  sessionId: 77,
  responses: [
    {
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        highWatermark: 2_000_000,
        lastStableOffset: 2_000_000,
        logStartOffset: 5,
        records,
      })),
    },
  ],
})
const batch = Buffer.alloc(1024, 3)
const produceRequest = {
  acks: -1,
  timeoutMs: 30_000,
  topicData: [{ name: 'orders', partitionData: Array.from({ length: 10 }, (_, index) => ({ index, records: batch })) }],
}
const produceResponse = {
  responses: [
    {
      name: 'orders',
      partitionResponses: Array.from({ length: 10 }, (_, index) => ({ index, baseOffset: 123_456, logStartOffset: 0 })),
    },
  ],
}
const commitRequest = {
  groupId: 'billing',
  generationIdOrMemberEpoch: 9,
  memberId: 'consumer-billing-1-5e2c7f5e-5a3b-4d53-9e0a-b9d9a3f2c9a1',
  topics: [
    {
      name: 'orders',
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        committedOffset: 1_000_000 + partitionIndex,
        committedMetadata: '',
      })),
    },
  ],
}
const commitResponse = {
  topics: [{ name: 'orders', partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({ partitionIndex })) }],
}

// --- ours -----------------------------------------------------------------------------------------------------------

type Side = 'Request' | 'Response'

function bytesOf(key: number, side: Side, version: number, value: object): Buffer {
  const writer = new Writer()
  codecOf(key)[`encode${side}`](writer, value, version)
  return Buffer.from(writer.finish())
}

function codecOf(key: number): AnyCodec {
  const found = codec(key)
  if (found === undefined) throw new Error(`no codec for ${key}`)
  return found
}

function decoding(key: number, side: Side, version: number, bytes: Buffer): Call {
  const api = codecOf(key)
  return () => api[`decode${side}`](new Reader(bytes), version)
}

/** Bytes of their own per call, as the rivals give. */
function encoding(key: number, side: Side, version: number, value: object): Call {
  const api = codecOf(key)
  const warm = api[`decode${side}`](new Reader(bytesOf(key, side, version, value)), version)
  if (side === 'Request') return () => requestBytes(api, warm, version)
  return () => responseBytes(api, warm, version)
}

// --- the rivals -----------------------------------------------------------------------------------------------------

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

function jsDecode(name: string, version: number, bytes: Buffer): Call {
  type Response = { decode(bytes: Buffer): Promise<unknown> }
  const response = load<Response>(`kafkajs/src/protocol/requests/${name}/v${version}/response.js`)
  return () => response.decode(bytes)
}

function jsEncode(name: string, version: number, value: object): Call {
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

function tsDecode(name: string, version: number, bytes: Buffer): Call {
  const api = tsApi(name, version)
  return () => api.response(new TsDecoder(bytes))
}

function tsEncode(name: string, version: number, value: object): Call {
  const api = tsApi(name, version)
  return () => api.request(new TsEncoder(), value).value()
}

/** What kafkajs's Produce v3 to v7 writes around its batches. */
function jsProduce(): Call {
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
function tsProduce(): Call {
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

const jsFetchRequest = {
  replicaId: -1,
  maxWaitTime: 500,
  minBytes: 1,
  maxBytes: 1 << 30,
  topics: [
    {
      topic: 'orders',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: 1_000_000 + partition,
        maxBytes: 1 << 20,
      })),
    },
  ],
}
const tsFetchRequest = {
  ...fetchRequest,
  maxBytes: 1 << 30,
  isolationLevel: 0,
  sessionId: 0,
  rackId: '',
  forgottenTopicsData: [],
  topics: [
    {
      topicId: '000102030405060708090a0b0c0d0e0f',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        currentLeaderEpoch: 5,
        fetchOffset: BigInt(1_000_000 + partition),
        lastFetchedEpoch: -1,
        logStartOffset: -1n,
        partitionMaxBytes: 1 << 20,
      })),
    },
  ],
}
const jsCommit = {
  groupId: commitRequest.groupId,
  groupGenerationId: 9,
  memberId: commitRequest.memberId,
  topics: [
    {
      topic: 'orders',
      partitions: Array.from({ length: 100 }, (_, partition) => ({
        partition,
        offset: String(1_000_000 + partition),
        metadata: '',
      })),
    },
  ],
}
const tsCommit = {
  ...commitRequest,
  groupInstanceId: null,
  topics: [
    {
      name: 'orders',
      partitions: Array.from({ length: 100 }, (_, partitionIndex) => ({
        partitionIndex,
        committedOffset: BigInt(1_000_000 + partitionIndex),
        committedLeaderEpoch: -1,
        committedMetadata: '',
      })),
    },
  ],
}

// --- pairs ----------------------------------------------------------------------------------------------------------

function named(version: number, value: { topics: readonly object[] }): object {
  const topics = value.topics.map((topic) => ({
    ...topic,
    ...(version >= 13 ? { topicId: uuid } : { topic: 'orders' }),
  }))
  return { ...value, topics }
}

function answered(version: number, records: Buffer | null): object {
  const value = fetchResponse(records)
  const responses = value.responses.map((one) => ({
    ...one,
    ...(version >= 13 ? { topicId: uuid } : { topic: 'orders' }),
  }))
  return { ...value, responses }
}

function comparisons(): Comparison[] {
  const { Metadata, Fetch, Produce, OffsetCommit } = apiKeys
  const list: Comparison[] = []
  const decode = (
    name: string,
    key: number,
    version: number,
    value: object,
    rival: (bytes: Buffer) => Call,
    ts: boolean,
  ) => {
    const bytes = bytesOf(key, 'Response', version, value)
    const ours = decoding(key, 'Response', version, bytes)
    list.push({ name: `${name} v${version} decode`, bytes: bytes.length, ours, rival: rival(bytes), ...rivalOf(ts) })
  }
  const encode = (name: string, key: number, version: number, value: object, rival: Call, ts: boolean) => {
    const bytes = bytesOf(key, 'Request', version, value)
    const ours = encoding(key, 'Request', version, value)
    list.push({ name: `${name} v${version} encode`, bytes: bytes.length, ours, rival, ...rivalOf(ts) })
  }
  decode('Metadata response', Metadata, 6, metadata, (bytes) => jsDecode('metadata', 6, bytes), false)
  decode('Metadata response', Metadata, 12, metadata, (bytes) => tsDecode('metadata', 12, bytes), true)
  encode('Fetch request', Fetch, 11, named(11, fetchRequest), jsEncode('fetch', 11, jsFetchRequest), false)
  encode('Fetch request', Fetch, 13, named(13, fetchRequest), tsEncode('fetch', 13, tsFetchRequest), true)
  decode('Fetch response', Fetch, 11, answered(11, Buffer.alloc(0)), (bytes) => jsDecode('fetch', 11, bytes), false)
  decode('Fetch response', Fetch, 13, answered(13, null), (bytes) => tsDecode('fetch', 13, bytes), true)
  encode('Produce request', Produce, 7, produceRequest, jsProduce(), false)
  encode('Produce request', Produce, 9, produceRequest, tsProduce(), true)
  decode('Produce response', Produce, 7, produceResponse, (bytes) => jsDecode('produce', 7, bytes), false)
  decode('Produce response', Produce, 9, produceResponse, (bytes) => tsDecode('produce', 9, bytes), true)
  encode('OffsetCommit request', OffsetCommit, 5, commitRequest, jsEncode('offsetCommit', 5, jsCommit), false)
  encode('OffsetCommit request', OffsetCommit, 8, commitRequest, tsEncode('offset-commit', 8, tsCommit), true)
  decode('OffsetCommit response', OffsetCommit, 5, commitResponse, (b) => jsDecode('offsetCommit', 5, b), false)
  decode('OffsetCommit response', OffsetCommit, 8, commitResponse, (b) => tsDecode('offset-commit', 8, b), true)
  return list
}

function rivalOf(ts: boolean): Pick<Comparison, 'rivalName' | 'target'> {
  return ts ? { rivalName: 'kafka-ts', target: 1 } : { rivalName: 'kafkajs', target: 2 }
}

/** What no rival has: the directions of a proxy, and a Fetch whose record bytes must not matter. */
function alone(): [string, Call][] {
  const { Metadata, Fetch, Produce, OffsetCommit } = apiKeys
  const small = bytesOf(Fetch, 'Response', 13, answered(13, Buffer.alloc(16)))
  const large = bytesOf(Fetch, 'Response', 13, answered(13, Buffer.alloc(10_486)))
  return [
    ['Metadata response v12 encode', encoding(Metadata, 'Response', 12, metadata)],
    [
      'Fetch request v13 decode',
      decoding(Fetch, 'Request', 13, bytesOf(Fetch, 'Request', 13, named(13, fetchRequest))),
    ],
    ['Fetch response v13 decode, 100 x 16 B', decoding(Fetch, 'Response', 13, small)],
    ['Fetch response v13 decode, 1 MiB', decoding(Fetch, 'Response', 13, large)],
    ['Fetch response v13 encode, 1 MiB', encoding(Fetch, 'Response', 13, answered(13, Buffer.alloc(10_486)))],
    ['Produce request v9 decode', decoding(Produce, 'Request', 9, bytesOf(Produce, 'Request', 9, produceRequest))],
    [
      'OffsetCommit request v8 decode',
      decoding(OffsetCommit, 'Request', 8, bytesOf(OffsetCommit, 'Request', 8, commitRequest)),
    ],
  ]
}

// --- measuring ------------------------------------------------------------------------------------------------------

/** Microseconds of CPU time per call over about `roundMs` of it; a promise is awaited, since that is how kafkajs is used. */
async function measure(call: Call): Promise<number> {
  const asynchronous = call() instanceof Promise
  let calls = 0
  let used = 0
  const start = process.cpuUsage()
  while (used < roundMs * 1000) {
    for (let i = 0; i < 8; i++) {
      if (asynchronous) await call()
      else call()
    }
    calls += 8
    const spent = process.cpuUsage(start)
    used = spent.user + spent.system
  }
  return used / calls
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0
}

const row = (cells: readonly string[]) =>
  console.log(cells.map((c, i) => (i === 0 ? c.padEnd(40) : c.padStart(11))).join(''))
console.log(
  `Node ${process.version}, ${rounds} rounds of ${roundMs} ms each in turn, median microseconds of CPU time per call`,
)
row(['', 'bytes', 'ours', 'rival', 'ratio', 'target', ''])
let missed = 0
const pairs = comparisons()
for (const { name, bytes, ours, rival, rivalName, target } of pairs) {
  const oursUs: number[] = []
  const rivalUs: number[] = []
  await measure(ours)
  await measure(rival)
  for (let round = 0; round < rounds; round++) {
    oursUs.push(await measure(ours))
    rivalUs.push(await measure(rival))
  }
  const ratio = median(rivalUs) / median(oursUs)
  if (ratio < target) missed++
  const figures = [median(oursUs), median(rivalUs), ratio, target].map((figure) => figure.toFixed(2))
  row([name, String(bytes), ...figures, `  ${rivalName}${ratio < target ? ' MISSED' : ''}`])
}
for (const [name, call] of alone()) {
  const us: number[] = []
  for (let round = 0; round < rounds; round++) us.push(await measure(call))
  row([name, '', median(us).toFixed(2)])
}
console.log(`${pairs.length - missed} of ${pairs.length} ratios at or above their target`)
