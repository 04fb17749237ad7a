/** Fetch sessions: opened, continued, refused where the client is not up to date, ended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FetchSessions } from '../../../src/fake-broker/fetch-sessions.ts'
import type { FetchRequest } from '../../../src/protocol/generated/01-fetch.ts'

const [NOT_FOUND, WRONG_EPOCH] = [70, 71]

function ask(sessionId: number, sessionEpoch: number, partitions: number[], forgotten: number[] = []): FetchRequest {
  const requests = partitions.map((partition) => ({ partition, fetchOffset: 0 }))
  const topics = partitions.length === 0 ? [] : [{ topic: 't', topicId: '', partitions: requests }]
  const forgottenTopicsData = forgotten.length === 0 ? [] : [{ topic: 't', topicId: '', partitions: forgotten }]
  return { sessionId, sessionEpoch, topics, forgottenTopicsData } as unknown as FetchRequest
}

function asked(answer: ReturnType<FetchSessions['resolve']>): number[] | number {
  return 'asked' in answer ? answer.asked.map((a) => a.request.partition) : answer.errorCode
}

test('a session remembers what was asked for; what is named anew goes to the end, what is forgotten goes', () => {
  const sessions = new FetchSessions(10)
  const first = sessions.resolve(ask(0, 0, [0, 1, 2]), 1)
  assert.ok('asked' in first && !first.incremental && first.sessionId > 0)
  const id = first.sessionId
  assert.deepEqual(asked(sessions.resolve(ask(id, 1, []), 1)), [0, 1, 2])
  assert.deepEqual(asked(sessions.resolve(ask(id, 2, [0, 3], [1]), 1)), [2, 0, 3])
})

test('another epoch, another node and an unknown id are refused', () => {
  const sessions = new FetchSessions(10)
  const first = sessions.resolve(ask(0, 0, [0]), 1)
  const id = 'asked' in first ? first.sessionId : -1
  assert.equal(asked(sessions.resolve(ask(id, 2, []), 1)), WRONG_EPOCH)
  assert.equal(asked(sessions.resolve(ask(id, 1, []), 2)), NOT_FOUND)
  assert.equal(asked(sessions.resolve(ask(99, 1, []), 1)), NOT_FOUND)
  sessions.forget(1)
  assert.equal(asked(sessions.resolve(ask(id, 1, []), 1)), NOT_FOUND)
})

test('epoch −1 ends the session and asks without one; beyond the limit none is opened', () => {
  const sessions = new FetchSessions(1)
  const first = sessions.resolve(ask(0, 0, [0]), 1)
  const id = 'asked' in first ? first.sessionId : -1
  const other = sessions.resolve(ask(0, 0, [0]), 1)
  assert.equal('asked' in other && other.sessionId, 0)
  const last = sessions.resolve(ask(id, -1, [0]), 1)
  assert.equal('asked' in last && last.sessionId, 0)
  assert.equal(asked(sessions.resolve(ask(id, 1, []), 1)), NOT_FOUND)
})

test('an incremental answer leaves out what the client knows', () => {
  const sessions = new FetchSessions(1)
  const first = sessions.resolve(ask(0, 0, [0]), 1)
  if (!('asked' in first)) assert.fail('no session')
  const [partition] = first.asked
  assert.ok(partition)
  const tell = (highWatermark: number): boolean =>
    sessions.tell(first.sessionId, partition, { highWatermark, logStartOffset: 0 })
  assert.deepEqual([tell(5), tell(5), tell(6), tell(6)], [false, true, false, true])
})
