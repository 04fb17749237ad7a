/**
 * Our codecs beside those of kafkajs and kafka-ts, on the same messages in one run: in turn, round by round, each first in
 * every other one, the median per call. `npm run bench -- codecs [--rounds 9]`; ratios above 1 mean that ours is faster.
 *
 * kafkajs is compared in its highest version, kafka-ts in a flexible one. Records are no part of this: Fetch answers
 * carry none where the rivals would decode them, and Produce requests carry ready batches, written with the rivals' own
 * encoders field by field as their request functions do (those would build and check a batch first).
 */
import { apiKeys } from '../../src/protocol/api-table.ts'
import {
  answered,
  commitRequest,
  commitResponse,
  fetchRequest,
  metadata,
  named,
  produceRequest,
  produceResponse,
} from './codecs/messages.ts'
import { bytesOf, type Call, decoding, encoding } from './codecs/ours.ts'
import { jsCommit, jsFetchRequest, tsCommit, tsFetchRequest } from './codecs/rival-messages.ts'
import { jsDecode, jsEncode, jsProduce, tsDecode, tsEncode, tsProduce } from './codecs/rivals.ts'

const rounds = Number(process.argv[2] ?? 9)
const roundMs = 60

interface Comparison {
  readonly name: string
  readonly bytes: number
  readonly ours: Call
  readonly rival: Call
  readonly rivalName: string
  /** How many times faster than the rival ours must be. */
  readonly target: number
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
    if (round % 2 === 0) oursUs.push(await measure(ours))
    rivalUs.push(await measure(rival))
    if (round % 2 === 1) oursUs.push(await measure(ours))
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
