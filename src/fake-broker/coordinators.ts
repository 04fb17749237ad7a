/**
 * Which node coordinates which group or transactional id, and the groups themselves. A coordinator that moves loads its
 * groups anew: while it does, joins are refused with 14, yet heartbeats are answered (as Kafka 4.3.1 does).
 */
import { errorCodes } from '../protocol/error-codes.ts'
import { Group, type GroupOptions } from './group.ts'

export class Coordinators {
  readonly #groups = new Map<string, Group>()
  readonly #loadingUntil = new Map<string, number>()
  readonly #options: GroupOptions
  readonly #nodeIds: () => readonly number[]

  /** `nodeIds`: the nodes that are up, in a fixed order. */
  constructor(nodeIds: () => readonly number[], options: GroupOptions) {
    this.#nodeIds = nodeIds
    this.#options = options
  }

  get groups(): Group[] {
    return Array.from(this.#groups.values())
  }

  /** −1 when no node is up. */
  nodeOf(key: string): number {
    const nodeIds = this.#nodeIds()
    let hash = 0
    for (const char of key) hash = (Math.imul(hash, 31) + (char.codePointAt(0) ?? 0)) >>> 0
    return nodeIds[hash % nodeIds.length] ?? -1
  }

  /** 0, or why this node does not answer for the group: 16, or 14 while it loads (`evenLoading`: never 14). */
  check(groupId: string, nodeId: number, nowMs: number, evenLoading = false): number {
    if (this.nodeOf(groupId) !== nodeId) return errorCodes.NOT_COORDINATOR
    const loading = nowMs < (this.#loadingUntil.get(groupId) ?? 0)
    return loading && !evenLoading ? errorCodes.COORDINATOR_LOAD_IN_PROGRESS : 0
  }

  get(groupId: string): Group | undefined {
    return this.#groups.get(groupId)
  }

  getOrCreate(groupId: string, nowMs: number): Group {
    let group = this.#groups.get(groupId)
    if (group === undefined) {
      group = new Group(groupId, this.#options, nowMs)
      this.#groups.set(groupId, group)
    }
    return group
  }

  delete(groupId: string): void {
    this.#groups.delete(groupId)
  }

  /** Loads a group anew, as its next coordinator does; answers 14 for `loadMs`. */
  reload(groupId: string, nowMs: number, loadMs: number): void {
    this.#groups.get(groupId)?.reload(nowMs)
    this.#loadingUntil.set(groupId, nowMs + loadMs)
  }

  expire(nowMs: number): void {
    for (const group of this.#groups.values()) if (group.nextDeadline() <= nowMs) group.expire(nowMs)
  }

  nextDeadline(): number {
    let next = Number.POSITIVE_INFINITY
    for (const group of this.#groups.values()) next = Math.min(next, group.nextDeadline())
    return next
  }
}
