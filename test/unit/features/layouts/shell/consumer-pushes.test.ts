import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConsumerPushes } from '../../../../../src/features/layouts/shell/consumer-pushes.ts'
import type { GuardContext } from '../../../../../src/features/layouts/shell/context.ts'
import { Counters } from '../../../../../src/features/layouts/shell/counters.ts'
import type { KnownTopic } from '../../../../../src/features/layouts/shell/known-topic.ts'
import type { Topics } from '../../../../../src/features/layouts/shell/topics.ts'
import { Writers } from '../../../../../src/features/layouts/shell/writers.ts'
import type { Owned } from '../../../../../src/features/layouts/control/ownership.ts'
import type { Connection } from '../../../../../src/pipeline/connection.ts'
import type { Instance } from '../../../../../src/pipeline/instance.ts'
import { apiKeys } from '../../../../../src/protocol/api-table.ts'
import type { Proposal, TopicState } from '../../../../../src/state/topic-state.ts'
import { codecRequest, codecResponse, openResponse } from '../../../../support/codec-frames.ts'
import { layout } from '../../../../support/layout-states.ts'
import { type Peer, Rig } from '../../../../support/rig.ts'
import { RecordingLog } from '../../../../support/telemetry.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

const NOT_LEADER = 6
const REBALANCE = 27

/** A topic that went from 3 to 6 a moment ago, and one member of a group, `m`, that was shown three partitions. */
function setting(runtime = new VirtualRuntime()) {
  const listeners: (() => void)[] = []
  const openedAtMs = runtime.wallNow()
  let state: TopicState = { topicId: 'T', name: 't', layouts: [layout(0, 3)], cuts: [] }
  const set = (more: Partial<TopicState>): void => {
    state = { ...state, ...more }
    for (const listener of listeners) listener()
  }
  const grow = (): void => {
    const { proposal: _, ...rest } = state
    state = rest
    set({ layouts: [layout(0, 3), { ...layout(1, 6), openedAtMs }] })
  }
  const topic = { name: 't', topicId: 'T', view: () => ({ topic: state }) } as unknown as KnownTopic
  const writers = new Writers(({ clientId }) => clientId ?? '')
  const pushed = new Counters(runtime, new RecordingLog(), '')
  const onChange = (listener: () => void) => void listeners.push(listener)
  const context = { runtime, writers, pushed, state: { onChange } } as unknown as GuardContext
  const owned: Owned = { isLeader: false, isServerSide: false, partitions: new Map([['t', [0]]]), assignor: 'range' }
  const pushes = new ConsumerPushes({
    context,
    topics: { all: () => [topic] } as unknown as Topics,
    ownership: { of: () => owned },
    showings: { memberCount: () => Math.max(...state.layouts.map(({ count }) => count)) },
    drained: { hasLeft: (_, { clientId }) => clientId === 'behind' },
  })
  const shown = (connection: Connection, count: number) => void (writers.of(connection).topic('T').count = count)
  const lead = () => (owned.lead = { memberId: 'm', counts: new Map([['t', 3]]), members: 2, atMs: runtime.now() })
  return { runtime, pushes, grow, set, owned, shown, lead, byReason: () => pushed.byReason('t') }
}

const member = (softwareName = 'apache-kafka-java', ambiguous = false): Instance =>
  ({ softwareName, ambiguous, memberships: new Map([['g', { groupId: 'g' }]]) }) as unknown as Instance
const connectionOf = (instance: Instance, openedAt = 0) =>
  ({ clientId: 'c', instance, openedAt, closed: undefined }) as unknown as Connection
/** What a Fetch of partitions 0 and 1 is refused. */
const refusedAt = (pushes: ConsumerPushes, connection: Connection) =>
  [0, 1].map((partition) => pushes.view(connection)?.partition('t', '', partition, 0)?.refuse)

test('one partition of one Fetch is refused, once, to a member that was shown fewer partitions', () => {
  const { pushes, grow, shown, byReason, set } = setting()
  const connection = connectionOf(member())
  shown(connection, 3)
  assert.deepEqual(refusedAt(pushes, connection), [undefined, undefined])
  set({ proposal: {} as Proposal })
  assert.deepEqual(refusedAt(pushes, connection), [undefined, undefined])
  grow()
  const view = pushes.view(connection)
  assert.equal(view?.partition('t', '', 0, -1), undefined, 'answers pass')
  assert.equal(view?.partition('u', '', 0, 0), undefined, 'another topic')
  assert.deepEqual(refusedAt(pushes, connection), [NOT_LEADER, undefined])
  assert.deepEqual(refusedAt(pushes, connection), [undefined, undefined])
  assert.deepEqual(byReason(), { 'consumer: fetch': 1 })
})

test('whoever knows all partitions, is no member, or refreshes as it joins is left alone, and so are all in the end', async () => {
  const { runtime, pushes, grow, shown } = setting()
  grow()
  const fresh = connectionOf(member())
  shown(fresh, 6)
  const stranger = connectionOf({ ...member(), memberships: new Map() })
  const sarama = connectionOf(member('sarama'))
  for (const connection of [fresh, stranger, sarama])
    assert.deepEqual(refusedAt(pushes, connection), [undefined, undefined])
  await runtime.run(() => false, 600_001)
  const late = connectionOf(member())
  shown(late, 3)
  assert.deepEqual(refusedAt(pushes, late), [undefined, undefined])
})

test('who starts while a topic shrinks was shown fewer partitions than it is to read, after it only if something is left there', async () => {
  const { runtime, pushes, shown, set } = setting()
  const seal = { atMs: runtime.wallNow(), position: 0n, boundaries: [], gaveUp: [], isForced: false }
  set({ layouts: [layout(0, 6), layout(1, 3)] })
  await runtime.run(() => false, 3_600_000)
  const [late, wide, settled] = [connectionOf(member()), connectionOf(member()), connectionOf(member())]
  const behind = connectionOf(Object.assign(member(), { clientId: 'behind' }))
  shown(wide, 6)
  assert.deepEqual(refusedAt(pushes, wide), [undefined, undefined])
  shown(late, 3)
  assert.deepEqual(refusedAt(pushes, late), [NOT_LEADER, undefined])
  set({ layouts: [layout(0, 6), { ...layout(1, 3), seal } as unknown as TopicState['layouts'][0]] })
  assert.deepEqual(refusedAt(pushes, settled), [undefined, undefined])
  assert.deepEqual(refusedAt(pushes, behind), [NOT_LEADER, undefined])
  assert.deepEqual(refusedAt(pushes, behind), [undefined, undefined])
})

test('clients that look alike are asked once on each connection that was there before', async () => {
  const { runtime, pushes, grow } = setting()
  grow()
  const both = member('', true)
  const [a, b] = [connectionOf(both, -1), connectionOf(both, -1)]
  assert.deepEqual(refusedAt(pushes, a), [NOT_LEADER, undefined])
  assert.deepEqual(refusedAt(pushes, b), [NOT_LEADER, undefined])
  await runtime.run(() => false, 10)
  assert.deepEqual(refusedAt(pushes, connectionOf(both, runtime.now())), [undefined, undefined])
})

interface Beaten {
  readonly softwareName: string
  readonly isIdle?: boolean
  /** The count that its Metadata had. */
  readonly count?: number
  /** When it beats, in ms after the change. */
  readonly at: readonly number[]
}

/** Error codes of the answers to Heartbeats of the leader, on a real connection, and whether it was closed then. */
async function beaten({ softwareName, isIdle = false, count = 3, at }: Beaten) {
  let made: ReturnType<typeof setting> | undefined
  const handlers = (runtime: VirtualRuntime) => [(made = setting(runtime)).pushes]
  const answer = (frame: Buffer, peer: Peer): void =>
    peer.send(codecResponse(apiKeys.Heartbeat, 3, frame.readInt32BE(8), { errorCode: 0 }))
  const rig = await Rig.start({ handlers, broker: (broker) => (broker.onFrame = answer) })
  assert.ok(made)
  const instance = member(softwareName)
  Object.assign(rig.context, { instances: { opened: () => instance, named: () => instance, closed: () => undefined } })
  rig.sweep()
  const client = rig.connect()
  made.lead()
  if (isIdle) made.owned.partitions = new Map()
  await rig.run(() => false, 5000)
  made.shown(rig.connection, count)
  made.grow()
  const openedAt = rig.runtime.now()
  const codes: number[] = []
  const body = { groupId: 'g', memberId: 'm', generationId: 1 }
  for (const [correlation, ms] of at.entries()) {
    await rig.run(() => false, openedAt + ms - rig.runtime.now())
    client.send(codecRequest(apiKeys.Heartbeat, 3, correlation, body))
    await rig.run(() => client.frames.length > correlation, 100)
    const frame = client.frames[correlation]
    if (frame !== undefined) codes.push((openResponse(apiKeys.Heartbeat, 3, frame) as { errorCode: number }).errorCode)
  }
  await rig.run(() => false, 2000)
  return { codes, isClosed: rig.connection.closed === 'drained', pushes: made.pushes, made, rig }
}

const share = (id: string, partitions: number[]) => ({
  member: id,
  topics: ['t'],
  assigned: { t: partitions },
  owned: {},
})

test('a leader that refreshes as it joins is told once to join again', async () => {
  const { codes, isClosed } = await beaten({ softwareName: 'sarama', at: [10, 3000, 9000] })
  assert.deepEqual([codes, isClosed], [[REBALANCE, 0, 0], false])
})

test('an idle leader loses its connection, after the answer', async () => {
  const { codes, isClosed } = await beaten({ softwareName: 'apache-kafka-java', isIdle: true, at: [10] })
  assert.deepEqual([codes, isClosed], [[0], true])
})

test('one with partitions is left to its Fetch, and told to join again if it does not by itself', async () => {
  const busy = await beaten({ softwareName: 'apache-kafka-java', at: [10, 3000, 6000] })
  assert.deepEqual([busy.codes, busy.isClosed], [[0, 0, 0], false])
  const fresh = await beaten({ softwareName: 'apache-kafka-java', count: 6, at: [10, 3000, 7100, 9000] })
  assert.deepEqual([fresh.codes, fresh.isClosed], [[0, 0, REBALANCE, 0], false])
})

test('an idle franz-go leader joins again, and its assignment is given what it does not know, once', async () => {
  const { codes, pushes } = await beaten({ softwareName: 'kgo', isIdle: true, at: [10] })
  assert.deepEqual(codes, [REBALANCE])
  const shares = [share('a', [0, 1]), share('b', [2])]
  assert.ok(pushes.watches())
  const planned = pushes.plan('g', 'cooperative-sticky', shares).map(({ assigned }) => assigned['t'])
  assert.deepEqual(planned, [
    [0, 1, 4],
    [2, 3, 5],
  ])
  assert.equal(pushes.watches(), false)
  assert.equal(pushes.plan('g', 'cooperative-sticky', shares), shares)
})

test('what is not completed soon, by a known assignor, and while the topic is as it was, is left as it is', async () => {
  const idle = { softwareName: 'kgo', isIdle: true, at: [10] }
  const shares = [share('a', [0, 1]), share('b', [2])]
  const own = await beaten(idle)
  assert.equal(own.pushes.plan('g', 'pairs-of-topics', shares), shares)

  const changing = await beaten(idle)
  changing.made.set({ proposal: {} as Proposal })
  assert.equal(changing.pushes.plan('g', 'cooperative-sticky', shares), shares)

  const late = await beaten(idle)
  assert.ok(late.pushes.watches())
  await late.rig.run(() => false, 60_000)
  assert.equal(late.pushes.watches(), false, 'forgotten although its leader never came')
  assert.equal(late.pushes.plan('g', 'cooperative-sticky', shares), shares)
})
