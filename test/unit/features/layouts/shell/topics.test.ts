/** Topics that are unknown, deleted, made again, or not to be seen by our own client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Intercepted } from '../../../../../src/fake-broker/control.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import { errorCodes } from '../../../../../src/protocol/error-codes.ts'
import type { FetchResponse } from '../../../../../src/protocol/generated/01-fetch.ts'
import type { MetadataRequest } from '../../../../../src/protocol/generated/03-metadata.ts'
import type { ProduceResponse } from '../../../../../src/protocol/generated/00-produce.ts'
import { zeroUuid } from '../../../../../src/protocol/uuid.ts'
import { buildBatch } from '../../../../../src/records/build.ts'
import { type Client, keysIn, LayoutsRig, teach, TOPIC } from '../../../../support/layouts-rig.ts'

const topicOf = (rig: LayoutsRig, name: string) => {
  const topic = rig.broker.cluster.topics.named(name)
  assert.ok(topic !== undefined)
  return topic
}

const partsOf = (rig: LayoutsRig, proxy = 0) => {
  const parts = rig.proxies[proxy]?.proxy.layoutParts
  assert.ok(parts !== undefined)
  return parts
}

function produceTo(client: Client, topic: { topicId: string } | { name: string }) {
  const records = buildBatch({ records: [{ key: Buffer.from('a'), value: Buffer.from('b') }] })
  const topicData = [{ ...topic, partitionData: [{ index: 0, records }] }]
  return client.send(apiKeys.Produce, 'topicId' in topic ? 13 : 12, {
    transactionalId: null,
    acks: -1,
    timeoutMs: 1000,
    topicData,
  })
}

/** The error code of a Produce, and how long its answer took. */
async function produced(
  rig: LayoutsRig,
  client: Client,
  topic: { topicId: string } | { name: string },
): Promise<{ code: number; ms: number }> {
  const startMs = rig.runtime.now()
  const sent = produceTo(client, topic)
  await rig.until(() => sent.answer() !== undefined, 'Produce is answered')
  const { responses } = sent.answer() as ProduceResponse
  return { code: responses[0]?.partitionResponses[0]?.errorCode ?? -1, ms: rig.runtime.now() - startMs }
}

/** What the first Fetch of partition 0 brings. */
async function fetched(client: Client, topic: { topicId: string } | { topic: string }) {
  const wanted = { partition: 0, fetchOffset: 0, currentLeaderEpoch: -1, lastFetchedEpoch: -1, logStartOffset: -1 }
  const answer = (await client.ask(apiKeys.Fetch, 'topicId' in topic ? 13 : 12, {
    replicaId: -1,
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: 1e6,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ ...topic, partitions: [{ ...wanted, partitionMaxBytes: 1e6 }] }],
    forgottenTopicsData: [],
    rackId: '',
  })) as FetchResponse
  const found = answer.responses[0]?.partitions[0]
  return { code: found?.errorCode ?? -1, bytes: found?.records?.length ?? 0 }
}

const isOwn = ({ clientId }: Intercepted): boolean => clientId === 'headgate'
const asked = ({ request }: Intercepted) => (request as MetadataRequest).topics

/** A proxy whose own client is refused every question about topics, as where it cannot log in. */
async function startBlind(rig: LayoutsRig): Promise<number> {
  rig.broker.cluster.controls.add(apiKeys.Metadata, (question) =>
    isOwn(question) && asked(question)?.length !== 0 ? { close: true } : undefined,
  )
  await rig.startProxy()
  return rig.proxies.length - 1
}

async function withPlainTopic(): Promise<{ rig: LayoutsRig; plainId: string }> {
  const rig = await LayoutsRig.start()
  rig.broker.cluster.createTopic('plain', 1)
  return { rig, plainId: topicOf(rig, 'plain').id }
}

test('topics: Produce and Fetch of a topic with a rule that was deleted are answered with what the broker says', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  const old = topicOf(rig, TOPIC).id
  await client.ask(apiKeys.DeleteTopics, 5, { topicNames: [TOPIC], timeoutMs: 1000 })
  await rig.until(() => rig.topic() === undefined, 'the topic is known to be gone', 200_000)
  const other = await rig.client(0, 'other')
  const sent = other.produce(0, ['a'], 'x')
  await rig.until(() => sent.result() !== undefined, 'an answer', 2000)
  assert.equal(sent.result()?.errorCode, errorCodes.UNKNOWN_TOPIC_OR_PARTITION)
  assert.equal((await fetched(other, { topic: TOPIC })).code, errorCodes.UNKNOWN_TOPIC_OR_PARTITION)
  assert.equal((await fetched(other, { topicId: old })).code, errorCodes.UNKNOWN_TOPIC_ID)
  rig.broker.cluster.createTopic(TOPIC, 3)
  await rig.until(() => rig.topic() !== undefined, 'a new one is met', 40_000)
  assert.equal(await other.count(), 3)
  await rig.stop()
})

test('topics: questions about some that may be gone, and are answered slowly, do not let a new one pass unguarded', async () => {
  const rig = await LayoutsRig.start({ matches: `${TOPIC}.*` })
  const gone = Array.from({ length: 8 }, (_, i) => `${TOPIC}-${i}`)
  for (const name of gone) rig.broker.cluster.createTopic(name, 1)
  const { topics, guards } = partsOf(rig).feature
  await rig.until(() => gone.every((name) => topics.find(name, '') !== undefined), 'all are known')
  let isAsked = false
  rig.broker.cluster.controls.add(apiKeys.Metadata, (question) => {
    if (!isOwn(question) || !gone.includes(asked(question)?.[0]?.name ?? '')) return undefined
    isAsked = true
    return { delayMs: 1500 }
  })
  const client = await rig.client()
  await client.ask(apiKeys.DeleteTopics, 5, { topicNames: gone, timeoutMs: 1000 })
  await rig.until(() => isAsked, 'the first is asked for', 100_000)
  rig.broker.cluster.createTopic(`${TOPIC}-new`, 1)
  const { code } = await produced(rig, client, { name: `${TOPIC}-new` })
  assert.equal(code, 0)
  const ledgers = guards.of(topicOf(rig, `${TOPIC}-new`).id)?.facts.ledgers ?? []
  assert.deepEqual(
    [...ledgers].map(({ wrote }) => wrote),
    [true],
  )
  await rig.stop()
})

test('topics: where our own client may ask nothing, plain topics are served by id at once, and people are told', async () => {
  const { rig, plainId } = await withPlainTopic()
  const blind = await startBlind(rig)
  const client = await rig.client(blind, 'c')
  const { code, ms } = await produced(rig, client, { topicId: plainId })
  assert.equal(code, 0)
  assert.ok(ms < 1000, `${ms} ms`)
  const other = await rig.client(blind, 'o')
  assert.ok((await fetched(other, { topicId: plainId })).bytes > 0, 'the first Fetch brings the record')
  const proxy = rig.proxies[blind]
  await rig.until(() => partsOf(rig, blind).feature.topics.problem !== undefined, 'the problem shows')
  const { ready, reasons } = proxy?.proxy.readiness() ?? { ready: false, reasons: [] }
  assert.equal(ready, true)
  assert.ok(
    reasons.some((reason) => /^Headgate's own client cannot list the topics: /.test(reason)),
    reasons.join(),
  )
  await rig.pause(120_000)
  const lines = proxy?.log.lines.filter(({ level, message }) => level === 'warn' && /cannot list/.test(message)) ?? []
  assert.deepEqual(lines.length, 1)
  await rig.stop()
})

test('topics: where our own client may ask nothing, topics with a rule wait, by id and by name', async () => {
  const rig = await LayoutsRig.start()
  const blind = await startBlind(rig)
  const client = await rig.client(blind, 'c')
  const first = await rig.client(0, 'p')
  const sent = first.produce(0, ['a'], 'x')
  await rig.until(() => sent.result()?.errorCode === 0, 'a record')
  assert.deepEqual(await fetched(client, { topicId: topicOf(rig, TOPIC).id }), { code: 0, bytes: 0 })
  await rig.pause(60_000)
  assert.deepEqual(await fetched(client, { topicId: topicOf(rig, TOPIC).id }), { code: 0, bytes: 0 })
  assert.equal(
    (await produced(rig, client, { topicId: topicOf(rig, TOPIC).id })).code,
    errorCodes.NOT_LEADER_OR_FOLLOWER,
  )
  await rig.stop()
})

/** Answers by id that have nothing behind their header. */
function cutShort(frame: Buffer): Buffer {
  const cut = Buffer.from(frame.subarray(0, 9))
  cut.writeInt32BE(cut.length - 4, 0)
  return cut
}

test('topics: an id that nobody can tell is plain after five seconds, and at once if Metadata has shown it', async () => {
  const { rig, plainId } = await withPlainTopic()
  rig.broker.cluster.createTopic('shown', 1)
  rig.broker.cluster.controls.add(apiKeys.Metadata, (question) =>
    asked(question)?.some(({ topicId }) => topicId !== zeroUuid) === true ? { rewrite: cutShort } : undefined,
  )
  const blind = await startBlind(rig)
  const client = await rig.client(blind, 'c')
  await client.ask(apiKeys.Metadata, 12, { topics: [{ name: 'shown', topicId: zeroUuid }] })
  const shown = await produced(rig, client, { topicId: topicOf(rig, 'shown').id })
  assert.ok(shown.code === 0 && shown.ms < 1000, JSON.stringify(shown))
  const unknown = await produced(rig, client, { topicId: plainId })
  assert.ok(unknown.code === 0 && unknown.ms < 6000, JSON.stringify(unknown))
  const later = await produced(rig, client, { topicId: topicOf(rig, '__headgate_state').id })
  assert.ok(later.ms < 1000, 'that is waited for once only')
  await rig.stop()
})

test('topics: ids that clients make up cost a bounded number of questions', async () => {
  const rig = await LayoutsRig.start()
  let questions = 0
  rig.broker.cluster.controls.add(apiKeys.Metadata, () => void questions++)
  const client = await rig.client()
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 1200; i++) {
      const id = Buffer.alloc(16, 7)
      id.writeUInt32BE(i)
      produceTo(client, { topicId: id.toString('base64url') })
    }
    await rig.pause(1000)
  }
  assert.ok(questions <= 1000 + 3, `${questions} questions`)
  await rig.stop()
})

test('topics: a stale broker does not bring a deleted topic back', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  const old = topicOf(rig, TOPIC).id
  await client.ask(apiKeys.DeleteTopics, 5, { topicNames: [TOPIC], timeoutMs: 1000 })
  rig.broker.cluster.createTopic(TOPIC, 2)
  const fresh = topicOf(rig, TOPIC).id
  await rig.until(() => partsOf(rig).feature.topics.find(TOPIC, '')?.topicId === fresh, 'the new one is met', 100_000)
  await rig.until(() => rig.topic() !== undefined, 'and recorded')
  const undo = rig.broker.cluster.controls.add(apiKeys.Metadata, (question) =>
    isOwn(question) ? undefined : { rewrite: (frame) => withId(frame, fresh, old) },
  )
  for (let i = 0; i < 8; i++) await client.count(12)
  assert.equal(partsOf(rig).feature.topics.find(TOPIC, '')?.topicId, fresh)
  undo()
  assert.equal(await client.count(12), 2)
  await rig.stop()
})

/** An answer as a broker gives it that knows the topic under another id. */
function withId(frame: Buffer, from: string, to: string): Buffer {
  const at = frame.indexOf(Buffer.from(from, 'base64url'))
  const copy = Buffer.from(frame)
  if (at >= 0) Buffer.from(to, 'base64url').copy(copy, at)
  return copy
}

test('topics: a deletion that one broker has announced too early is taken back', async () => {
  const rig = await LayoutsRig.start()
  const { id } = topicOf(rig, TOPIC)
  const undo = rig.broker.cluster.controls.add(apiKeys.Metadata, (question) =>
    isOwn(question) && asked(question)?.length !== 0
      ? {
          answer: { topics: [], brokers: rig.broker.cluster.nodes.map(({ id, ...node }) => ({ nodeId: id, ...node })) },
        }
      : undefined,
  )
  await rig.until(() => rig.topic() === undefined, 'it counts as deleted', 200_000)
  undo()
  await rig.until(() => rig.topic() !== undefined, 'it is back', 200_000)
  assert.equal(partsOf(rig).feature.topics.find(TOPIC, '')?.topicId, id)
  await rig.stop()
})

test('topics: batches that wait when their topic is deleted are forwarded and counted', async () => {
  const rig = await LayoutsRig.start()
  const client = await rig.client()
  await client.count()
  await teach(rig, client, 3)
  await rig.settled(rig.expand(5))
  assert.equal(await client.count(), 5)
  const [moved = ''] = keysIn([
    [3, 1],
    [5, 4],
  ])
  // No cut can be taken.
  rig.broker.cluster.controls.add(apiKeys.ListOffsets, (question) => (isOwn(question) ? { close: true } : undefined))
  client.produce(1, [moved], 'old1')
  client.produce(1, [moved], 'old2')
  const fresh = client.produce(4, [moved], 'new')
  await rig.until(() => rig.guard().state.held.length === 1, 'one is held')
  const { guards, topics } = partsOf(rig).feature
  const guard = rig.guard()
  const admin = await rig.client(0, 'admin')
  await admin.ask(apiKeys.DeleteTopics, 5, { topicNames: [TOPIC], timeoutMs: 1000 })
  rig.broker.cluster.createTopic(TOPIC, 3)
  void topics.ask([TOPIC])
  await rig.until(() => fresh.result() !== undefined, 'it is answered')
  assert.notEqual(guards.of(topicOf(rig, TOPIC).id), undefined)
  assert.equal(guard.facts.counted['topic deleted while it waited'], 1)
  await rig.stop()
})
