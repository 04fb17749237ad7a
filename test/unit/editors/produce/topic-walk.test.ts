import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TopicWalk } from '../../../../src/editors/produce/topic-walk.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { peekBodyStart } from '../../../../src/protocol/peek.ts'
import { codecRequest } from '../../../support/codec-frames.ts'
import { Prng } from '../../../support/prng.ts'

function namesIn(frame: Buffer, version: number, end: number): { names: string[]; isComplete: boolean } {
  const walk = new TopicWalk()
  const names: string[] = []
  walk.open(frame, version, peekBodyStart(frame, 4, frame.length), end)
  while (walk.next()) names.push(frame.toString(version >= 13 ? 'base64url' : 'utf8', walk.start, walk.end))
  return { names, isComplete: walk.isComplete }
}

test('topics of a Produce request: all of them, and of every beginning of it only what is there', () => {
  const prng = new Prng(3)
  for (let version = 3; version <= 13; version++) {
    for (let round = 0; round < 6; round++) {
      const topics = Array.from({ length: prng.below(4) }, (_, i) => ({
        ...(version >= 13 ? { topicId: prng.bytes(16).toString('base64url') } : { name: `topic-${i}-é` }),
        partitionData: Array.from({ length: prng.below(4) }, (__, index) => ({
          index,
          records: prng.below(5) === 0 ? null : prng.bytes(prng.below(200)),
          ...(version >= 9 && prng.below(3) === 0 ? { unknownTags: [{ tag: 90, data: prng.bytes(9) }] } : {}),
        })),
      }))
      const transactionalId = prng.below(2) === 0 ? null : 'transaction'
      const body = { transactionalId, acks: 1, timeoutMs: 9, topicData: topics }
      const frame = codecRequest(apiKeys.Produce, version, 1, body)
      const wanted = topics.map((topic) => ('name' in topic ? topic.name : (topic.topicId ?? '')))
      assert.deepEqual(namesIn(frame, version, frame.length), { names: wanted, isComplete: true })
      const bodyAt = peekBodyStart(frame, 4, frame.length)
      for (let end = bodyAt; end < frame.length; end++) {
        const { names, isComplete } = namesIn(frame, version, end)
        assert.deepEqual(names, wanted.slice(0, names.length))
        if (isComplete) assert.equal(names.length, wanted.length)
      }
    }
  }
})

test('topics of a Produce request: bytes that make no sense are never complete with more than there is', () => {
  const prng = new Prng(4)
  for (let round = 0; round < 500; round++) {
    const bytes = prng.bytes(prng.below(60))
    const walk = new TopicWalk()
    walk.open(bytes, 3 + prng.below(11), 0, bytes.length)
    let steps = 0
    while (walk.next()) {
      assert.equal(walk.start <= walk.end && walk.end <= bytes.length, true)
      assert.equal(++steps < 100, true)
    }
  }
})
