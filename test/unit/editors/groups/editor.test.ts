import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupEditor } from '../../../../src/editors/groups/editor.ts'
import type { AssignmentPolicy, MemberShare } from '../../../../src/editors/groups/policy.ts'
import { apiKeys } from '../../../../src/protocol/api-table.ts'
import { codec } from '../../../../src/protocol/codecs.ts'
import { decodeAssignment, encodeAssignment, encodeSubscription } from '../../../../src/protocol/embedded.ts'
import type { SyncGroupRequest } from '../../../../src/protocol/generated/14-sync-group.ts'
import { peekBodyStart } from '../../../../src/protocol/peek.ts'
import { Reader } from '../../../../src/protocol/reader.ts'
import { codecRequest, codecResponse } from '../../../support/codec-frames.ts'
import { Rig } from '../../../support/rig.ts'

const { JoinGroup, SyncGroup } = apiKeys
const userData = Buffer.from('kept')

/** Gives partition 5 of `t` to the other member. */
class Swap implements AssignmentPolicy {
  seen: { group: string; assignor: string; shares: readonly MemberShare[] } | undefined
  isWatching = true

  watches(): boolean {
    return this.isWatching
  }

  plan(group: string, assignor: string, shares: readonly MemberShare[]): readonly MemberShare[] {
    this.seen = { group, assignor, shares }
    return shares.map((share) => ({
      ...share,
      assigned: share.member === 'a' ? { t: [0], u: [1] } : { t: [1, 5] },
    }))
  }
}

interface Setting {
  policy?: AssignmentPolicy
  versions?: readonly [join: number, sync: number]
  subscription?: number
  protocolType?: string
  generation?: number
  leader?: string
  metadata?: Buffer
  given?: Buffer
}

/** One generation of a group of two, whose leader `a` is at the proxy: what the broker gets as its SyncGroup. */
async function generation(setting: Setting): Promise<{ sent: Buffer; got: Buffer; body: SyncGroupRequest }> {
  const { policy = new Swap(), versions = [9, 5], subscription = 3, generation: synced = 7, leader = 'a' } = setting
  const [joinVersion, syncVersion] = versions
  const value = { topics: ['t', 'u'], userData, ownedPartitions: [{ topic: 't', partitions: [5] }], generationId: 6 }
  const metadata = setting.metadata ?? encodeSubscription({ version: subscription, value })
  const members =
    leader === 'a'
      ? [
          { memberId: 'a', metadata },
          { memberId: 'b', metadata },
        ]
      : []
  const { protocolType = 'consumer' } = setting
  const named = { errorCode: 0, generationId: 7, protocolType, protocolName: 'range', leader, memberId: 'a', members }
  const frames: Buffer[] = []
  const rig = await Rig.start({
    handlers: [new GroupEditor([policy])],
    broker: (peer) => {
      peer.onFrame = (frame) => {
        frames.push(Buffer.from(frame))
        if (frame.readInt16BE(4) === JoinGroup)
          peer.send(codecResponse(JoinGroup, joinVersion, frame.readInt32BE(8), named))
      }
    },
  })
  const client = rig.connect()
  const joining = { groupId: 'g', protocolType: 'consumer', memberId: 'a', protocols: [{ name: 'range', metadata }] }
  client.send(codecRequest(JoinGroup, joinVersion, 1, joining))
  await rig.run(() => client.frames.length > 0)
  const assigned = [
    { topic: 't', partitions: [0, 5] },
    { topic: 'u', partitions: [1] },
  ]
  const a =
    setting.given ??
    encodeAssignment({ version: 1, value: { assignedPartitions: assigned, userData }, rest: Buffer.from('+') })
  const b = encodeAssignment({
    version: 0,
    value: { assignedPartitions: [{ topic: 't', partitions: [1] }], userData: null },
  })
  const assignments = [
    { memberId: 'a', assignment: a },
    { memberId: 'b', assignment: b },
  ]
  const sent = codecRequest(SyncGroup, syncVersion, 2, {
    groupId: 'g',
    generationId: synced,
    memberId: 'a',
    protocolType,
    protocolName: 'range',
    assignments,
  })
  client.send(sent)
  await rig.run(() => frames.length > 1)
  const got = frames[1] ?? assert.fail('no SyncGroup came')
  const body = codec(SyncGroup).decodeRequest(new Reader(got, peekBodyStart(got, 4, got.length)), syncVersion)
  return { sent, got, body }
}

/** Equal but for the correlation id. */
function isUntouched({ sent, got }: { sent: Buffer; got: Buffer }): boolean {
  return sent.subarray(0, 8).equals(got.subarray(0, 8)) && sent.subarray(12).equals(got.subarray(12))
}

void test('the leader’s assignment is written as planned; user data, versions and what is unknown stay', async () => {
  for (const versions of [
    [9, 5],
    [7, 5],
    [5, 3],
    [2, 1],
  ] as const) {
    for (const subscription of [0, 1, 2, 3]) {
      const policy = new Swap()
      const { body } = await generation({ policy, versions, subscription })
      assert.equal(policy.seen?.assignor, 'range')
      assert.deepEqual(policy.seen?.shares[0], {
        member: 'a',
        topics: ['t', 'u'],
        assigned: { t: [0, 5], u: [1] },
        owned: subscription >= 1 ? { t: [5] } : {},
      })
      const [a, b] = body.assignments.map(({ assignment }) => decodeAssignment(assignment))
      assert.deepEqual(a?.value.assignedPartitions, [
        { topic: 't', partitions: [0] },
        { topic: 'u', partitions: [1] },
      ])
      assert.deepEqual(
        [a?.version, a?.value.userData?.toString(), Buffer.from(a?.rest ?? []).toString()],
        [1, 'kept', '+'],
      )
      assert.deepEqual(b?.value.assignedPartitions, [{ topic: 't', partitions: [1, 5] }])
    }
  }
})

void test('nothing is touched that is not the leader’s assignment of this generation', async () => {
  assert.ok(isUntouched(await generation({ generation: 6 })), 'another generation')
  assert.ok(isUntouched(await generation({ leader: 'b' })), 'a follower')
  assert.ok(isUntouched(await generation({ protocolType: 'connect' })), 'not consumers')
  assert.ok(isUntouched(await generation({ metadata: Buffer.from([0]) })), 'a subscription that cannot be read')
  assert.ok(isUntouched(await generation({ given: Buffer.from([0, 0, 9]) })), 'an assignment that cannot be read')
})

void test('policies that have nothing to watch, or change nothing, leave every byte', async () => {
  const policy = new Swap()
  policy.isWatching = false
  assert.ok(isUntouched(await generation({ policy })))
  assert.equal(policy.seen, undefined)
  const keeps: AssignmentPolicy = { watches: () => true, plan: (_group, _assignor, shares) => shares }
  assert.ok(isUntouched(await generation({ policy: keeps })))
})
