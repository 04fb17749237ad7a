/**
 * Random record batches and messages, and what filtering leaves of them, read by Kafka's own classes:
 *   tsx test/oracle/records.ts [--runs 2000] [--seed N]
 * Both must see the same records in both. Ends with `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { kafkaArtifacts } from '../../scripts/kafka/artifacts.ts'
import { baseOffsetOf, lastOffsetOf, magicOf, walkEntries } from '../../src/records/batch.ts'
import { filterRecords } from '../../src/records/filter.ts'
import { bucketOf } from '../../src/records/hashes/buckets.ts'
import { readRecords } from '../../src/records/read.ts'
import { slice } from '../property/records/arbitrary.ts'

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
})
const maxInflatedBytes = 1 << 20

const samples = fc.sample(fc.record({ slice, buckets: fc.integer({ min: 0, max: 65_536 }) }), {
  numRuns: Number(options.runs),
  seed: Number(options.seed),
})
const slices = samples.flatMap(({ slice: { bytes, firstOffset }, buckets }) => {
  const filtered = filterRecords(bytes, firstOffset, (record) => bucketOf(record) < buckets, { maxInflatedBytes })
  return [bytes, Buffer.concat(filtered.slices)]
})

const { java, classPath } = await kafkaArtifacts((line) => console.error(line))
const program = join(import.meta.dirname, 'java/RecordBatches.java')
const asked = spawnSync(java, ['-Xmx512m', '-XX:+UseSerialGC', '-cp', classPath, program], {
  input: Buffer.concat(slices.flatMap((bytes) => [length(bytes), bytes])),
  maxBuffer: 1 << 30,
  stdio: ['pipe', 'pipe', 'inherit'],
})
const answers = asked.stdout.toString('utf8').split('\n')
let failed = 0
slices.forEach((bytes, i) => {
  const ours = describe(bytes)
  if (ours === answers[i]) return
  failed++
  if (failed <= 3) console.error(`slice ${i} of seed ${options.seed}\n  java ${answers[i]}\n  ours ${ours}`)
})
console.log(`${slices.length - failed} passed, ${failed} failed`)
process.exitCode = failed === 0 && asked.status === 0 ? 0 : 1

function length(bytes: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeInt32BE(bytes.length)
  return head
}

/** The same text as RecordBatches.java writes. */
function describe(bytes: Buffer): string {
  let text = ''
  walkEntries(bytes, (at, end) => {
    if (magicOf(bytes, at) === 2) text += `[${baseOffsetOf(bytes, at)}..${lastOffsetOf(bytes, at)}]`
    for (const record of readRecords(bytes.subarray(at, end), maxInflatedBytes)) {
      const headers = record.headers.map(({ name, value }) => ` ${Buffer.from(name).toString('hex')}=${hex(value)}`)
      text += `${record.offset}@${record.timestamp} ${hex(record.key)} ${hex(record.value)}${headers.join('')};`
    }
  })
  return text
}

function hex(bytes: Buffer | null): string {
  return bytes === null ? 'null' : bytes.toString('hex')
}
