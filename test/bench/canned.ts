/**
 * Records for the dummy upstream to answer with: 1 MiB as they lie on the wire, in batches of 64 records of 1 KiB with a
 * key of 16 bytes and a value that halves when compressed. As a program it writes them to a file, so that a newer Node
 * can compress what this one cannot: `node --import tsx canned.ts CODEC FILE`.
 * Invariant: the same records whatever the codec, so that the codecs differ in nothing else.
 */
import { createHash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached } from '../../scripts/setup/cache.ts'
import { run } from '../../scripts/setup/run.ts'
import { codecs } from '../../src/records/batch.ts'
import { buildBatch } from '../../src/records/build.ts'
import { node22 } from './node22.ts'

const answerBytes = 1 << 20
const recordsPerBatch = 64

/** Codecs that are measured, and the Node that compresses for each. */
export const cannedCodecs = ['none', 'lz4', 'zstd'] as const
export type CannedCodec = (typeof cannedCodecs)[number]

export interface Canned {
  readonly file: string
  /** Bytes of the file: what the proxy gets. */
  readonly bytes: number
  /** Bytes of the records in it without compression. */
  readonly inflatedBytes: number
}

function cannedRecords(codec: CannedCodec): { bytes: Buffer; inflatedBytes: number } {
  const batches: Buffer[] = []
  let [baseOffset, length, inflatedBytes] = [0, 0, 0]
  while (length < answerBytes - recordsPerBatch * 512) {
    const records = Array.from({ length: recordsPerBatch }, (_, i) => record(baseOffset + i))
    const batch = buildBatch({ baseOffset, codec: codecs[codec], records })
    batches.push(batch)
    length += batch.length
    inflatedBytes += buildBatch({ baseOffset, codec: codecs.none, records }).length
    baseOffset += recordsPerBatch
  }
  return { bytes: Buffer.concat(batches), inflatedBytes }
}

function record(offset: number): { key: Buffer; value: Buffer } {
  return {
    key: Buffer.from(`user-${String(offset * 7919).padStart(11, '0')}`),
    value: Buffer.from(`{"id":${offset},"r":"${noise(offset)}","s":"${'lorem ipsum dolor '.repeat(26)}"}`),
  }
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

const own = readFileSync(import.meta.filename)

/** The records in a codec, as a file in the cache folder; undefined where no Node at hand can compress them. */
export async function canned(codec: CannedCodec): Promise<Canned | undefined> {
  const node = codec === 'zstd' ? node22() : process.execPath
  if (node === undefined) return undefined
  const folder = await cached({
    name: `bench-canned-${codec}`,
    key: createHash('sha256')
      .update(own)
      .update(process.env['HEADGATE_NATIVE'] ?? '')
      .digest('hex'),
    build: async (into) =>
      void (await run(node, ['--import', 'tsx', import.meta.filename, codec, join(into, 'records')])),
  })
  const file = join(folder, 'records')
  const bytes = statSync(file).size
  const inflatedBytes = Number(readFileSync(`${file}.inflated`, 'utf8'))
  // Without the native packages the codecs store: that would measure something else.
  if (codec !== 'none' && bytes > 0.8 * inflatedBytes) return undefined
  return { file, bytes, inflatedBytes }
}

if (process.argv[1] === import.meta.filename) {
  const [, , codec, file = ''] = process.argv
  const { bytes, inflatedBytes } = cannedRecords(codec as CannedCodec)
  writeFileSync(file, bytes)
  writeFileSync(`${file}.inflated`, String(inflatedBytes))
}
