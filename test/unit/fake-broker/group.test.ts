/** Classic groups: what was measured on Kafka 4.3.1, state by state. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Group } from '../../../src/fake-broker/group.ts'
import type { JoinReply, JoinRequest, SyncReply } from '../../../src/fake-broker/group-member.ts'

const [ILLEGAL_GENERATION, INCONSISTENT, UNKNOWN_MEMBER, REBALANCE, ID_REQUIRED, FENCED] = [22, 23, 25, 27, 79, 82]
const isOpen = (held: { reply?: unknown }): boolean => held.reply === undefined
const bytes = (text: string): Buffer => Buffer.from(text)

class Scene {
  nowMs = 0
  #ids = 0
  readonly group = new Group('g', { initialDelayMs: 0, newMemberId: (name) => `${name}-${++this.#ids}` }, 0)

  join(memberId: string, more: Partial<JoinRequest> = {}): { reply?: JoinReply } {
    const held: { reply?: JoinReply } = {}
    const request: JoinRequest = {
      memberId,
      instanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: bytes('same') }],
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 60_000,
      clientId: 'c',
      clientHost: '/h',
      requireKnownMember: false,
      canSkipAssignment: true,
      ...more,
    }
    this.group.join(request, this.nowMs, (reply) => (held.reply = reply))
    return held
  }

  sync(
    memberId: string,
    generation: number,
    plan: { [member: string]: string } = {},
    more = {},
  ): { reply?: SyncReply } {
    const held: { reply?: SyncReply } = {}
    const assignments = Object.entries(plan).map(([id, text]) => ({ memberId: id, assignment: bytes(text) }))
    const request = { memberId, instanceId: null, generation, protocolName: null, assignments, ...more }
    this.group.sync(request, this.nowMs, (reply) => (held.reply = reply))
    return held
  }

  beat(memberId: string, generation: number): number {
    return this.group.heartbeat(memberId, null, generation, this.nowMs)
  }

  commit(memberId: string, generation: number): number {
    return this.group.checkCommit(memberId, null, generation, this.nowMs)
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.group.expire(this.nowMs)
  }

  /** Members c-1 (leader) and c-2, stable in generation 2. */
  static stable(): Scene {
    const scene = new Scene()
    scene.join('')
    scene.sync('c-1', 1, { 'c-1': 'all' })
    const second = scene.join('')
    scene.join('c-1')
    assert.equal(second.reply?.generation, 2)
    scene.sync('c-2', 2)
    scene.sync('c-1', 2, { 'c-1': 'one', 'c-2': 'two' })
    assert.equal(scene.group.state, 'Stable')
    return scene
  }
}

test('an empty member id is told its id first, and the group waits for it', () => {
  const scene = new Scene()
  const first = scene.join('', { requireKnownMember: true })
  assert.deepEqual([first.reply?.errorCode, first.reply?.memberId], [ID_REQUIRED, 'c-1'])
  const other = scene.join('')
  assert.ok(isOpen(other))
  assert.equal(scene.join('c-1').reply?.generation, 1)
  assert.equal(other.reply?.generation, 1)
})

test('stable: a follower that joins with the same bytes gets the same generation, a leader starts a rebalance', () => {
  const scene = Scene.stable()
  assert.equal(scene.join('c-2').reply?.generation, 2)
  assert.equal(scene.beat('c-1', 2), 0)
  assert.equal(scene.join('c-1').reply, undefined)
  assert.equal(scene.group.state, 'PreparingRebalance')
})

test('stable: a follower with changed bytes starts a rebalance', () => {
  const scene = Scene.stable()
  scene.join('c-2', { protocols: [{ name: 'range', metadata: bytes('other') }] })
  assert.equal(scene.beat('c-1', 2), REBALANCE)
})

test('preparing: commits of the old generation are written; completing: old 22, new 27; stable: old 22', () => {
  const scene = Scene.stable()
  scene.join('c-1')
  assert.deepEqual([scene.commit('c-1', 2), scene.commit('c-2', 2), scene.beat('c-2', 2)], [0, 0, REBALANCE])
  scene.join('c-2')
  assert.equal(scene.group.state, 'CompletingRebalance')
  assert.deepEqual([scene.commit('c-2', 2), scene.commit('c-2', 3)], [ILLEGAL_GENERATION, REBALANCE])
  assert.deepEqual([scene.beat('c-2', 2), scene.beat('c-2', 3)], [ILLEGAL_GENERATION, 0])
  scene.sync('c-1', 3)
  assert.deepEqual([scene.commit('c-2', 2), scene.commit('c-2', 3)], [ILLEGAL_GENERATION, 0])
})

test('of two outstanding joins of one member the first is never answered', () => {
  const scene = Scene.stable()
  const first = scene.join('c-1')
  const second = scene.join('c-1')
  scene.join('c-2')
  assert.ok(isOpen(first))
  assert.equal(second.reply?.generation, 3)
})

test('who does not come back in time is left out, and the next leader is somebody who did', () => {
  const scene = Scene.stable()
  const rejoined = scene.join('c-2', { protocols: [{ name: 'range', metadata: bytes('new') }] })
  scene.pass(9_000)
  scene.beat('c-1', 2)
  scene.pass(9_000)
  scene.beat('c-1', 2)
  assert.ok(isOpen(rejoined))
  scene.pass(10_000)
  assert.deepEqual([rejoined.reply?.leader, rejoined.reply?.members.length], ['c-2', 1])
  assert.equal(scene.beat('c-1', 2), UNKNOWN_MEMBER)
})

test('a session that ends starts a rebalance; one renewed by a commit does not', () => {
  const scene = Scene.stable()
  scene.pass(9_000)
  scene.commit('c-1', 2)
  scene.pass(2_000)
  assert.deepEqual([...scene.group.members.keys()], ['c-1'])
  assert.equal(scene.beat('c-1', 2), REBALANCE)
})

test('leave and join again: generations are not dense', () => {
  const scene = new Scene()
  scene.join('')
  scene.sync('c-1', 1)
  assert.equal(scene.group.leave('c-1', null, 0), 0)
  assert.equal(scene.group.state, 'Empty')
  assert.equal(scene.join('').reply?.generation, 3)
})

test('commits from outside: only while the group is empty', () => {
  const scene = new Scene()
  assert.equal(scene.commit('', -1), 0)
  assert.equal(scene.commit('c-9', 3), UNKNOWN_MEMBER)
  assert.equal(Scene.stable().commit('', -1), UNKNOWN_MEMBER)
})

test('a protocol that not all support is refused, and so is a SyncGroup with another name than was chosen', () => {
  const scene = Scene.stable()
  const other = scene.join('', { protocols: [{ name: 'sticky', metadata: bytes('') }] })
  assert.equal(other.reply?.errorCode, INCONSISTENT)
  assert.equal(scene.sync('c-2', 2, {}, { protocolName: 'sticky' }).reply?.errorCode, INCONSISTENT)
  assert.equal(scene.sync('c-2', 2, {}, { protocolName: 'range' }).reply?.assignment.toString(), 'two')
})

test('static members: a follower is replaced without a rebalance, a leader is told to skip, the old id is fenced', () => {
  const scene = new Scene()
  const leader = scene.join('', { instanceId: 'i' }).reply?.memberId ?? ''
  scene.sync(leader, 1, { [leader]: 'mine' }, { instanceId: 'i' })
  const restarted = scene.join('', { instanceId: 'i' })
  assert.deepEqual([restarted.reply?.generation, restarted.reply?.skipAssignment], [1, true])
  assert.equal(restarted.reply?.leader, restarted.reply?.memberId)
  assert.equal(scene.group.heartbeat(leader, 'i', 1, 0), FENCED)
  const old = scene.join('', { instanceId: 'i', canSkipAssignment: false })
  assert.equal(old.reply?.leader, restarted.reply?.memberId)
})

test('a coordinator that restarts knows each member by its chosen protocol only', () => {
  const scene = new Scene()
  const both = [
    { name: 'extra', metadata: bytes('x') },
    { name: 'range', metadata: bytes('r') },
  ]
  scene.join('', { protocols: both })
  scene.sync('c-1', 1)
  scene.group.reload(0)
  assert.equal(scene.group.state, 'Stable')
  assert.equal(scene.beat('c-1', 1), 0)
  assert.equal(scene.join('', { protocols: both.slice(1) }).reply?.errorCode, INCONSISTENT)
})

test('what was not assigned yet is forgotten with the coordinator', () => {
  const scene = Scene.stable()
  scene.join('c-1')
  scene.join('c-2')
  scene.group.reload(0)
  assert.deepEqual([scene.group.state, scene.group.generation], ['Stable', 2])
})
