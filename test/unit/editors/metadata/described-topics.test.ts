import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DescribedTopics } from '../../../../src/editors/metadata/described-topics.ts'
import type { ListedTopic, Showing } from '../../../../src/editors/metadata/topic-policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import type { DescribeTopicPartitionsResponse } from '../../../../src/protocol/generated/75-describe-topic-partitions.ts'
import { answeringRig } from '../../../support/answering-rig.ts'
import { codecRequest, codecResponse, openResponse } from '../../../support/codec-frames.ts'

const key = apiKeys.DescribeTopicPartitions
const topicOf = (name: string, partitions: readonly number[], errorCode = 0) => ({
  errorCode,
  name,
  topicId: 'AAAAAAAAAAAAAAAAAAAAKg',
  isInternal: false,
  partitions: partitions.map((partitionIndex) => ({ errorCode: 0, partitionIndex, leaderId: 1, leaderEpoch: 2 })),
})

/** What a client is given of these pages, where the policy says so of topic `t`. @param told counts that it was told */
async function pages(decision: Showing | undefined, drafts: readonly object[], told: [string, number][] = []) {
  const topic = (_connection: unknown, { name, count }: ListedTopic) => {
    told.push([name, count])
    return name !== 't' || decision === undefined ? undefined : { decide: () => decision, shown: () => assert.fail() }
  }
  const frames = drafts.map((draft) => codecResponse(key, 0, 0, draft))
  const { rig, client } = await answeringRig([new DescribedTopics({ topic })], frames)
  const given: DescribeTopicPartitionsResponse[] = []
  for (const index of drafts.keys()) {
    client.send(codecRequest(key, 0, 7 + index, { topics: [{ name: 't' }] }))
    await rig.run(() => client.frames.length > index, 1000)
    const frame = client.frames[index] as Buffer
    assert.equal(frame.readInt32BE(4), 7 + index)
    given.push(openResponse(key, 0, frame) as DescribeTopicPartitionsResponse)
  }
  return given.map(({ topics, nextCursor }) => ({
    shown: topics.map(({ name, errorCode, partitions }) => [
      name,
      errorCode,
      partitions.map((one) => one.partitionIndex),
    ]),
    next: nextCursor === null ? undefined : [nextCursor.topicName, nextCursor.partitionIndex],
  }))
}

const cursor = (topicName: string, partitionIndex: number) => ({ topicName, partitionIndex })

test('hidden partitions are in no page, and cursors lead through them to the next topic', async () => {
  const given = await pages(3, [
    { topics: [topicOf('t', [0, 1])], nextCursor: cursor('t', 2) },
    { topics: [topicOf('t', [2, 3])], nextCursor: cursor('t', 4) },
    { topics: [topicOf('t', [4, 5]), topicOf('u', [0, 5])], nextCursor: null },
  ])
  assert.deepEqual(given, [
    { shown: [['t', 0, [0, 1]]], next: ['t', 2] },
    { shown: [['t', 0, [2]]], next: ['t', 4] },
    {
      shown: [
        ['t', 0, []],
        ['u', 0, [0, 5]],
      ],
      next: undefined,
    },
  ])
})

test('what nothing is hidden of, or has an error, passes; what may not be shown now is to be asked for again', async () => {
  const draft = { topics: [topicOf('t', [0, 1]), topicOf('t', [], 3)], nextCursor: null }
  const whole = [
    {
      shown: [
        ['t', 0, [0, 1]],
        ['t', 3, []],
      ],
      next: undefined,
    },
  ]
  assert.deepEqual(await pages(undefined, [draft]), whole)
  assert.deepEqual(await pages(6, [draft]), whole)
  assert.deepEqual((await pages('unavailable', [draft]))[0]?.shown[0], ['t', 5, []])
})

test('a page that ends within a topic does not tell how many partitions it has', async () => {
  const drafts = [
    { topics: [topicOf('u', [0, 1]), topicOf('t', [0])], nextCursor: cursor('t', 1) },
    { topics: [topicOf('t', [1, 2])], nextCursor: null },
  ]
  const told: [string, number][] = []
  await pages(6, drafts, told)
  assert.deepEqual(told, [
    ['u', 2],
    ['t', 0],
    ['t', 3],
  ])
  const [first] = await pages(0, drafts)
  assert.deepEqual(first?.shown[1], ['t', 0, [0]], 'nothing is known of it, and it passes')
})
