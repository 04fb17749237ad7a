import assert from 'node:assert/strict'
import test from 'node:test'
import { LeaderHintsEditor } from '../../../../src/editors/leader-hints/editor.ts'
import { CHUNK_BYTES } from '../../../../src/net/chunk-pool.ts'
import { apiKeys, apiName } from '../../../../src/protocol/api-table.ts'
import type { FetchResponse } from '../../../../src/protocol/generated/01-fetch.ts'
import { fetchAnswer, produceAnswer } from '../../../support/answers.ts'
import { replyTo } from '../../../support/answering-rig.ts'
import { codecResponse, openResponse } from '../../../support/codec-frames.ts'
import { FakeAddresses } from '../../../support/fake-addresses.ts'
import { sized } from '../../../support/frames.ts'
import { Prng } from '../../../support/prng.ts'

const { Fetch, Produce } = apiKeys
type Hinted = Pick<FetchResponse, 'nodeEndpoints' | 'unknownTags'>

const versions: [apiKey: number, version: number][] = [
  [Fetch, 16],
  [Fetch, 17],
  [Fetch, 18],
  [Produce, 10],
  [Produce, 11],
  [Produce, 12],
  [Produce, 13],
]

function answer(apiKey: number, version: number, seed: number, recordBytes: number): Buffer {
  const shape = { nodes: [1, 2, 3], tags: true, recordBytes, endpoints: true }
  const draft = (apiKey === Fetch ? fetchAnswer : produceAnswer)(new Prng(seed), version, shape)
  return codecResponse(apiKey, version, 0, draft)
}

/** What the client is to see of an answer. */
function expected(apiKey: number, version: number, frame: Buffer, shown: FakeAddresses): object {
  const body = openResponse(apiKey, version, frame) as Hinted
  body.nodeEndpoints = body.nodeEndpoints.flatMap((node) => {
    const address = shown.shown.get(node.nodeId)
    return address === undefined ? [] : [{ ...node, ...address }]
  })
  return body
}

for (const [apiKey, version] of versions)
  test(`${apiName(apiKey)} v${version}: whole answers carry the new addresses`, async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const addresses = new FakeAddresses(seed % 3 === 0 ? [1, 3] : [1, 2, 3])
      const frame = answer(apiKey, version, seed, 500)
      const { reply, rig } = await replyTo([new LeaderHintsEditor(addresses)], apiKey, version, frame, { seed })
      assert.ok(reply !== undefined, JSON.stringify(rig.log.lines.at(-1)))
      assert.equal(reply.readInt32BE(4), 77)
      assert.deepEqual(
        openResponse(apiKey, version, reply),
        expected(apiKey, version, frame, addresses),
        `seed ${seed}`,
      )
      const named = (openResponse(apiKey, version, frame) as Hinted).nodeEndpoints
      assert.deepEqual(
        addresses.learned.map(({ nodeId }) => nodeId),
        named.map(({ nodeId }) => nodeId),
      )
      assert.ok(!reply.includes('.internal'))
    }
  })

/** A long Fetch answer with two hints, whose records are compared too. */
function longAnswer(seed: number, length: number, nodes: readonly number[] = [1, 2]): Buffer {
  const prng = new Prng(seed)
  return codecResponse(Fetch, 16, 0, {
    responses: [
      {
        topicId: prng.bytes(16).toString('base64url'),
        partitions: [
          { partitionIndex: 0, errorCode: 6, records: prng.bytes(length) },
          { partitionIndex: 1, errorCode: 0, records: prng.bytes(10) },
        ],
      },
    ],
    nodeEndpoints: nodes.map((nodeId) => ({ nodeId, host: `broker-${nodeId}.internal`, port: 19092, rack: 'r' })),
  })
}

/** Lengths for which the hints lie in one chunk, across two, or begin exactly at a border. */
const overhead = longAnswer(1, 0).length
const lengths = [
  300_000,
  CHUNK_BYTES * 2 - overhead,
  ...[-70, -66, -40, -2, -1, 0, 1, 2, 20].map((n) => CHUNK_BYTES * 2 - overhead + n + 60),
]

test('streamed answers: an address that takes as many bytes is written in place', async () => {
  for (const length of lengths) {
    const addresses = new FakeAddresses([1, 2], 'proxy-is.external') // as long as broker-1.internal
    const frame = longAnswer(length, length)
    const { reply, rig } = await replyTo([new LeaderHintsEditor(addresses)], Fetch, 16, frame, { seed: length })
    assert.ok(reply !== undefined)
    assert.equal(reply.length, frame.length)
    assert.deepEqual(openResponse(Fetch, 16, reply), expected(Fetch, 16, frame, addresses), `length ${length}`)
    assert.deepEqual(rig.meter.errors, [6])
  }
})

test('streamed answers: where it does not fit, clients see a tag that they skip', async () => {
  for (const length of lengths) {
    const frame = longAnswer(length, length)
    const { reply, rig } = await replyTo([new LeaderHintsEditor(new FakeAddresses([1, 2]))], Fetch, 16, frame, {
      seed: length,
    })
    assert.ok(reply !== undefined)
    assert.equal(reply.length, frame.length)
    const body = openResponse(Fetch, 16, reply) as Hinted
    assert.deepEqual(body.nodeEndpoints, [])
    assert.deepEqual(
      body.unknownTags?.map(({ tag }) => tag),
      [127],
    )
    assert.equal(rig.meter.errors.length, 1)
  }
})

test('an answer waits while a port that it names is bound; a streamed one hides the hint', async () => {
  for (const long of [false, true]) {
    const addresses = new FakeAddresses([1, 2], 'proxy-is.external')
    let bound = (): void => undefined
    addresses.binding = () => new Promise((resolve) => (bound = resolve))
    const replying = replyTo([new LeaderHintsEditor(addresses)], Fetch, 16, longAnswer(3, long ? 300_000 : 50))
    if (long) {
      const { reply } = await replying
      assert.deepEqual((openResponse(Fetch, 16, reply ?? Buffer.alloc(0)) as Hinted).nodeEndpoints, [])
    } else {
      setImmediate(() => setImmediate(() => bound()))
      const { reply, rig } = await replying
      assert.ok(reply === undefined, 'virtual time is over long before the port is bound')
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      await rig.run(() => rig.clients[0]?.frames.length === 1)
      assert.equal(rig.clients[0]?.frames.length, 1)
    }
  }
})

test('an answer whose end cannot be read closes the connection, whole or streamed', async () => {
  for (const length of [50, 300_000]) {
    const good = longAnswer(7, length)
    const tailAt = longAnswer(7, length, []).length - 1
    assert.equal(good[tailAt], 1, 'one tagged field')
    const bad: [string, Buffer][] = [
      ['cut inside the hint', sized(Buffer.from(good.subarray(0, good.length - 5)))],
      ['bytes behind it', sized(Buffer.concat([good, Buffer.from([1, 2, 3])]))],
      ['cut before it', sized(Buffer.from(good.subarray(0, tailAt)))],
      [
        'tag 0 written in two bytes',
        sized(Buffer.concat([good.subarray(0, tailAt + 1), Buffer.from([0x80, 0]), good.subarray(tailAt + 2)])),
      ],
      [
        'another tag before tag 0',
        sized(Buffer.concat([good.subarray(0, tailAt), Buffer.from([2, 9, 0]), good.subarray(tailAt + 1)])),
      ],
      ['a count of nodes beyond the bytes', patched(good, tailAt + 3, 0xff, 0x7f)],
    ]
    for (const [what, frame] of bad) {
      const { reply, rig } = await replyTo([new LeaderHintsEditor(new FakeAddresses([1, 2]))], Fetch, 16, frame)
      if (reply !== undefined && what !== 'cut before it') {
        // Whole answers are written anew, so that tags in a strange form do no harm.
        assert.ok(length === 50 && what.includes('tag 0'), what)
        assert.ok(!reply.includes('.internal'), what)
        continue
      }
      assert.deepEqual(rig.meter.reasons, ['malformed_response'], what)
      assert.equal(rig.meter.undecodables.length, 1, what)
    }
  }
})

function patched(frame: Buffer, at: number, ...bytes: number[]): Buffer {
  const copy = Buffer.from(frame)
  bytes.forEach((byte, i) => (copy[at + i] = byte))
  return copy
}

test('answers without addresses pass untouched whatever they say, and what cannot be read is counted', async () => {
  for (const [apiKey, version] of [
    [Fetch, 4],
    [Fetch, 12],
    [Fetch, 15],
    [Produce, 3],
    [Produce, 9],
  ] as const) {
    const records = new Prng(version).bytes(3000)
    const whole = codecResponse(apiKey, version, 0, {
      responses: [
        apiKey === Fetch
          ? { partitions: [{ records }] }
          : { name: 'x'.repeat(99), partitionResponses: [{ index: 0 }, { index: 1 }] },
      ],
    })
    const frame = sized(Buffer.from(whole.subarray(0, whole.length - 40)))
    const { reply, rig } = await replyTo([new LeaderHintsEditor(new FakeAddresses())], apiKey, version, frame)
    assert.ok(reply?.subarray(8).equals(frame.subarray(8)))
    assert.equal(rig.meter.undecodables.length, 1)
    assert.deepEqual(rig.meter.reasons, [])
  }
})
