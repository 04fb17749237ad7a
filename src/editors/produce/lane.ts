/**
 * What is known of the Produce requests of one connection: how many are unanswered, how many ever were at once (a client
 * that never has two keeps its later batches until the first is answered), and when those that passed unopened have been
 * answered. Brokers answer a connection's requests in order, so counting is enough.
 */
import type { Connection } from '../../pipeline/connection.ts'

export class ProduceLane {
  readonly connection: Connection
  /** Requests with an answer to come, held ones included. */
  inFlight = 0
  mostInFlight = 0
  /** When the last Produce came or was answered, on the runtime's clock; −1: none yet. */
  lastAtMs = -1
  /** What the policy keeps of this connection. */
  note: unknown
  private sent = 0
  private answered = 0
  private waits: { readonly sent: number; readonly done: () => void }[] = []

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** A request of the client came. */
  began(noReply: boolean, nowMs: number): void {
    this.lastAtMs = nowMs
    if (noReply) return
    this.inFlight++
    if (this.inFlight > this.mostInFlight) this.mostInFlight = this.inFlight
  }

  /** It was answered. */
  ended(nowMs: number): void {
    this.inFlight--
    this.lastAtMs = nowMs
  }

  /** It went to the broker as it came. */
  passed(): void {
    this.sent++
  }

  /** The broker answered one that went as it came. */
  returned(): void {
    this.answered++
    while (this.waits.length > 0 && (this.waits[0]?.sent ?? 0) <= this.answered) this.waits.shift()?.done()
  }

  /** Somebody waits for the answers of requests that passed unopened. */
  get isAwaited(): boolean {
    return this.waits.length > 0
  }

  /** Calls `done` when all that has passed so far is answered; false if nothing is under way. */
  await(done: () => void): boolean {
    if (this.answered === this.sent) return false
    this.waits.push({ sent: this.sent, done })
    return true
  }
}
