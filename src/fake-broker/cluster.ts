/**
 * The cluster's state behind all its nodes: topics, coordinators, transactions, and who waits for what. It knows no
 * socket; time and chance come from the runtime, so that the same cluster runs on real sockets and in the simulation.
 */
import type { Runtime, Timer } from '../runtime/runtime.ts'
import { Controls } from './control.ts'
import { Coordinators } from './coordinators.ts'
import { FetchSessions } from './fetch-sessions.ts'
import type { GroupState } from './group.ts'
import type { Member } from './group-member.ts'
import type { Partition, Topic } from './topics.ts'
import { Topics } from './topics.ts'
import { type Ended, Transactions } from './transactions.ts'

export interface ClusterOptions {
  clusterId: string
  /** Topics that are asked for and missing are created with this many partitions; 0: they are not. */
  autoCreatePartitions: number
  initialRebalanceDelayMs: number
  offsetsRetentionMs: number
  /** Fetch sessions kept at most; 0: none are offered. */
  fetchSessions: number
  /** How long a coordinator that moved answers 14. */
  coordinatorLoadMs: number
  minSessionTimeoutMs: number
  /** API key → highest version offered; lower than what the codec knows, to stand for an older broker. */
  maxVersions: Readonly<Record<number, number>>
  onGroupState?: (state: GroupState) => void
  onMemberGivenUp?: (groupId: string, member: Member, generation: number) => void
}

export const defaultOptions: ClusterOptions = {
  clusterId: 'fakefakefakefakefakefA',
  autoCreatePartitions: 1,
  initialRebalanceDelayMs: 0,
  offsetsRetentionMs: 7 * 24 * 3_600_000,
  fetchSessions: 1000,
  coordinatorLoadMs: 0,
  minSessionTimeoutMs: 0,
  maxVersions: {},
}

export interface Node {
  id: number
  /** What clients are told. */
  host: string
  port: number
  up: boolean
}

interface Waiter {
  /** Tries to answer; true when it did. `expired`: it must. */
  attempt(expired: boolean): boolean
  timer: Timer
}

export class Cluster {
  readonly options: ClusterOptions
  readonly runtime: Runtime
  readonly nodes: Node[]
  readonly topics: Topics
  readonly coordinators: Coordinators
  readonly transactions = new Transactions()
  readonly controls = new Controls()
  readonly fetchSessions: FetchSessions
  readonly #waiters = new Set<Waiter>()
  #timer: Timer | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #members = 0

  constructor(runtime: Runtime, nodeIds: readonly number[], options: Partial<ClusterOptions> = {}) {
    this.runtime = runtime
    this.options = { ...defaultOptions, ...options }
    this.fetchSessions = new FetchSessions(this.options.fetchSessions)
    this.nodes = nodeIds.map((id) => ({ id, host: '', port: 0, up: true }))
    this.topics = new Topics((below) => runtime.random(below))
    const { initialRebalanceDelayMs, onGroupState, onMemberGivenUp } = this.options
    this.coordinators = new Coordinators(() => this.upNodeIds(), {
      initialDelayMs: initialRebalanceDelayMs,
      newMemberId: (clientId) => `${clientId}-${(++this.#members).toString().padStart(8, '0')}`,
      ...(onGroupState === undefined ? {} : { onState: onGroupState }),
      ...(onMemberGivenUp === undefined ? {} : { onGivenUp: onMemberGivenUp }),
    })
  }

  upNodeIds(): number[] {
    return this.nodes.filter((node) => node.up).map((node) => node.id)
  }

  get controllerId(): number {
    return this.upNodeIds()[0] ?? -1
  }

  createTopic(name: string, partitions: number): Topic {
    return this.topics.create(name, partitions, this.upNodeIds())
  }

  /** The node goes: its partitions get other leaders, its groups another coordinator. */
  nodeDown(nodeId: number): void {
    this.#moveCoordinators(() => this.#setUp(nodeId, false))
    this.fetchSessions.forget(nodeId)
    for (const topic of this.topics.all) {
      for (const partition of topic.partitions) if (partition.leader === nodeId) this.elect(partition)
    }
  }

  nodeUp(nodeId: number): void {
    this.#moveCoordinators(() => this.#setUp(nodeId, true))
    for (const topic of this.topics.all) {
      for (const partition of topic.partitions) if (partition.leader < 0) this.elect(partition)
    }
  }

  /** Gives a partition its next leader, or the named one; returns the log's new end. */
  elect(partition: Partition, leader?: number): number {
    const up = this.upNodeIds()
    const next = up.filter((id) => id !== partition.leader)
    partition.leader = leader ?? next[(partition.index + partition.log.epoch) % next.length] ?? up[0] ?? -1
    const end = partition.log.elect()
    this.wake()
    return end
  }

  /** Writes a transaction's markers and applies its offsets. */
  finish({ transaction, commit }: Ended): void {
    const { producerId, producerEpoch } = transaction
    for (const { topic, partition } of transaction.partitions) {
      const log = this.topics.partition(topic, partition)?.log
      log?.endTransaction(producerId, producerEpoch, commit, this.runtime.wallNow())
    }
    for (const group of transaction.groups) this.coordinators.get(group)?.offsets.end(producerId, commit)
    this.wake()
  }

  /** Attempts now, whenever something was appended, and for the last time after `delayMs`. */
  wait(delayMs: number, attempt: (expired: boolean) => boolean): void {
    if (attempt(delayMs <= 0)) return
    const waiter: Waiter = {
      attempt,
      timer: this.runtime.timer(delayMs, () => {
        this.#waiters.delete(waiter)
        attempt(true)
      }),
    }
    this.#waiters.add(waiter)
  }

  /** Something was appended, or became visible. */
  wake(): void {
    for (const waiter of Array.from(this.#waiters)) {
      if (!this.#waiters.has(waiter) || !waiter.attempt(false)) continue
      waiter.timer.cancel()
      this.#waiters.delete(waiter)
    }
  }

  /** To be called after every request: sees to it that what waits for time alone gets its turn. */
  arm(): void {
    const next = Math.min(this.coordinators.nextDeadline(), this.transactions.nextDeadline())
    if (next >= this.#timerAtMs) return
    this.#timer?.cancel()
    this.#timerAtMs = next
    this.#timer = this.runtime.timer(Math.max(0, next - this.runtime.now()), () => this.#tick())
  }

  close(): void {
    this.#timer?.cancel()
    for (const waiter of this.#waiters) waiter.timer.cancel()
    this.#waiters.clear()
  }

  #tick(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY
    const now = this.runtime.now()
    this.coordinators.expire(now)
    for (const ended of this.transactions.expire(now)) this.finish(ended)
    this.arm()
  }

  #setUp(nodeId: number, up: boolean): void {
    for (const node of this.nodes) if (node.id === nodeId) node.up = up
  }

  #moveCoordinators(change: () => void): void {
    const before = this.coordinators.groups.map((group) => [group.id, this.coordinators.nodeOf(group.id)] as const)
    change()
    for (const [groupId, nodeId] of before) {
      if (this.coordinators.nodeOf(groupId) === nodeId) continue
      this.coordinators.reload(groupId, this.runtime.now(), this.options.coordinatorLoadMs)
    }
    this.arm()
  }
}
