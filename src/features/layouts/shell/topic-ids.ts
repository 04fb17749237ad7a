/**
 * Which topic an id stands for, where our own client does not tell: Fetch and Produce of version 13 name topics by ids
 * only. Ids without a rule are remembered from every answer that shows them; what is left is asked on the connection of
 * the client that named it, which may see what it uses even where our own client may not.
 *
 * Invariant: what is kept and asked is bounded, whatever ids clients make up.
 */
import type { Connection } from '../../../pipeline/connection.ts'
import { apiKeys } from '../../../protocol/api-table.ts'
import { codec } from '../../../protocol/codecs.ts'
import { requestBytes } from '../../../protocol/encode.ts'
import { errorCodes } from '../../../protocol/error-codes.ts'
import { Reader } from '../../../protocol/reader.ts'
import { zeroUuid } from '../../../protocol/uuid.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Log } from '../../../telemetry/log.ts'

const metadata = codec(apiKeys.Metadata)
/** The first version that takes ids; brokers that know Fetch v13 know it (KIP-516). */
const METADATA_VERSION = 12
/** Ids known to have no rule; the oldest are forgotten first. */
const PLAIN_MAX = 50_000
/** Questions under way at once. */
const QUESTIONS_MAX = 16
/** Ids whose question is remembered, and for how long: neither asked again meanwhile, nor others if there are more. */
const ASKED_MAX = 1000
const AGAIN_MS = 30_000
/** A question that failed may be put again, on another connection. */
const RETRY_MS = 500

/** A topic as an answer names it. */
interface Named {
  readonly name: string
  readonly topicId: string
  readonly count: number
}

export class TopicIds {
  private readonly runtime: Runtime
  private readonly log: Log
  private readonly named: (topics: readonly Named[]) => void
  private readonly plain = new Set<string>()
  /** Id → until when it is not asked for again. */
  private readonly asked = new Map<string, number>()
  private questions = 0

  /** @param named told of topics that an answer to a client's connection names */
  constructor(runtime: Runtime, log: Log, named: (topics: readonly Named[]) => void) {
    this.runtime = runtime
    this.log = log
    this.named = named
  }

  /** Whether the id is known to have no rule. */
  isPlain(topicId: string): boolean {
    return this.plain.has(topicId)
  }

  addPlain(topicId: string): void {
    if (topicId === zeroUuid || this.plain.has(topicId)) return
    if (this.plain.size >= PLAIN_MAX) for (const oldest of this.plain) if (this.plain.delete(oldest)) break
    this.plain.add(topicId)
  }

  /** Finds out, in the background, which topic it is. */
  identify(topicId: string, connection: Connection): void {
    const now = this.runtime.now()
    if (this.plain.has(topicId) || this.questions >= QUESTIONS_MAX || (this.asked.get(topicId) ?? 0) > now) return
    if (this.asked.size >= ASKED_MAX) for (const [id, untilMs] of this.asked) if (untilMs <= now) this.asked.delete(id)
    if (this.asked.size >= ASKED_MAX) return
    this.asked.set(topicId, now + AGAIN_MS)
    this.questions++
    // Not now: whoever asks may be in the middle of a request of this connection.
    this.runtime.soon(() => {
      void this.ask(topicId, connection).finally(() => this.questions--)
    })
  }

  private async ask(topicId: string, connection: Connection): Promise<void> {
    try {
      const request = { topics: [{ topicId, name: null }], allowAutoTopicCreation: false }
      const body = requestBytes(metadata, request, METADATA_VERSION)
      const { frame, bodyAt } = await connection.ask(apiKeys.Metadata, METADATA_VERSION, body)
      const { topics } = metadata.decodeResponse(new Reader(frame.bytes, bodyAt, frame.total), METADATA_VERSION)
      const found = topics.flatMap(({ name, errorCode, partitions, topicId: id }) =>
        errorCode === errorCodes.NONE && name !== null ? [{ name, topicId: id, count: partitions.length }] : [],
      )
      // Nobody can do anything with an id that the broker does not know, or does not let this client see.
      if (found.length === 0) this.addPlainFor(topicId)
      this.named(found)
    } catch (error) {
      this.asked.set(topicId, this.runtime.now() + RETRY_MS)
      this.log.debug({ topicId, error: String(error) }, 'a topic id could not be looked up on its client’s connection')
    }
  }

  /** Taken as plain until it may be asked for again: a broker may not know a topic yet. */
  private addPlainFor(topicId: string): void {
    this.addPlain(topicId)
    this.runtime.timer(AGAIN_MS, () => void this.plain.delete(topicId))
  }
}
