/**
 * Commits where members began to read (see `start-positions.ts`), for partitions that a gate waits for and of which the
 * group has nothing committed: else an idle group that starts at the end shuts its gates for ever.
 *
 * On the member's own connection and in its name and generation, so that the coordinator refuses it once the member is
 * not one any more. Never over a commit: the coordinator is asked right before, transactions that are not decided
 * included, what the member commits on that connection meanwhile cancels it, and what the group commits on others (in a
 * transaction, on its producer's) waits until it is over, a few milliseconds: two connections have no order at the
 * coordinator, and the older offset could be written over the newer one. Behind a connection that is busy or dead it waits
 * a moment and then takes the start position's place.
 */
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { requestBytes } from '../../../protocol/encode.ts'
import { Reader } from '../../../protocol/reader.ts'
import type { Connection } from '../../../pipeline/connection.ts'
import type { Membership } from '../../../pipeline/instance.ts'
import type { Runtime, Timer } from '../../../runtime/runtime.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { GatedGroup } from './gated-group.ts'
import type { StartPositions } from './start-positions.ts'
import type { TopicGates } from './topic-gates.ts'

const offsetFetch = codec(apiKeys.OffsetFetch)
const offsetCommit = codec(apiKeys.OffsetCommit)
/** The first that can wait for transactions (KIP-447), and that every broker which has it still knows. */
const FETCH_VERSION = 7
/** With names of topics; members of the new protocol (KIP-848) need the higher one. */
const COMMIT_VERSION = 7
const COMMIT_VERSION_OF_EPOCHS = 9
/** How long others wait for the answer whether there is a commit; after that there is one: theirs. */
const ASKED_MS = 1000
/** And, once a start position was sent, for its acknowledgement: less than clients wait for an answer. */
const SENT_MS = 5000

interface Row {
  readonly gates: TopicGates
  readonly partition: number
  readonly offset: number
}

/** A start position that is asked about or committed now. */
interface Offer {
  readonly connection: Connection
  /** Called at the end of it. */
  readonly waiting: (() => void)[]
  /** Runs while somebody waits. */
  timer: Timer | undefined
  /** The coordinator was asked to commit it. */
  isSent: boolean
  isLate: boolean
  /** Not to be committed any more: others have gone on. */
  isOver: boolean
}

export class StartCommits {
  /** Positions that were committed. */
  count = 0
  private readonly positions: StartPositions
  private readonly log: Log
  private readonly busy = new WeakSet<Membership>()
  private readonly runtime: Runtime
  /** By group. */
  private readonly underWay = new Map<string, Set<Offer>>()
  /** Commits of each member that passed. */
  private readonly commits = new WeakMap<Membership, number>()

  constructor(positions: StartPositions, runtime: Runtime, log: Log) {
    this.positions = positions
    this.runtime = runtime
    this.log = log
  }

  /** The member commits something itself, or joins: what is sent after that would wait behind it. */
  committing(membership: Membership): void {
    this.commits.set(membership, this.commitsOf(membership) + 1)
  }

  /** Whether a start position of any group is being committed. */
  get isUnderWay(): boolean {
    return this.underWay.size > 0
  }

  /**
   * Has a commit of the group on this connection wait for those of start positions that are under way on others.
   * @returns whether it waits; `go` is called when it need not any more
   */
  holds(groupId: string, connection: Connection, go: () => void): boolean {
    for (const other of this.underWay.get(groupId) ?? []) {
      if (other.connection === connection || other.connection.closed !== undefined) continue
      other.waiting.push(() => {
        if (!this.holds(groupId, connection, go)) go()
      })
      other.timer ??= this.runtime.timer(ASKED_MS, () => this.overdue(groupId, other))
      return true
    }
    return false
  }

  /** Its connection may be busy (a Fetch that waits is answered first), or dead: the others go on. */
  private overdue(groupId: string, offer: Offer): void {
    if (offer.isSent && !offer.isLate) {
      offer.isLate = true
      offer.timer = this.runtime.timer(SENT_MS, () => this.overdue(groupId, offer))
      return
    }
    this.end(groupId, offer)
  }

  private begin(groupId: string, connection: Connection): Offer {
    const offer: Offer = { connection, waiting: [], timer: undefined, isSent: false, isLate: false, isOver: false }
    const offers = this.underWay.get(groupId) ?? new Set<Offer>()
    this.underWay.set(groupId, offers.add(offer))
    return offer
  }

  private end(groupId: string, offer: Offer): void {
    offer.isOver = true
    offer.timer?.cancel()
    const offers = this.underWay.get(groupId)
    if (offers?.delete(offer) === true && offers.size === 0) this.underWay.delete(groupId)
    for (const go of offer.waiting.splice(0)) go()
  }

  /**
   * To be called for a request of the member to its coordinator, on that connection.
   * @param hasEpochs it speaks the protocol of KIP-848
   */
  async offer(
    connection: Connection,
    membership: Membership,
    group: GatedGroup,
    hasEpochs: boolean,
    nowMs: () => number,
  ): Promise<void> {
    const rows = this.rowsOf(membership, group)
    if (rows.length === 0 || this.busy.has(membership) || membership.memberId === '') return
    this.busy.add(membership)
    const offer = this.begin(group.id, connection)
    try {
      const { generation } = membership
      const before = this.commitsOf(membership)
      const free = await this.withoutCommit(connection, group.id, rows)
      const isStale = membership.generation !== generation || this.commitsOf(membership) !== before
      if (isStale || offer.isOver || free.length === 0 || connection.closed !== undefined) return
      offer.isSent = true
      await this.commit(connection, membership, free, hasEpochs ? COMMIT_VERSION_OF_EPOCHS : COMMIT_VERSION, nowMs)
    } catch (error) {
      this.log.debug({ group: group.id, error: (error as Error).message }, 'start positions could not be committed')
    } finally {
      this.busy.delete(membership)
      this.end(group.id, offer)
    }
  }

  private commitsOf(membership: Membership): number {
    return this.commits.get(membership) ?? 0
  }

  private rowsOf(membership: Membership, group: GatedGroup): Row[] {
    return group.uncommitted().flatMap(({ gates, partition }) => {
      const offset = this.positions.of(membership, gates.topic.name, partition)
      return offset === undefined ? [] : [{ gates, partition, offset }]
    })
  }

  private async withoutCommit(connection: Connection, groupId: string, rows: readonly Row[]): Promise<Row[]> {
    const topics = byTopic(rows, ({ partition }) => partition).map(([name, partitionIndexes]) => ({
      name,
      partitionIndexes,
    }))
    const body = requestBytes(offsetFetch, { groupId, topics, requireStable: true }, FETCH_VERSION)
    const { frame, bodyAt } = await connection.ask(apiKeys.OffsetFetch, FETCH_VERSION, body)
    const answer = offsetFetch.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), FETCH_VERSION)
    if (answer.errorCode !== 0) return []
    const free = new Set(
      answer.topics.flatMap(({ name, partitions }) =>
        partitions.flatMap(({ partitionIndex, committedOffset, errorCode }) =>
          errorCode === 0 && committedOffset < 0 ? [`${name}/${partitionIndex}`] : [],
        ),
      ),
    )
    return rows.filter(({ gates, partition }) => free.has(`${gates.topic.name}/${partition}`))
  }

  private async commit(
    connection: Connection,
    { groupId, memberId, generation, groupInstanceId }: Membership,
    rows: readonly Row[],
    version: number,
    nowMs: () => number,
  ): Promise<void> {
    const topics = byTopic(rows, ({ partition, offset }) => ({
      partitionIndex: partition,
      committedOffset: offset,
      committedMetadata: '',
    })).map(([name, partitions]) => ({ name, partitions }))
    const request = { groupId, memberId, groupInstanceId, generationIdOrMemberEpoch: generation, topics }
    const body = requestBytes(offsetCommit, request, version)
    const { frame, bodyAt } = await connection.ask(apiKeys.OffsetCommit, version, body)
    const answer = offsetCommit.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), version)
    for (const { name, partitions } of answer.topics) {
      for (const { partitionIndex, errorCode } of partitions) {
        const row = rows.find(({ gates, partition }) => gates.topic.name === name && partition === partitionIndex)
        if (errorCode !== 0 || row === undefined) continue
        this.count++
        row.gates.progress.commit(partitionIndex, row.offset, nowMs())
        const { offset } = row
        this.log.info({ group: groupId, topic: name, partition: partitionIndex, offset }, 'start position committed')
      }
    }
  }
}

function byTopic<T>(rows: readonly Row[], of: (row: Row) => T): [string, T[]][] {
  const topics = new Map<string, T[]>()
  for (const row of rows) {
    const { name } = row.gates.topic
    topics.set(name, [...(topics.get(name) ?? []), of(row)])
  }
  return [...topics]
}
