/** Members of a classic group, each on a connection of its own, and the way to a stable pair of them. */
import { heartbeat } from '../../../src/protocol/generated/12-heartbeat.ts'
import { joinGroup } from '../../../src/protocol/generated/11-join-group.ts'
import type { JoinGroupResponse } from '../../../src/protocol/generated/11-join-group.ts'
import { leaveGroup } from '../../../src/protocol/generated/13-leave-group.ts'
import { offsetCommit } from '../../../src/protocol/generated/08-offset-commit.ts'
import { syncGroup } from '../../../src/protocol/generated/14-sync-group.ts'
import type { SyncGroupResponse } from '../../../src/protocol/generated/14-sync-group.ts'
import { eventually, type Side, type Wire } from './side.ts'

const REBALANCE = 27

export interface Join {
  readonly version?: number
  readonly bytes?: string | Buffer
  readonly protocols?: readonly string[]
  readonly protocolType?: string
  readonly sessionTimeoutMs?: number
  readonly rebalanceTimeoutMs?: number
}

export class Member {
  readonly group: string
  readonly instanceId: string | null
  wire: Wire
  id = ''
  generation = -1

  constructor(group: string, wire: Wire, instanceId: string | null = null) {
    this.group = group
    this.wire = wire
    this.instanceId = instanceId
  }

  async join(more: Join = {}): Promise<JoinGroupResponse> {
    const { version = this.id === '' && this.instanceId === null ? 3 : 9, bytes = 'same', protocols = ['range'] } = more
    const metadata = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
    const joined = await this.wire.call(joinGroup, version, {
      groupId: this.group,
      sessionTimeoutMs: more.sessionTimeoutMs ?? 30_000,
      rebalanceTimeoutMs: more.rebalanceTimeoutMs ?? 30_000,
      memberId: this.id,
      groupInstanceId: this.instanceId,
      protocolType: more.protocolType ?? 'consumer',
      protocols: protocols.map((name) => ({ name, metadata })),
    })
    if (joined.errorCode === 0 || joined.errorCode === 79) this.id = joined.memberId
    if (joined.errorCode === 0) this.generation = joined.generationId
    return joined
  }

  sync(plan: Readonly<Record<string, string>> = {}, more: { protocolName?: string; generation?: number } = {}) {
    const assignments = Object.entries(plan).map(([memberId, text]) => ({ memberId, assignment: Buffer.from(text) }))
    return this.wire.call(syncGroup, 5, {
      groupId: this.group,
      generationId: more.generation ?? this.generation,
      memberId: this.id,
      groupInstanceId: this.instanceId,
      protocolType: 'consumer',
      protocolName: more.protocolName ?? 'range',
      assignments,
    })
  }

  async beat(generation = this.generation): Promise<number> {
    const groupInstanceId = this.instanceId
    const request = { groupId: this.group, generationId: generation, memberId: this.id, groupInstanceId }
    return (await this.wire.call(heartbeat, 4, request)).errorCode
  }

  async commit(topic: string, generation = this.generation, version = 8): Promise<number | undefined> {
    const answer = await this.wire.call(offsetCommit, version, {
      groupId: this.group,
      generationIdOrMemberEpoch: generation,
      memberId: this.id,
      groupInstanceId: this.instanceId,
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: '' }] }],
    })
    return answer.topics[0]?.partitions[0]?.errorCode
  }

  async leave(): Promise<number | undefined> {
    const members = [{ memberId: this.id, groupInstanceId: this.instanceId }]
    const answer = await this.wire.call(leaveGroup, 5, { groupId: this.group, members })
    return answer.errorCode || answer.members[0]?.errorCode
  }

  /** Heartbeats until a rebalance is on. */
  async told(): Promise<void> {
    await eventually(
      () => this.beat(),
      (code) => code === REBALANCE,
    )
  }
}

export interface Pair {
  readonly leader: Member
  readonly follower: Member
  /** The generation in which both are stable. */
  readonly generation: number
}

/** Two members, stable, with the assignments `one` (leader) and `two`. */
export async function pair(
  side: Side,
  instances: readonly [string, string] | [] = [],
  joining: Join = {},
): Promise<Pair> {
  const group = side.name()
  const leader = new Member(group, await side.wire(), instances[0] ?? null)
  const follower = new Member(group, await side.wire(), instances[1] ?? null)
  await leader.join(joining)
  await leader.sync({ [leader.id]: 'all' })
  const held = follower.join(joining)
  await leader.told()
  await leader.join(joining)
  await held
  await Promise.all([leader.sync({ [leader.id]: 'one', [follower.id]: 'two' }), follower.sync()])
  return { leader, follower, generation: leader.generation }
}

/** What an answer to SyncGroup says. */
export function assigned({ errorCode, assignment }: SyncGroupResponse): [number, string] {
  return [errorCode, assignment.toString()]
}

/** [error code, generations since `base`, whether the member leads, how many members it is told]. */
export function joinedAs(answer: JoinGroupResponse, base: number): [number, number, boolean, number] {
  return [answer.errorCode, answer.generationId - base, answer.leader === answer.memberId, answer.members.length]
}

/** 'unanswered' if the request ends with its connection. */
export async function orUnanswered<T>(answer: Promise<T>): Promise<T | 'unanswered'> {
  return answer.catch(() => 'unanswered' as const)
}
