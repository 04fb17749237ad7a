/**
 * How to make an instance refresh its Metadata soon, only where it is harmless (measured): one refusal of a whole
 * request with code 6 for producers whose order survives it, closing a connection that has been idle for the others,
 * else nothing: they refresh by themselves within 5 to 10 minutes.
 */

export type Push = 'refuse' | 'close' | 'wait'

export interface PushFacts {
  readonly isIdempotent: boolean
  /** It had two Produce in flight on some connection: a refusal reorders exactly the refused records. */
  readonly pipelines: boolean
  /** It was pushed for this change already. */
  readonly wasPushed: boolean
  /** It was shown the new layout, or keeps its own (a shrink that it does not follow). */
  readonly isShown: boolean
  /** Every batch of the request at hand stays visible: refusing one of a hidden partition kills or fails clients. */
  readonly staysVisible: boolean
  /** acks = 0: a refusal is a closed connection, and loses what was in the pipe. */
  readonly hasAcks: boolean
}

export const idleBeforeCloseMs = 1000

/** What to do with a Produce request of a stale instance. */
export function pushAtProduce(facts: PushFacts): Push {
  if (facts.wasPushed || facts.isShown || !facts.hasAcks || !facts.staysVisible) return 'wait'
  return facts.isIdempotent || !facts.pipelines ? 'refuse' : 'wait'
}

/** What to do with a stale instance's connection that has no Produce unanswered. FIN and drain, never RST. */
export function pushWhenIdle(facts: Omit<PushFacts, 'staysVisible'>, idleMs: number): Push {
  if (facts.wasPushed || facts.isShown) return 'wait'
  return idleMs >= idleBeforeCloseMs ? 'close' : 'wait'
}
