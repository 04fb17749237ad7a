/**
 * Which proxies live, as facts of the log: where each was registered and where it was expelled. Facts are kept after an
 * expulsion, so "who lived at offset N" can be answered for any place in the log when a topic is replayed.
 * Invariant: a proxy id lives once; expelled, it never comes back under the same id.
 */
import type { ExpelRecord, FleetRecord, ProxyId } from './record.ts'

export interface Member {
  host: string
  /** Digest of its rules; left out by proxies that do not say. */
  rules?: string
  /** Log offset of its registration. */
  registeredAt: number
  /** Log offset and time (of the record) of its expulsion. */
  expelledAt?: number
  expelledAtMs?: number
  /** It said itself that it stops. */
  hasLeft?: true
  /** It stopped in good order: the topics that somebody wrote to through it. */
  wroteTo?: readonly string[]
}

export interface FleetState {
  members: Record<ProxyId, Member>
}

export const emptyFleet: FleetState = { members: {} }

/** Applies a fleet record at its place in the log; what cannot count there changes nothing. */
export function applyFleet(state: FleetState, record: FleetRecord, offset: number, atMs: number): FleetState {
  if (record.kind === 'register') {
    if (state.members[record.proxy] !== undefined) return state
    const { proxy, host, rules } = record
    const member = { host, registeredAt: offset, ...(rules === undefined ? {} : { rules }) }
    return { members: { ...state.members, [proxy]: member } }
  }
  const member = state.members[record.expelled]
  if (member === undefined || member.expelledAt !== undefined) return state
  const out: Member = { ...member, expelledAt: offset, expelledAtMs: atMs }
  return {
    members: { ...state.members, [record.expelled]: record.proxy === record.expelled ? left(out, record) : out },
  }
}

function left(member: Member, { wroteTo }: ExpelRecord): Member {
  return { ...member, hasLeft: true, ...(wroteTo === undefined ? {} : { wroteTo }) }
}

/** Whether the proxy was registered below `offset` and not expelled below it. */
export function livesAt(state: FleetState, proxy: ProxyId, offset: number): boolean {
  const member = state.members[proxy]
  return member !== undefined && member.registeredAt < offset && (member.expelledAt ?? Infinity) >= offset
}

export function liveAt(state: FleetState, offset: number): ProxyId[] {
  return Object.keys(state.members).filter((proxy) => livesAt(state, proxy, offset))
}

/** Who died before `offset`, with the time of the expulsion. */
export function expelledBelow(state: FleetState, offset: number): { proxy: ProxyId; atMs: number }[] {
  return Object.entries(state.members)
    .filter(([, member]) => (member.expelledAt ?? Infinity) < offset)
    .map(([proxy, member]) => ({ proxy, atMs: member.expelledAtMs ?? 0 }))
}

/** Drops members expelled below log offset `below` and before `beforeMs`: no topic waits for them any more. */
export function forgetExpelled(state: FleetState, below: number, beforeMs: number): FleetState {
  const kept = Object.entries(state.members).filter(
    ([, member]) => (member.expelledAt ?? Infinity) >= below || (member.expelledAtMs ?? Infinity) >= beforeMs,
  )
  return { members: Object.fromEntries(kept) }
}
