/**
 * What an editor or feature is to the pipeline: it declares which messages it wants and how much of them, and is called
 * synchronously for each. Everything it does not ask for passes without being looked at.
 */
import type { CloseReason } from '../telemetry/meter.ts'
import type { Connection } from './connection.ts'
import type { Exchange } from './exchange.ts'
import type { Frame } from './frame.ts'

/**
 * How much of a message a handler needs. `header`: the exchange only, the frame may stream by. `scan`: a whole frame if
 * it fits into a chunk, else the handler's `scanner` sees the bytes as they stream. `full`: the whole frame, gathered.
 */
export type Depth = 'header' | 'scan' | 'full'

export interface Interest {
  readonly apiKey: number
  readonly side: 'request' | 'response'
  /** Inclusive; all versions when left out. */
  readonly versions?: readonly [number, number]
  readonly depth: Depth
}

/** The reply that goes to the client instead of the broker's. The correlation id in the frame is filled in later. */
export interface Answer {
  readonly kind: 'answer'
  readonly frame: Frame
}

/** The connection is closed, as a broker would; the detail goes into the log. */
export interface Close {
  readonly kind: 'close'
  readonly reason: CloseReason
  readonly detail: string
}

export interface Taken {
  readonly kind: 'taken'
}

/** The handler ends the exchange itself, later, by `exchange.finish`. */
export const taken: Taken = { kind: 'taken' }

/** undefined: go on with the next handler. */
export type Verdict = undefined | Answer | Close | Taken

export type Outcome = 'forward' | Answer | Close

/**
 * Sees a frame that is too long to be whole, piece by piece, and may change bytes in place. To change the end of the
 * frame it can ask for it to be held back: what it holds arrives at `finish` in one piece, and keeps its length, since
 * the frame's size has long been sent.
 */
export interface Scanner {
  /** @returns the position from which on bytes are to be held back until the frame ends; `to` for none */
  feed(bytes: Buffer, from: number, to: number): number
  /** The frame has ended; `tail` is what was held back (empty if nothing). */
  finish(tail: Buffer): void
}

export interface Handler {
  readonly name: string
  readonly interests: readonly Interest[]
  onRequest?(exchange: Exchange): Verdict
  /**
   * A request too long for a chunk has begun; `head` is its first chunk, from the size on. Whether it may stream by
   * without `onRequest`, which saves gathering it; it does if every handler that asks for requests of its kind says so.
   */
  letsStream?(connection: Connection, head: Buffer): boolean
  /** In reverse order of the handlers. */
  onResponse?(exchange: Exchange): Verdict
  /** For a response that streams. undefined: it passes unseen; an answer: that goes to the client in its place. */
  scanner?(exchange: Exchange): Scanner | Answer | undefined
  onClose?(connection: Connection): void
}
