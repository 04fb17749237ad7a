/**
 * Filtering 1 MiB Fetch answers of 1 KiB records by key, and hashing keys, on one core without sockets: GB/s of input
 * bytes per second of CPU time, the median of several rounds. `npx tsx test/bench/records.ts [rounds]`.
 */
import * as zlib from 'node:zlib'
import { type Codec, codecs } from '../../src/records/batch.ts'
import { buildBatch } from '../../src/records/build.ts'
import { crc32c } from '../../src/records/crc.ts'
import { type Keep, filterRecords } from '../../src/records/filter.ts'
import { bucketOf, bucketOfKey } from '../../src/records/hashes/buckets.ts'
import { partitionerNames, partitioners } from '../../src/records/hashes/partitioners.ts'

const rounds = Number(process.argv[2] ?? 9)
const limits = { maxInflatedBytes: 64 << 20 }

/** 1 MiB of batches of `batchBytes`, each record 1 KiB with a key of 16 bytes and a value that halves when compressed. */
function fetchAnswer(batchBytes: number, codec: Codec): { bytes: Buffer; records: number } {
  const batches: Buffer[] = []
  let offset = 0
  for (let left = 1 << 20; left >= batchBytes; left -= batchBytes) {
    const records = Array.from({ length: Math.floor(batchBytes / 1024) }, (_, i) => ({
      key: Buffer.from(`user-${String((offset + i) * 7919).padStart(11, '0')}`),
      value: Buffer.from(`{"id":${offset + i},"r":"${noise(offset + i)}","s":"${'lorem ipsum dolor '.repeat(26)}"}`),
    }))
    batches.push(buildBatch({ baseOffset: offset, codec, records }))
    offset += records.length
  }
  return { bytes: Buffer.concat(batches), records: offset }
}

function noise(seed: number): string {
  let state = seed * 2654435761 + 1
  let text = ''
  while (text.length < 490) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    text += state.toString(36)
  }
  return text.slice(0, 490)
}

/** Median over the rounds of units per second of CPU time; each round takes about 200 ms of it. */
function rate(unitsPerCall: number, call: () => unknown): number {
  for (let i = 0; i < 20; i++) call()
  const rates: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage()
    let calls = 0
    let usedMicros = 0
    do {
      for (let i = 0; i < 8; i++) call()
      calls += 8
      const used = process.cpuUsage(start)
      usedMicros = used.user + used.system
    } while (usedMicros < 200_000)
    rates.push((calls * unitsPerCall * 1e6) / usedMicros)
  }
  return rates.sort((a, b) => a - b)[rounds >> 1]!
}

function two(value: number): string {
  return value.toFixed(2)
}

/** Says whether a figure reached its target; a bench never fails for time. */
function verdict(what: string, reached: number, target: number): void {
  console.log(`  ${reached >= target ? 'reached' : 'MISSED'}: ${what} ${two(reached)}, target ${target}`)
}

const keepAll: Keep = (record) => bucketOf(record) >= 0
const keepHalf: Keep = (record) => bucketOf(record) < 0x8000
const keepNone: Keep = (record) => bucketOf(record) < 0

for (const [name, codec] of Object.entries(codecs)) {
  if (codec === codecs.zstd && !('zstdCompressSync' in zlib)) {
    console.log('filter zstd: this Node cannot compress the data for it (Node ≥ 22.15 can)')
    continue
  }
  for (const batchBytes of [16 << 10, 1 << 20]) {
    const { bytes, records } = fetchAnswer(batchBytes, codec)
    const plainBytes = fetchAnswer(batchBytes, codecs.none).bytes.length
    const [all, half, none] = [keepAll, keepHalf, keepNone].map(
      (keep) => rate(plainBytes, () => filterRecords(bytes, 0, keep, limits)) / 1e9,
    ) as [number, number, number]
    const what = `filter ${name}, batches of ${batchBytes >> 10} KiB, ${records} records of 1 KiB`
    console.log(`${what}: GB/s of uncompressed bytes: all ${two(all)}, half ${two(half)}, none ${two(none)}`)
    if (codec === codecs.none) {
      verdict('all kept', all, 1.2)
      verdict('half kept', half, 0.8)
    }
  }
}

const big = fetchAnswer(1 << 20, codecs.none).bytes
console.log(`crc32c of 1 MiB: ${(rate(big.length, () => crc32c(big)) / 1e9).toFixed(2)} GB/s`)

const keys = Buffer.from(Array.from({ length: 16_384 }, (_, i) => (i * 197 + (i >> 8)) & 0xff))
let sink = 0
function hashRate(hash: (start: number) => number): number {
  const perSecond = rate(1000, () => {
    for (let i = 0; i < 1000; i++) sink ^= hash(i * 16)
  })
  return perSecond / 1e6
}
const bucketRate = hashRate((at) => bucketOfKey(keys, at, at + 16))
console.log(`bucket of a 16-byte key: ${two(bucketRate)} M/s`)
verdict('buckets in M/s', bucketRate, 5)
for (const name of partitionerNames) {
  console.log(`${name} of a 16-byte key: ${two(hashRate((at) => partitioners[name](keys, at, at + 16, 7)))} M/s`)
}
if (sink === 0.5) console.log(sink)
