import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { command } from '../../../src/cli/inspect.ts'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import { encodeRequestHeader } from '../../../src/protocol/headers.ts'
import { Writer } from '../../../src/protocol/writer.ts'
import { buildBatch } from '../../../src/records/build.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-inspect-'))

function sized(write: (writer: Writer) => void): Buffer {
  const writer = new Writer()
  writer.int32(0)
  write(writer)
  const bytes = Buffer.from(writer.finish())
  bytes.writeInt32BE(bytes.length - 4, 0)
  return bytes
}

function metadataRequest(): Buffer {
  return sized((writer) => {
    encodeRequestHeader(writer, { apiKey: apiKeys.Metadata, apiVersion: 12, correlationId: 7, clientId: 'app' })
    codec(apiKeys.Metadata).encodeRequest(writer, { topics: [{ name: 'orders' }] }, 12)
  })
}

function fetchResponse(): Buffer {
  const records = buildBatch({ baseOffset: 5, records: [{ key: Buffer.from('k'), value: Buffer.from('secret') }] })
  const partition = { partitionIndex: 0, highWatermark: 6, records }
  return sized((writer) => {
    writer.int32(8)
    writer.uvarint(0)
    codec(apiKeys.Fetch).encodeResponse(writer, { responses: [{ topic: 'orders', partitions: [partition] }] }, 12)
  })
}

async function inspect(input: Buffer | string, ...args: string[]): Promise<{ out: string; err: string; code: number }> {
  const file = join(folder, 'input')
  writeFileSync(file, input)
  let out = ''
  let err = ''
  const io = { out: (text: string) => void (out += text), err: (text: string) => void (err += text), env: {} }
  const code = await command.run(['--file', file, ...args], io)
  return { out, err, code }
}

test('raw frames: requests are decoded, one line each', async () => {
  const { out, code } = await inspect(Buffer.concat([metadataRequest(), metadataRequest()]))
  assert.equal(code, 0)
  const lines = out.trim().split('\n')
  assert.equal(lines.length, 2)
  assert.match(lines[0] ?? '', /^→ Metadata v12 7 app \d+ B \{topics:\[\{name:"orders"\}\],/)
})

test('a hex dump, plain or as xxd prints it, with both directions', async () => {
  const hex = metadataRequest().toString('hex')
  const plain = await inspect(hex)
  assert.match(plain.out, /Metadata v12/)
  const rows = hex.match(/.{1,32}/g) ?? []
  const xxd = rows.map((row, index) => {
    const bytes = row.match(/.{1,4}/g)?.join(' ') ?? ''
    return `${(index * 16).toString(16).padStart(8, '0')}: ${bytes}  ${'.'.repeat(row.length / 2)}`
  })
  const dumped = await inspect(xxd.join('\n'))
  assert.equal(dumped.out, plain.out)
  const both = await inspect(`> ${hex}\n< ${fetchResponse().toString('hex')}`, '--as', 'Fetch:12')
  assert.match(both.out, /← Fetch v12 8/)
})

test('records are counts and sizes unless asked for', async () => {
  const quiet = await inspect(fetchResponse(), '--as', 'Fetch:12', '--full')
  assert.match(quiet.out, /batches:\[\{offsets:"5-5",count:1,bytes:\d+,codec:"none",leaderEpoch:-?\d+\}\]/)
  assert.doesNotMatch(quiet.out, /secret/)
  const asked = await inspect(fetchResponse(), '--as', 'fetch:12', '--records', '--json')
  const parsed = JSON.parse(asked.out) as { body: { responses: { partitions: { records: object }[] }[] } }
  assert.deepEqual(parsed.body.responses[0]?.partitions[0]?.records, {
    bytes: 75,
    batches: [
      {
        offsets: '5-5',
        count: 1,
        bytes: 75,
        codec: 'none',
        leaderEpoch: -1,
        records: [{ offset: 5, timestamp: 0, key: 'k', value: 'secret' }],
      },
    ],
  })
})

test('filters by topic, api and client', async () => {
  const frames = metadataRequest()
  for (const [args, lines] of [
    [['--topic', 'orders'], 1],
    [['--topic', 'other'], 0],
    [['--api', 'metadata'], 1],
    [['--api', 'Fetch'], 0],
    [['--client', 'app'], 1],
    [['--client', 'other'], 0],
  ] as const) {
    const { out } = await inspect(frames, ...args)
    assert.equal(out === '' ? 0 : out.trim().split('\n').length, lines, args.join(' '))
  }
})

test('garbage: says at which offset and field it stopped and shows the bytes around it', async () => {
  const cut = metadataRequest()
  cut.writeUInt8(0x7f, cut.length - 11) // a length inside the topic name that cannot be
  const damaged = await inspect(cut)
  assert.equal(damaged.code, 1)
  assert.match(damaged.out, /cannot read on at offset \d+: .*field topics/)
  assert.match(damaged.out, /\[[0-9a-f]{2}\]/)
  const noise = await inspect(Buffer.from([0xff, 0xfe, 0xfd, 0xfc, 0, 1, 2, 3]))
  assert.equal(noise.code, 1)
  assert.match(noise.err, /at offset 0, field size: a frame of -66052 bytes cannot be\n +0: \[ff\] fe fd/)
  const truncated = await inspect(metadataRequest().subarray(0, 30))
  assert.match(truncated.out, /only 30 of \d+ bytes are here/)
  const lonely = await inspect(`< ${fetchResponse().toString('hex')}`)
  assert.match(lonely.out, /its request is not here; say what it answers with --as/)
})

test('wrong options are named', async () => {
  await assert.rejects(inspect('00', '--as', 'Fetch'), /--as wants API:VERSION/)
  await assert.rejects(inspect('00', '--api', 'Fecth'), /there is no API Fecth/)
})
