/**
 * Membership of a model consumer in a classic group: join, plan as the leader, sync, heartbeat, commit, leave; eager or
 * cooperative. Invariant: `assigned` is said before committed offsets are read, `revoked` after the last commit.
 */
import { errorCodes } from '../../../src/protocol/error-codes.ts'
import { offsetCommit } from '../../../src/protocol/generated/08-offset-commit.ts'
import { offsetFetch } from '../../../src/protocol/generated/09-offset-fetch.ts'
import { joinGroup } from '../../../src/protocol/generated/11-join-group.ts'
import type { JoinGroupResponse } from '../../../src/protocol/generated/11-join-group.ts'
import { heartbeat } from '../../../src/protocol/generated/12-heartbeat.ts'
import { leaveGroup } from '../../../src/protocol/generated/13-leave-group.ts'
import { syncGroup } from '../../../src/protocol/generated/14-sync-group.ts'
import { assign, decodeAssignment, decodeOwned, encodeAssignment, encodeSubscription } from './assignors.ts'
import type { BufferedRecord, ModelConsumer, Owned } from './consumer.ts'
import type { ConsumerFamily } from './families.ts'
import { ConnectionLost, type Wire } from './wire.ts'

const COMMIT_TRIES = 3

/** How a generation ended for this member. */
type Ending = 'rebalance' | 'lost' | 'moved' | 'closed'

export class Membership {
  readonly #consumer: ModelConsumer
  readonly #family: ConsumerFamily
  #memberId = ''
  #coordinator = -1
  #committedMs = 0
  /** Commits under way. */
  #committing = 0
  #ending: Ending | undefined
  /** As the leader: the partition count of the last plan, and when it was last looked at. */
  #planned = 0
  #lookedMs = 0

  constructor(consumer: ModelConsumer) {
    this.#consumer = consumer
    this.#family = consumer.options.family
    consumer.onRecordDone = (record) => this.#afterRecord(record)
  }

  /** Lives in the group until the consumer is closed. */
  async run(): Promise<void> {
    while (!this.#consumer.closed) {
      const ending = await this.#generation()
      if (ending === 'closed') return
      if (ending === 'lost') await this.#loseAll()
      else if (!this.#isCooperative) await this.#giveUp(Array.from(this.#consumer.owned.keys()))
      if (ending === 'moved') await this.#sleep()
    }
  }

  /** Commits, leaves, and closes. */
  async leave(): Promise<void> {
    this.#ending = 'closed'
    await this.#giveUp(Array.from(this.#consumer.owned.keys()))
    try {
      const member = { memberId: this.#memberId, groupInstanceId: null }
      const request = { groupId: this.#groupId, memberId: this.#memberId, members: [member] }
      const wire = this.#wire()
      await wire.ready
      await wire.ask(
        leaveGroup,
        wire.versionOf(leaveGroup) >= 3 ? { ...request, memberId: '' } : { ...request, members: [] },
      )
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
    }
    this.#consumer.close()
  }

  /** Joins, and stays until the generation ends. */
  async #generation(): Promise<Ending> {
    try {
      if (this.#coordinator < 0) this.#coordinator = await this.#consumer.view.coordinator(this.#groupId, 0)
      const joined = await this.#join()
      if (joined === undefined) return 'moved'
      const partitions = await this.#sync(joined)
      if (partitions === undefined) return 'moved'
      const again = await this.#take(partitions)
      this.#consumer.pump()
      return again ? 'rebalance' : await this.#stay()
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error
      this.#coordinator = -1
      return this.#ending ?? 'moved'
    }
  }

  async #join(): Promise<JoinGroupResponse | undefined> {
    const { topic } = this.#consumer.options
    const owned = this.#isCooperative ? Array.from(this.#consumer.owned.keys()) : []
    const answer = await this.#wire().ask(
      joinGroup,
      {
        groupId: this.#groupId,
        sessionTimeoutMs: this.#family.sessionTimeoutMs,
        rebalanceTimeoutMs: this.#family.rebalanceTimeoutMs,
        memberId: this.#memberId,
        protocolType: 'consumer',
        protocols: [{ name: this.#family.assignor, metadata: encodeSubscription(topic, owned) }],
      },
      this.#family.rebalanceTimeoutMs + 1_000,
    )
    switch (answer.errorCode) {
      case errorCodes.NONE:
        this.#memberId = answer.memberId
        this.#consumer.generation = answer.generationId
        return answer
      case errorCodes.MEMBER_ID_REQUIRED:
        this.#memberId = answer.memberId
        return this.#join()
      case errorCodes.UNKNOWN_MEMBER_ID:
        this.#memberId = ''
        await this.#loseAll()
        return undefined
      default:
        this.#coordinator = -1
        return undefined
    }
  }

  async #sync(joined: JoinGroupResponse): Promise<number[] | undefined> {
    this.#planned = 0
    const assignments = joined.leader === joined.memberId && joined.members.length > 0 ? await this.#plan(joined) : []
    const answer = await this.#wire().ask(
      syncGroup,
      {
        groupId: this.#groupId,
        generationId: joined.generationId,
        memberId: this.#memberId,
        protocolType: 'consumer',
        protocolName: joined.protocolName,
        assignments,
      },
      this.#family.rebalanceTimeoutMs + 1_000,
    )
    if (answer.errorCode === errorCodes.NONE) return decodeAssignment(answer.assignment)
    if (answer.errorCode === errorCodes.UNKNOWN_MEMBER_ID) {
      this.#memberId = ''
      await this.#loseAll()
    }
    if (answer.errorCode === errorCodes.NOT_COORDINATOR) this.#coordinator = -1
    return undefined
  }

  async #plan(joined: JoinGroupResponse): Promise<{ memberId: string; assignment: Buffer }[]> {
    const { view, options } = this.#consumer
    await view.refresh([options.topic])
    const members = joined.members.map(({ memberId, metadata }) => ({ memberId, owned: decodeOwned(metadata) }))
    this.#planned = view.count(options.topic)
    this.#lookedMs = view.runtime.now()
    const plan = assign(this.#family.assignor, members, this.#planned)
    return Array.from(plan, ([memberId, partitions]) => {
      return { memberId, assignment: encodeAssignment(options.topic, partitions) }
    })
  }

  /** Applies an assignment; true where a cooperative member has to join again because it gave something up. */
  async #take(partitions: number[]): Promise<boolean> {
    const consumer = this.#consumer
    const gone = Array.from(consumer.owned.keys()).filter((p) => !partitions.includes(p))
    if (gone.length > 0) await this.#giveUp(gone)
    const added = partitions.filter((p) => !consumer.owned.has(p))
    for (const partition of added) consumer.own(partition, false)
    consumer.sayHands('assigned', added)
    // Also what an earlier generation ended too soon for.
    const waiting = Array.from(consumer.owned.values()).filter((o) => !o.begun)
    if (waiting.length > 0) await this.#readCommitted(waiting.map((o) => o.partition))
    return this.#isCooperative && gone.length > 0
  }

  async #readCommitted(partitions: number[]): Promise<void> {
    const { owned, options, view } = this.#consumer
    for (;;) {
      const wire = this.#wire()
      await wire.ready
      const single = [{ name: options.topic, partitionIndexes: partitions }]
      const version = wire.versionOf(offsetFetch)
      const topicId = version >= 10 ? view.topics.get(options.topic)?.id : undefined
      const request =
        version >= 8
          ? { groups: [{ groupId: this.#groupId, topics: single.map((t) => ({ ...t, topicId })) }] }
          : { groupId: this.#groupId, topics: single }
      const answer = await wire.ask(offsetFetch, { ...request, requireStable: version >= 7 })
      const group = answer.groups[0] ?? answer
      if (group.errorCode === errorCodes.NOT_COORDINATOR) throw new ConnectionLost('coordinator moved')
      const rows = group.topics.flatMap((t) => t.partitions)
      if (group.errorCode === 0 && rows.every((row) => row.errorCode === 0)) {
        for (const row of rows) this.#begin(owned.get(row.partitionIndex), row.committedOffset)
        // Not waited for: clients go on with heartbeats while leaders are asked, which may queue behind a long poll.
        this.#consumer.findStarts().catch(options.fail)
        return
      }
      await this.#sleep()
      if (this.#consumer.closed) return
    }
  }

  #begin(owned: Owned | undefined, committed: number): void {
    if (owned === undefined) return
    owned.begun = true
    if (committed < 0) return
    owned.position = committed
    owned.committed = committed
  }

  /** Heartbeats until something ends the generation. */
  async #stay(): Promise<Ending> {
    this.#ending = undefined
    for (;;) {
      await this.#consumer.view.sleep(this.#family.heartbeatMs)
      if (this.#consumer.closed) return 'closed'
      if (this.#ending !== undefined) return this.#ending
      if (this.#family.commit === 'auto') await this.#autoCommit()
      else if (this.#consumer.options.recommits === true && this.#committing === 0) await this.#recommit()
      if (await this.#hasGrown()) return 'rebalance'
      const generationId = this.#consumer.generation
      const request = { groupId: this.#groupId, generationId, memberId: this.#memberId }
      const { errorCode } = await this.#askCoordinator((wire) => wire.ask(heartbeat, request))
      if (errorCode === errorCodes.REBALANCE_IN_PROGRESS) return 'rebalance'
      if (errorCode === errorCodes.UNKNOWN_MEMBER_ID || errorCode === errorCodes.ILLEGAL_GENERATION) {
        if (errorCode === errorCodes.UNKNOWN_MEMBER_ID) this.#memberId = ''
        return 'lost'
      }
      if (errorCode === errorCodes.NOT_COORDINATOR) this.#coordinator = -1
    }
  }

  /** Only a leader looks: it is its plan that is out of date. */
  async #hasGrown(): Promise<boolean> {
    const { view, options } = this.#consumer
    const now = view.runtime.now()
    if (this.#planned === 0 || now - this.#lookedMs < this.#family.metadataMaxAgeMs) return false
    this.#lookedMs = now
    await view.refresh([options.topic])
    return view.count(options.topic) !== this.#planned
  }

  /** Asks the coordinator, finding it anew as long as it is lost. */
  async #askCoordinator<R>(ask: (wire: Wire) => Promise<R>): Promise<R> {
    for (;;) {
      try {
        if (this.#coordinator < 0) this.#coordinator = await this.#consumer.view.coordinator(this.#groupId, 0)
        return await ask(this.#wire())
      } catch (error) {
        if (!(error instanceof ConnectionLost) || this.#consumer.closed) throw error
        this.#coordinator = -1
        await this.#sleep()
      }
    }
  }

  async #giveUp(partitions: number[]): Promise<void> {
    if (partitions.length === 0) return
    const consumer = this.#consumer
    consumer.freeze(partitions)
    if (this.#family.waitsAtRebalance) {
      await consumer.atRest()
      await this.#commit(partitions)
    }
    consumer.disown(partitions)
    consumer.sayHands('revoked', partitions)
  }

  async #loseAll(): Promise<void> {
    const partitions = Array.from(this.#consumer.owned.keys())
    this.#consumer.disown(partitions)
    this.#consumer.sayHands('lost', partitions)
  }

  async #afterRecord(record: BufferedRecord): Promise<void> {
    switch (this.#family.commit) {
      case 'record':
        return this.#commit([record.partition])
      case 'batch':
        return record.last ? this.#commit([record.partition]) : undefined
      case 'asynchronous':
        if (record.last) this.#commit([record.partition], 1).catch(this.#consumer.options.fail)
        return undefined
      case 'auto':
        return this.#autoCommit()
    }
  }

  async #autoCommit(): Promise<void> {
    const now = this.#consumer.view.runtime.now()
    if (now - this.#committedMs < this.#family.commitIntervalMs || this.#committing > 0) return
    this.#committedMs = now
    await this.#commit(Array.from(this.#consumer.owned.keys()))
  }

  /** What was done and is not committed, because the commit was lost or refused: a position may be ahead of the record in hand. */
  async #recommit(): Promise<void> {
    const now = this.#consumer.view.runtime.now()
    if (now - this.#committedMs < this.#family.commitIntervalMs) return
    this.#committedMs = now
    const behind = Array.from(this.#consumer.owned.values()).filter(({ done, committed }) => done > committed)
    await this.#commitAs(
      behind.map((owned) => ({ owned, offset: owned.done })),
      COMMIT_TRIES,
    )
  }

  async #commit(partitions: number[], tries = COMMIT_TRIES): Promise<void> {
    const rows = partitions.flatMap((p) => {
      const owned = this.#consumer.owned.get(p)
      const offset = owned === undefined ? -1 : this.#committable(owned)
      return owned === undefined || offset < 0 || offset === owned.committed ? [] : [{ owned, offset }]
    })
    await this.#commitAs(rows, tries)
  }

  async #commitAs(rows: { owned: Owned; offset: number }[], tries: number): Promise<void> {
    this.#committing++
    try {
      await this.#commitNow(rows, tries)
    } finally {
      this.#committing--
    }
  }

  async #commitNow(rows: { owned: Owned; offset: number }[], tries: number): Promise<void> {
    if (rows.length === 0) return
    const { generation } = this.#consumer
    for (let i = 0; i < tries; i++) {
      try {
        if (this.#coordinator < 0) return
        // Meanwhile the group may have come further, or be asked to.
        const behind =
          i === 0 ? rows : rows.filter(({ owned, offset }) => owned.committed < offset && owned.asked <= offset)
        if (behind.length === 0 || (await this.#commitRows(behind, generation))) return
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
      if (this.#consumer.closed) return
      await this.#sleep()
    }
  }

  /** Behind what the application finished; behind the whole batch where the family's position says so. */
  #committable({ done, consumed }: Owned): number {
    return this.#family.commits === 'position' ? Math.max(done, consumed) : done
  }

  /** True when there is nothing more to try. */
  async #commitRows(rows: { owned: Owned; offset: number }[], generation: number): Promise<boolean> {
    const { options, view } = this.#consumer
    const wire = this.#wire()
    await wire.ready
    const topicId = wire.versionOf(offsetCommit) >= 10 ? view.topics.get(options.topic)?.id : undefined
    const partitions = rows.map(({ owned, offset }) => ({
      partitionIndex: owned.partition,
      committedOffset: offset,
      committedMetadata: '',
    }))
    for (const { owned, offset } of rows) owned.asked = offset
    const answer = await wire.ask(offsetCommit, {
      groupId: this.#groupId,
      generationIdOrMemberEpoch: generation,
      memberId: this.#memberId,
      topics: [{ name: options.topic, topicId, partitions }],
    })
    let settled = true
    for (const { partitionIndex, errorCode } of answer.topics.flatMap((t) => t.partitions)) {
      const row = rows.find(({ owned }) => owned.partition === partitionIndex)
      if (row !== undefined && errorCode === errorCodes.NONE) {
        row.owned.committed = row.offset
        const place = { topic: options.topic, partition: partitionIndex, offset: row.offset }
        this.#consumer.record({ event: 'committed', ...this.#consumer.who(), ...place, generation })
      }
      if (errorCode === errorCodes.REBALANCE_IN_PROGRESS) this.#ending ??= 'rebalance'
      if (errorCode === errorCodes.UNKNOWN_MEMBER_ID || errorCode === errorCodes.ILLEGAL_GENERATION)
        this.#ending ??= 'lost'
      if (errorCode === errorCodes.NOT_COORDINATOR) this.#coordinator = -1
      if (errorCode === errorCodes.COORDINATOR_LOAD_IN_PROGRESS) settled = false
    }
    return settled
  }

  #wire(): Wire {
    return this.#consumer.view.wire(this.#coordinator, this.#family.ownCoordinatorConnection ? 'coordinator' : '')
  }

  #sleep(): Promise<void> {
    return this.#consumer.view.sleep(this.#family.retryBackoffMs)
  }

  get #groupId(): string {
    return this.#consumer.options.group
  }

  get #isCooperative(): boolean {
    return this.#family.assignor === 'cooperative-sticky'
  }
}
