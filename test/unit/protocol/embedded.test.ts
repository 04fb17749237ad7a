/** Formats inside group messages, control records and internal topics: known bytes, and what follows them is kept. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  controlTypes,
  decodeControlType,
  decodeMarkerEpoch,
  encodeControlKey,
  encodeMarker,
} from '../../../src/protocol/control-records.ts'
import {
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
} from '../../../src/protocol/embedded.ts'
import { ProtocolError } from '../../../src/protocol/errors.ts'
import { decodeInternalRecord, isInternalTopic } from '../../../src/protocol/internal-topics.ts'

test('a subscription of every version, with and without bytes behind it', () => {
  const value = {
    topics: ['a', 'b'],
    userData: Buffer.from('u'),
    ownedPartitions: [{ topic: 'a', partitions: [0, 3] }],
    generationId: 7,
    rackId: 'r1',
  }
  for (const version of [0, 1, 2, 3, 4, 9]) {
    for (const rest of [Buffer.alloc(0), Buffer.from('future')]) {
      const bytes = encodeSubscription({ version, value, rest })
      const back = decodeSubscription(bytes)
      assert.equal(back.version, version)
      assert.deepEqual(back.value.topics, value.topics)
      assert.deepEqual(back.value.ownedPartitions, version >= 1 ? value.ownedPartitions : [])
      assert.equal(back.value.generationId, version >= 2 ? 7 : -1)
      assert.equal(back.value.rackId, version >= 3 ? 'r1' : null)
      assert.deepEqual(Buffer.from(back.rest), rest)
      assert.deepEqual(encodeSubscription(back), bytes)
    }
  }
  assert.throws(() => decodeSubscription(Buffer.from('ffff00000000ffffffff', 'hex')), ProtocolError)
})

test('an assignment as the Java client writes it; none is empty bytes', () => {
  const bytes = Buffer.from('0001000000010001610000000200000000000000010000000000', 'hex')
  const back = decodeAssignment(bytes.subarray(0, bytes.length - 1))
  assert.deepEqual(back.value.assignedPartitions, [{ topic: 'a', partitions: [0, 1] }])
  assert.deepEqual(back.value.userData, Buffer.alloc(0))
  assert.deepEqual(encodeAssignment(back), bytes.subarray(0, bytes.length - 1))
  assert.deepEqual(decodeAssignment(Buffer.alloc(0)).value.assignedPartitions, [])
})

test('control records', () => {
  assert.equal(encodeControlKey(controlTypes.commit).toString('hex'), '00000001')
  assert.equal(decodeControlType(Buffer.from('00000000', 'hex')), controlTypes.abort)
  assert.equal(encodeMarker(5).toString('hex'), '000000000005')
  assert.equal(decodeMarkerEpoch(Buffer.from('000000000005', 'hex')), 5)
  assert.throws(() => decodeControlType(Buffer.alloc(3)), ProtocolError)
})

test('records of __consumer_offsets: a commit, a deletion, an unknown type and an unknown version', () => {
  assert.ok(isInternalTopic('__consumer_offsets'))
  assert.ok(!isInternalTopic('toString'))
  const key = Buffer.from('0001000167000174000000' + '02', 'hex')
  const value = Buffer.from('0003' + '000000000000002a' + 'ffffffff' + '0000' + '0000018b00000000', 'hex')
  const commit = decodeInternalRecord('__consumer_offsets', key, value)
  assert.equal(commit.name, 'OffsetCommit')
  assert.deepEqual(commit.key, { group: 'g', topic: 't', partition: 2 })
  assert.equal((commit.value as { offset: number }).offset, 42)
  assert.equal(decodeInternalRecord('__consumer_offsets', key, null).value, null)
  assert.equal(decodeInternalRecord('__consumer_offsets', Buffer.from('0063', 'hex'), null).name, 'type 99')
  assert.equal(decodeInternalRecord('__consumer_offsets', key, Buffer.from('0063', 'hex')).value, undefined)
  assert.throws(() => decodeInternalRecord('__consumer_offsets', key, value.subarray(0, 9)), ProtocolError)
})
