import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopicEditor } from '../../../../src/editors/metadata/topic-editor.ts'
import type { ListedTopic, Showing, TopicPolicy } from '../../../../src/editors/metadata/topic-policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import type { MetadataResponse } from '../../../../src/protocol/generated/03-metadata.ts'
import { metadataAnswer } from '../../../support/answers.ts'
import { answeringRig } from '../../../support/answering-rig.ts'
import { codecRequest, codecResponse, openResponse } from '../../../support/codec-frames.ts'
import { handler } from '../../../support/handlers.ts'
import { Prng } from '../../../support/prng.ts'

const shape = { nodes: [1, 2, 3], tags: true, recordBytes: 0, endpoints: false }

class Scripted implements TopicPolicy {
  decision: Showing | undefined = 'wait'
  readonly seen: ListedTopic[] = []
  readonly shown: number[] = []
  change: () => void = () => undefined

  topic(_connection: unknown, topic: ListedTopic) {
    this.seen.push(topic)
    if (this.decision === undefined) return undefined
    const shown = (count: number): void => void this.shown.push(count)
    return {
      decide: (isOverdue: boolean) =>
        isOverdue && this.decision === 'wait' ? 'unavailable' : (this.decision ?? 'wait'),
      shown,
    }
  }

  onChange(listener: () => void): void {
    this.change = listener
  }

  closed(): void {
    // nothing is kept
  }
}

async function rigOf(policy: Scripted, frames: readonly Buffer[]) {
  const made: TopicEditor[] = []
  // The editor's timers must run in the rig's time, which there is none of before the rig.
  const late = handler('response', [apiKeys.Metadata], (exchange) => made[0]?.onResponse(exchange))
  const answered = await answeringRig([late], frames)
  made.push(new TopicEditor(policy, answered.rig.runtime))
  return answered
}

test('topic view: partitions above the count are taken out, everything else stays, in every version', async () => {
  const prng = new Prng(7)
  for (let version = 0; version <= 13; version++) {
    for (let round = 0; round < 8; round++) {
      const draft = metadataAnswer(prng, version, { ...shape, tags: version >= 9 })
      const frame = codecResponse(apiKeys.Metadata, version, 0, draft)
      const before = openResponse(apiKeys.Metadata, version, frame) as MetadataResponse
      const policy = new Scripted()
      policy.decision = prng.below(4)
      const { rig, client } = await rigOf(policy, [frame])
      client.send(codecRequest(apiKeys.Metadata, version, 5, { topics: [] }))
      await rig.run(() => client.frames.length > 0)
      const count = policy.decision
      for (const topic of before.topics)
        if (topic.name !== null && topic.errorCode === 0)
          topic.partitions = topic.partitions.filter(({ partitionIndex }) => partitionIndex < count)
      const after = openResponse(apiKeys.Metadata, version, client.frames[0] as Buffer)
      assert.deepEqual(after, before, `v${version}`)
    }
  }
})

test('topic view: an answer is held until the policy can say, and shown with what it says then', async () => {
  const policy = new Scripted()
  const partitions = [0, 1, 2, 3].map((partitionIndex) => ({ partitionIndex, leaderId: 1 }))
  const frame = codecResponse(apiKeys.Metadata, 9, 0, { topics: [{ name: 't', partitions }] })
  const { rig, client } = await rigOf(policy, [frame])
  client.send(codecRequest(apiKeys.Metadata, 9, 5, { topics: [{ name: 't' }] }))
  await rig.run(() => false, 3000)
  assert.equal(client.frames.length, 0)
  policy.decision = 2
  policy.change()
  await rig.run(() => client.frames.length === 1)
  const { topics } = openResponse(apiKeys.Metadata, 9, client.frames[0] as Buffer) as MetadataResponse
  assert.equal(topics[0]?.partitions.length, 2)
  assert.deepEqual(policy.shown, [2])
  assert.deepEqual([policy.seen[0]?.count, policy.seen[0]?.isNamed], [4, true])
})

test('topic view: an answer that waits too long says that no leader is available', async () => {
  const policy = new Scripted()
  const partitions = [{ partitionIndex: 0, leaderId: 1 }]
  const topics = [
    { name: 't', partitions },
    { name: 'bad', errorCode: 29, partitions: [] },
  ]
  const { rig, client } = await rigOf(policy, [codecResponse(apiKeys.Metadata, 12, 0, { topics })])
  client.send(codecRequest(apiKeys.Metadata, 12, 5, { topics: null }))
  await rig.run(() => client.frames.length === 1, 4100)
  const answer = openResponse(apiKeys.Metadata, 12, client.frames[0] as Buffer) as MetadataResponse
  assert.deepEqual(
    answer.topics.map(({ errorCode, partitions: kept }) => [errorCode, kept.length]),
    [
      [5, 0],
      [29, 0],
    ],
  )
  assert.deepEqual(policy.shown, [])
})

test('topic view: a topic that nobody asks for costs no copy', async () => {
  const policy = new Scripted()
  policy.decision = undefined
  const frame = codecResponse(apiKeys.Metadata, 9, 0, { topics: [{ name: 't', partitions: [] }] })
  const { rig, client } = await rigOf(policy, [frame])
  client.send(codecRequest(apiKeys.Metadata, 9, 5, { topics: null }))
  await rig.run(() => client.frames.length === 1)
  assert.deepEqual(client.frames[0]?.subarray(8), frame.subarray(8))
})
