/**
 * Fetch sessions of one cluster (KIP-227): what a client asked for once is remembered, so that later requests name only
 * what changed and answers only what is new. A pure state machine. Session ids are unique over all nodes.
 */
import { errorCodes } from '../protocol/error-codes.ts'
import type { FetchRequest, FetchRequestPartition } from '../protocol/generated/01-fetch.ts'

const INITIAL_EPOCH = 0
const FINAL_EPOCH = -1

export interface AskedPartition {
  topic: string
  topicId: string
  request: FetchRequestPartition
}

/** What a partition was last answered with: an incremental answer leaves it out while nothing of it changed. */
export interface Told {
  highWatermark: number
  logStartOffset: number
}

interface Session {
  nodeId: number
  /** Epoch of the next incremental request. */
  epoch: number
  partitions: Map<string, AskedPartition & { told: Told | undefined }>
}

export type SessionAnswer =
  | { errorCode: number }
  | { errorCode: 0; sessionId: number; incremental: boolean; asked: AskedPartition[] }

export class FetchSessions {
  readonly #sessions = new Map<number, Session>()
  readonly #limit: number
  #lastId = 0

  /** @param limit sessions that all nodes keep at most; 0: every Fetch is answered without one */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Opens, continues or ends a session as the request says; what it comes to ask for. */
  resolve(request: FetchRequest, nodeId: number): SessionAnswer {
    const { sessionId, sessionEpoch } = request
    if (sessionEpoch === INITIAL_EPOCH || sessionEpoch === FINAL_EPOCH) {
      this.#sessions.delete(sessionId)
      const asked = Array.from(partitionsOf(request))
      if (sessionEpoch === FINAL_EPOCH || this.#sessions.size >= this.#limit) {
        return { errorCode: 0, sessionId: 0, incremental: false, asked }
      }
      const partitions = new Map(asked.map((a) => [keyOf(a, a.request.partition), { ...a, told: undefined }]))
      this.#sessions.set(++this.#lastId, { nodeId, epoch: 1, partitions })
      return { errorCode: 0, sessionId: this.#lastId, incremental: false, asked }
    }
    const session = this.#sessions.get(sessionId)
    if (session?.nodeId !== nodeId) return { errorCode: errorCodes.FETCH_SESSION_ID_NOT_FOUND }
    if (session.epoch !== sessionEpoch) return { errorCode: errorCodes.INVALID_FETCH_SESSION_EPOCH }
    session.epoch++
    for (const topic of request.forgottenTopicsData) {
      for (const partition of topic.partitions) session.partitions.delete(keyOf(topic, partition))
    }
    for (const a of partitionsOf(request)) {
      const key = keyOf(a, a.request.partition)
      const told = session.partitions.get(key)?.told
      // What is named anew goes to the end, so that nobody starves.
      session.partitions.delete(key)
      session.partitions.set(key, { ...a, told })
    }
    return { errorCode: 0, sessionId, incremental: true, asked: Array.from(session.partitions.values()) }
  }

  /** Whether the session's client knows this already; remembers that it does from now on. */
  tell(sessionId: number, asked: AskedPartition, told: Told): boolean {
    const entry = this.#sessions.get(sessionId)?.partitions.get(keyOf(asked, asked.request.partition))
    if (entry === undefined) return false
    const { told: before } = entry
    entry.told = told
    return before?.highWatermark === told.highWatermark && before.logStartOffset === told.logStartOffset
  }

  /** The node restarted: its sessions are forgotten. */
  forget(nodeId: number): void {
    for (const [id, session] of this.#sessions) if (session.nodeId === nodeId) this.#sessions.delete(id)
  }
}

function* partitionsOf({ topics }: FetchRequest): Generator<AskedPartition> {
  for (const { topic, topicId, partitions } of topics) {
    for (const request of partitions) yield { topic, topicId, request }
  }
}

function keyOf({ topic, topicId }: { topic: string; topicId: string }, partition: number): string {
  return `${topic === '' ? topicId : topic}/${partition}`
}
