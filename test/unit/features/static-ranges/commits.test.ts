import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RangeCommits } from '../../../../src/features/static-ranges/commits.ts'
import { StaticRanges } from '../../../../src/features/static-ranges/feature.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codec } from '../../../../src/protocol/codecs.ts'
import { Reader } from '../../../../src/protocol/reader.ts'
import { Writer } from '../../../../src/protocol/writer.ts'
import { requestFrame, responseFrame } from '../../../support/frames.ts'
import { type Peer, Rig } from '../../../support/rig.ts'

const INVALID_REQUEST = 42
const plain = codec(apiKeys.OffsetCommit)
const transactional = codec(apiKeys.TxnOffsetCommit)
const topics = [
  {
    name: 't',
    partitions: [
      { partitionIndex: 0, committedOffset: 5 },
      { partitionIndex: 3, committedOffset: 6 },
    ],
  },
]

async function start(): Promise<{ rig: Rig; client: Peer }> {
  const ranges = new StaticRanges([{ group: /^g$/, clientId: 'left', ranges: [{ first: 0, last: 9 }] }])
  const rig = await Rig.start({
    handlers: [new RangeCommits(ranges)],
    broker: (peer) => {
      peer.onFrame = (frame) => peer.send(responseFrame(frame.readInt32BE(8), Buffer.from('broker')))
    },
  })
  const client = rig.connect()
  await rig.run(() => client.connected && rig.brokers.length > 0 && rig.broker.connected)
  return { rig, client }
}

function commit(apiVersion: number, clientId: string): Buffer {
  const writer = new Writer(64)
  plain.encodeRequest(writer, { groupId: 'g', topics }, apiVersion)
  const flexible = apiVersion >= 8
  return requestFrame({
    apiKey: apiKeys.OffsetCommit,
    apiVersion,
    correlationId: 1,
    clientId,
    flexible,
    body: writer.finish(),
  })
}

test('every partition of a commit is refused, in every version, and said once in the log', async () => {
  const { rig, client } = await start()
  for (let version = 2; version <= 9; version++) {
    client.send(commit(version, 'left'))
    await rig.run(() => client.frames.length === version - 1)
    const frame = client.frames.at(-1) ?? Buffer.alloc(0)
    const answer = plain.decodeResponse(new Reader(frame, version >= 8 ? 9 : 8, frame.length), version)
    const codes = answer.topics.map(({ name, partitions }) => [
      name,
      partitions.map((one) => [one.partitionIndex, one.errorCode]),
    ])
    assert.deepEqual(codes, [
      [
        't',
        [
          [0, INVALID_REQUEST],
          [3, INVALID_REQUEST],
        ],
      ],
    ])
  }
  assert.equal(rig.broker.frames.length, 0, 'the broker sees none of them')
  assert.equal(rig.log.lines.filter(({ level }) => level === 'warn').length, 1)
  assert.equal(rig.meter.errors.length, 8)
})

test('so is one in a transaction', async () => {
  const { rig, client } = await start()
  const writer = new Writer(64)
  transactional.encodeRequest(
    writer,
    { transactionalId: 'x', groupId: 'g', producerId: 1, producerEpoch: 0, topics },
    2,
  )
  client.send(
    requestFrame({
      apiKey: apiKeys.TxnOffsetCommit,
      apiVersion: 2,
      correlationId: 1,
      clientId: 'left',
      body: writer.finish(),
    }),
  )
  await rig.run(() => client.frames.length === 1)
  const frame = client.frames[0] ?? Buffer.alloc(0)
  const { topics: refused } = transactional.decodeResponse(new Reader(frame, 8, frame.length), 2)
  assert.deepEqual(
    refused[0]?.partitions.map(({ errorCode }) => errorCode),
    [INVALID_REQUEST, INVALID_REQUEST],
  )
})

test('commits of others, and what cannot be read, go to the broker', async () => {
  const { rig, client } = await start()
  client.send(commit(5, 'right'))
  client.send(
    requestFrame({
      apiKey: apiKeys.OffsetCommit,
      apiVersion: 5,
      correlationId: 2,
      clientId: 'right',
      body: Buffer.alloc(2),
    }),
  )
  await rig.run(() => client.frames.length === 2)
  assert.equal(rig.broker.frames.length, 2)
})
