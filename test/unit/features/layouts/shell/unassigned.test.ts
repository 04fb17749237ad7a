import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Owned } from '../../../../../src/features/layouts/control/ownership.ts'
import type { KnownTopic } from '../../../../../src/features/layouts/shell/known-topic.ts'
import { Unassigned } from '../../../../../src/features/layouts/shell/unassigned.ts'
import { Writers } from '../../../../../src/features/layouts/shell/writers.ts'
import type { Connection } from '../../../../../src/pipeline/connection.ts'
import type { Instance } from '../../../../../src/pipeline/instance.ts'
import type { TopicState } from '../../../../../src/state/topic-state.ts'
import { layout } from '../../../../support/layout-states.ts'

/** Topic `t`, which has gone from 3 to 6 partitions, and members of groups. */
function setting() {
  let state: TopicState | undefined = {
    ...{ topicId: 'T', name: 't', cuts: [] },
    layouts: [layout(0, 3), { ...layout(1, 6), openedAtMs: 70 }],
  }
  const topic = { name: 't', topicId: 'T', view: () => state && { topic: state } } as unknown as KnownTopic
  const writers = new Writers(({ clientId }) => clientId ?? '')
  const owned = new Map<Instance, Owned>()
  const readers = new Set<string>()
  const views = new Unassigned({
    topics: { all: () => [topic] },
    writers,
    ownership: { of: (instance) => owned.get(instance) },
    showings: { memberCount: () => 6 },
    mayRead: ({ memberId }) => readers.has(memberId),
  })
  /** @param assigned how many partitions of `t` it assigned as the leader */
  const member = (name: string, count: number, assigned?: number, atMs = 0) => {
    const instance = {
      memberships: new Map([['g', { groupId: 'g', memberId: name }]]),
      ambiguous: false,
    } as unknown as Instance
    readers.add(name)
    const lead = { memberId: name, counts: new Map([['t', assigned ?? 0]]), members: 2, atMs }
    const common: Owned = { isLeader: assigned !== undefined, isServerSide: false, partitions: new Map() }
    owned.set(instance, assigned === undefined ? common : { ...common, lead })
    const open = () => {
      const connection = { clientId: name, instance, listener: 'l', nodeId: 1, closed: undefined }
      writers.of(connection as unknown as Connection).topic('T').count = count
      return connection as unknown as Connection
    }
    return { instance, owned: owned.get(instance) as Owned, connections: [open(), open()] }
  }
  return { views, member, readers, writers, lose: () => (state = undefined) }
}

test('what the leader left out is not assigned, and whoever was shown fewer partitions is named once', () => {
  const { views, member, readers, lose } = setting()
  assert.deepEqual(views.of('g'), [])
  member('idle', 3)
  assert.deepEqual([views.of('g'), views.groups()], [[], []], 'the leader reads elsewhere')
  member('lead', 3, 3)
  member('fresh', 6)
  member('other topics', 0)
  readers.delete('other topics')
  const unaware = ['idle', 'lead'].map((name) => ({ instance: name, member: name, partitions: 3 }))
  assert.deepEqual(views.of('g'), [{ topic: 't', unassigned: [3, 4, 5], leader: 'lead', unaware, sinceMs: 70 }])
  assert.deepEqual(views.groups(), ['g'])
  assert.deepEqual(views.of('another'), [])
  lose()
  assert.deepEqual(views.of('g'), [], 'the state may not be acted upon')
})

test('what was assigned in the meantime, or is assigned by the broker, is not said to be missing', () => {
  const { views, member } = setting()
  const before = member('before', 6, 3, 1)
  assert.equal(views.of('g')[0]?.leader, 'before')
  before.owned.isServerSide = true
  assert.deepEqual(views.of('g'), [])
  before.owned.isServerSide = false
  member('now', 6, 5, 2)
  assert.deepEqual(views.of('g'), [{ topic: 't', unassigned: [5], leader: 'now', unaware: [], sinceMs: 70 }])
  member('at last', 6, 6, 3)
  assert.deepEqual(views.of('g'), [])
})

test('a lead under a former member id does not count, unless clients look alike', () => {
  const { views, member } = setting()
  const { instance } = member('a', 6, 3)
  const membership = instance.memberships.get('g')
  assert.ok(membership)
  membership.memberId = 'b'
  assert.deepEqual(views.of('g'), [])
  instance.ambiguous = true
  assert.equal(views.of('g').length, 1)
})
