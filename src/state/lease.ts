/**
 * How long this proxy may act on what it has read. It acts (forwards Produce, delivers Fetch, answers Metadata of
 * guarded topics) only while its last confirmed read of the log's end *and* its last answered heartbeat are younger
 * than half the session time-out, by the monotonic and by the wall clock (a monotonic clock may stand still while the
 * machine sleeps, a wall clock may jump). Others expel it no sooner than a full time-out after its last heartbeat, so
 * whatever was decided without it was decided after its lease had ended.
 *
 * The heartbeat is not a courtesy: without it a proxy whose heartbeats are lost but whose reads arrive would act for
 * up to half a time-out after its own expulsion.
 */

/** A moment by both clocks, in milliseconds. */
export interface Moment {
  monotonicMs: number
  wallMs: number
}

export interface LeaseState {
  sessionMs: number
  /** When the last answered read of the log's end was *sent*. */
  read?: Moment
  /** When the last answered heartbeat was sent. */
  heartbeat?: Moment
  /** Own registration was read back, and no expulsion. */
  member: boolean
}

export type LeaseEvent =
  | { type: 'read'; sent: Moment }
  | { type: 'heartbeat'; sent: Moment }
  | { type: 'member'; member: boolean }

export function newLease(sessionMs: number): LeaseState {
  return { sessionMs, member: false }
}

export function reduceLease(state: LeaseState, event: LeaseEvent): LeaseState {
  switch (event.type) {
    case 'read':
      return isLater(event.sent, state.read) ? { ...state, read: event.sent } : state
    case 'heartbeat':
      return isLater(event.sent, state.heartbeat) ? { ...state, heartbeat: event.sent } : state
    case 'member':
      return { ...state, member: event.member }
  }
}

/** Whether the proxy may act now. Asked before a request is forwarded and again when its answer has arrived. */
export function leaseHolds(state: LeaseState, now: Moment): boolean {
  return state.member && isFresh(state.read, now, state.sessionMs) && isFresh(state.heartbeat, now, state.sessionMs)
}

function isFresh(then: Moment | undefined, now: Moment, sessionMs: number): boolean {
  if (then === undefined) return false
  const monotonicAge = now.monotonicMs - then.monotonicMs
  const wallAge = now.wallMs - then.wallMs
  return monotonicAge < sessionMs / 2 && wallAge < sessionMs / 2
}

function isLater(moment: Moment, than: Moment | undefined): boolean {
  return than === undefined || moment.monotonicMs > than.monotonicMs
}
