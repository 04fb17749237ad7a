/** Peeks agree with the full decoders, for whole frames and for every shorter piece of one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { encodeRequestHeader } from '../../../src/protocol/headers.ts'
import {
  peekAcks,
  peekBodyStart,
  peekClientId,
  peekGroup,
  peekLeavingMembers,
  unknownPosition,
} from '../../../src/protocol/peek.ts'
import { Reader } from '../../../src/protocol/reader.ts'
import { Writer } from '../../../src/protocol/writer.ts'
import { allCells } from '../../oracle/cells.ts'
import type { Cell } from '../../oracle/cells.ts'
import { valuesOf } from '../../oracle/values.ts'

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const cells = allCells()

interface Frame {
  readonly bytes: Buffer
  readonly bodyAt: number
  readonly clientId: string | null
  readonly value: Readonly<Record<string, unknown>>
}

/** Request frames of a cell behind some foreign bytes. */
function frames(cell: Cell): fc.Arbitrary<Frame> {
  const clientIds = fc.option(fc.string({ unit: 'grapheme', maxLength: 20 }), { nil: null })
  return fc.tuple(valuesOf(cell, 'wild'), clientIds).map(([value, clientId]) => {
    const writer = new Writer(16)
    writer.raw(Buffer.alloc(5, 0xff))
    encodeRequestHeader(writer, { apiKey: cell.key, apiVersion: cell.version, correlationId: 1, clientId })
    const bodyAt = writer.at
    cell.encode(writer, value)
    const bytes = writer.finish()
    return { bytes, bodyAt, clientId, value: cell.decode(new Reader(bytes, bodyAt)) as Record<string, unknown> }
  })
}

function requests(key: number): Cell[] {
  return cells.filter((cell) => cell.key === key && cell.message.side === 'request')
}

test(`the body starts where the full header ends (SEED=${seed})`, () => {
  for (const cell of [apiKeys.Produce, apiKeys.Fetch, apiKeys.SaslHandshake].flatMap(requests)) {
    const property = fc.property(frames(cell), ({ bytes, bodyAt, clientId }) => {
      assert.equal(peekBodyStart(bytes, 5, bytes.length), bodyAt)
      assert.equal(peekClientId(bytes, 5, bytes.length), clientId)
      for (let end = 5; end < bodyAt; end++) assert.equal(peekBodyStart(bytes, 5, end), unknownPosition)
    })
    fc.assert(property, { seed, numRuns: 20 })
  }
})

test(`acks are those of the full Produce request (SEED=${seed})`, () => {
  for (const cell of requests(apiKeys.Produce)) {
    const property = fc.property(frames(cell), ({ bytes, bodyAt, value }) => {
      assert.equal(peekAcks(bytes, bodyAt, cell.version, bytes.length), value['acks'])
      for (let end = bodyAt; end < bytes.length; end += Math.max(1, bytes.length >> 7)) {
        const acks = peekAcks(bytes, bodyAt, cell.version, end)
        assert.ok(acks === undefined || acks === value['acks'])
      }
    })
    fc.assert(property, { seed, numRuns: 50 })
  }
})

test(`group and member are those of the full request (SEED=${seed})`, () => {
  const keys = [
    apiKeys.JoinGroup,
    apiKeys.SyncGroup,
    apiKeys.Heartbeat,
    apiKeys.LeaveGroup,
    apiKeys.OffsetCommit,
    apiKeys.ConsumerGroupHeartbeat,
    apiKeys.ShareGroupHeartbeat,
    apiKeys.StreamsGroupHeartbeat,
  ]
  for (const cell of keys.flatMap(requests)) {
    const property = fc.property(frames(cell), ({ bytes, bodyAt, value }) => {
      const expected = expectedGroup(cell, value)
      assert.deepEqual(peekGroup(cell.key, cell.version, bytes, bodyAt, bytes.length), expected)
      for (let end = bodyAt; end < bytes.length; end += Math.max(1, bytes.length >> 5)) {
        const peeked = peekGroup(cell.key, cell.version, bytes, bodyAt, end)
        if (peeked !== undefined) assert.deepEqual(peeked, expected)
      }
    })
    fc.assert(property, { seed, numRuns: 50 })
  }
})

test(`a LeaveGroup names all its members (SEED=${seed})`, () => {
  for (const cell of requests(apiKeys.LeaveGroup)) {
    const property = fc.property(frames(cell), ({ bytes, bodyAt, value }) => {
      const members = value['members'] as { memberId: string; groupInstanceId: string | null }[]
      const expected =
        cell.version < 3
          ? [{ memberId: value['memberId'], instanceId: null }]
          : members.map(({ memberId, groupInstanceId }) => ({ memberId, instanceId: groupInstanceId }))
      assert.deepEqual(peekLeavingMembers(cell.version, bytes, bodyAt, bytes.length), expected)
    })
    fc.assert(property, { seed, numRuns: 50 })
  }
})

function expectedGroup(cell: Cell, value: Readonly<Record<string, unknown>>) {
  const members = cell.key === apiKeys.LeaveGroup && cell.version >= 3 ? (value['members'] as object[]) : undefined
  const member = (members === undefined ? value : (members[0] ?? {})) as Readonly<Record<string, unknown>>
  const generation = value['generationId'] ?? value['generationIdOrMemberEpoch'] ?? value['memberEpoch'] ?? -1
  const hasInstance = cell.key !== apiKeys.ShareGroupHeartbeat && cell.key !== apiKeys.StreamsGroupHeartbeat
  return {
    groupId: value['groupId'],
    memberId: member['memberId'] ?? '',
    generation,
    instanceId: hasInstance ? (member['groupInstanceId'] ?? member['instanceId'] ?? null) : null,
  }
}
