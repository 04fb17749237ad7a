/**
 * How many partitions of each topic Metadata shows to whom: partitions above the count that a policy names are taken out
 * of the answer, and an answer is held while the policy cannot say. It stands behind the address editor: an answer passes
 * here first, and its brokers get their addresses when it goes out. What cannot be read is left to that editor.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Runtime, Timer } from '../../runtime/runtime.ts'
import type { Connection } from '../../pipeline/connection.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { type Frame, frameOf } from '../../pipeline/frame.ts'
import { type Handler, type Interest, taken, type Verdict } from '../../pipeline/handler.ts'
import { isUnreadable } from './broker-list.ts'
import { TopicList } from './topic-list.ts'
import type { Showing, TopicPolicy, TopicShowing } from './topic-policy.ts'

/** Longest that an answer is held: clients give a Metadata request up after 30 s or more, and ask in a loop. */
const HOLD_MS = 4000

/** What the policy says of topics, by their place in the answer. */
type Showings = ReadonlyMap<number, TopicShowing>

/** An answer that waits. */
interface Held {
  readonly exchange: Exchange
  readonly showings: Showings
  timer: Timer | undefined
}

export class TopicEditor implements Handler {
  readonly name = 'topics'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.Metadata, side: 'request', depth: 'full' },
    { apiKey: apiKeys.Metadata, side: 'response', depth: 'full' },
  ]
  private readonly policy: TopicPolicy
  private readonly runtime: Runtime
  private held: Held[] = []

  constructor(policy: TopicPolicy, runtime: Runtime) {
    this.policy = policy
    this.runtime = runtime
    policy.onChange(() => this.retry(this.held.slice(), false))
  }

  onRequest(exchange: Exchange): Verdict {
    const { request, apiVersion } = exchange
    const at = exchange.requestBodyAt()
    if (request !== undefined && at >= 0 && asksForAll(request, at, apiVersion)) exchange.setState(this, forAll)
    return undefined
  }

  onResponse(exchange: Exchange): Verdict {
    const { response } = exchange
    if (response === undefined) return undefined
    const showings = this.read(exchange, response)
    if (showings.size === 0) return undefined
    if (this.write(exchange, showings, false)) return undefined
    const held: Held = { exchange, showings, timer: undefined }
    held.timer = this.runtime.timer(HOLD_MS, () => this.retry([held], true))
    this.held.push(held)
    return taken
  }

  onClose(connection: Connection): void {
    for (const held of this.held.filter(({ exchange }) => exchange.connection === connection)) this.drop(held)
    this.policy.closed(connection)
  }

  private drop(held: Held): void {
    held.timer?.cancel()
    this.held = this.held.filter((other) => other !== held)
  }

  private retry(waiting: readonly Held[], isOverdue: boolean): void {
    for (const held of waiting) {
      if (!this.held.includes(held) || !this.write(held.exchange, held.showings, isOverdue)) continue
      this.drop(held)
      held.exchange.finish('forward')
    }
  }

  /** Those topics of an answer that the policy wants to be asked about. */
  private read(exchange: Exchange, response: Frame): Showings {
    const showings = new Map<number, TopicShowing>()
    const isNamed = exchange.state(this) !== forAll
    this.walk(exchange, response, (list, place) => {
      const { name, topicId, count, errorCode } = list
      if (name === null || errorCode !== errorCodes.NONE || count === 0) return
      const showing = this.policy.topic(exchange.connection, { name, topicId, count, isNamed })
      if (showing !== undefined) showings.set(place, showing)
    })
    return showings
  }

  /** Writes the answer as its client may see it now. @returns whether it may go out */
  private write(exchange: Exchange, showings: Showings, isOverdue: boolean): boolean {
    const { response } = exchange
    if (response === undefined) return true
    const decisions = new Map([...showings].map(([place, showing]) => [place, showing.decide(isOverdue)]))
    if (!isOverdue && [...decisions.values()].includes('wait')) return false
    const pieces: Buffer[] = []
    let copied = response.at
    this.walk(exchange, response, (list, place) => {
      const decision = decisions.get(place)
      if (decision === undefined) return
      if (typeof decision === 'number') showings.get(place)?.shown(Math.min(decision, list.count))
      const spliced = splice(response, list, decision)
      if (spliced === undefined) return
      pieces.push(response.bytes.subarray(copied, list.errorAt), ...spliced)
      copied = list.listEnd
    })
    if (pieces.length === 0) return true
    const bytes = Buffer.concat([...pieces, response.bytes.subarray(copied, response.at + response.total)])
    bytes.writeInt32BE(bytes.length - 4, 0)
    exchange.response = frameOf(bytes)
    return true
  }

  private walk(exchange: Exchange, { bytes, at, total }: Frame, visit: (list: TopicList, place: number) => void): void {
    const { apiKey, apiVersion } = exchange
    const end = at + total
    const bodyAt = peekResponseBodyStart(apiKey, apiVersion, bytes, at + 4, end)
    try {
      const list = new TopicList(new Reader(bytes, bodyAt < 0 ? end : bodyAt, end), apiVersion)
      for (let place = 0; list.next(); place++) visit(list, place)
    } catch (error) {
      if (!isUnreadable(error)) throw error
    }
  }
}

/** The topic from its error code to the end of its partitions, as the decision wants it; undefined: unchanged. */
function splice(response: Frame, list: TopicList, decision: Showing): Buffer[] | undefined {
  if (typeof decision === 'number' && decision >= list.count) return undefined
  const head = Buffer.from(response.bytes.subarray(list.errorAt, list.listAt))
  if (typeof decision === 'number') return [head, list.partitionsBelow(decision)]
  head.writeInt16BE(errorCodes.LEADER_NOT_AVAILABLE, 0)
  return [head, list.partitionsBelow(0)]
}

const forAll = 'all'

/** A null list asks for all topics, in version 0 an empty one. */
function asksForAll({ bytes, at, total }: Frame, bodyAt: number, version: number): boolean {
  if (bodyAt + (version >= 9 ? 1 : 4) > at + total) return false
  if (version >= 9) return bytes[bodyAt] === 0
  return bytes.readInt32BE(bodyAt) === (version === 0 ? 0 : -1)
}
