/**
 * One proxy's place in the fleet: registers itself until it reads that back, and, while it leads, expels who is missing
 * from the group. A member may be put out of the group early (it left, or was slow to rejoin), so the leader waits a
 * full session time-out after it first missed somebody: by then the lease of whoever it was has ended.
 */
import type { FleetState } from './fleet.ts'
import type { Assignment } from './group-protocol.ts'
import type { FleetRecord, ProxyId } from './record.ts'

export interface MembershipState {
  readonly proxy: ProxyId
  readonly host: string
  readonly rules: string | undefined
  readonly sessionMs: number
  readonly retryMs: number
  readonly fleet?: FleetState
  readonly assignment?: Assignment
  /** Registered proxy → since when it is missing from the group. */
  readonly missingSince: Readonly<Record<ProxyId, number>>
  readonly sent: Readonly<Record<string, number>>
}

export type MembershipEvent =
  /** The state of a confirmed read of the log's end. */
  | { type: 'fleet'; fleet: FleetState }
  /** A generation of the group began. */
  | { type: 'assigned'; assignment: Assignment }
  /** This proxy is not in the group now (it rejoins, or cannot reach the coordinator). */
  | { type: 'lost' }
  | { type: 'tick' }

export type MembershipEffect =
  | { type: 'append'; record: FleetRecord }
  /** Expelled: stop acting, and begin a new life under a new id. */
  | { type: 'restart' }

/** @param own.rules digest of the rules by which this proxy guards topics */
export function newMembership(
  own: { readonly proxy: ProxyId; readonly host: string; readonly rules?: string | undefined },
  sessionMs: number,
  retryMs: number,
): MembershipState {
  const { proxy, host, rules } = own
  return { proxy, host, rules, sessionMs, retryMs, missingSince: {}, sent: {} }
}

export function isLeader(state: MembershipState): boolean {
  return state.assignment?.leader === state.proxy
}

export function reduceMembership(
  before: MembershipState,
  event: MembershipEvent & { atMs: number },
): readonly [MembershipState, MembershipEffect[]] {
  const state = take(before, event)
  const { fleet, proxy } = state
  if (fleet === undefined) return [state, []]
  const own = fleet.members[proxy]
  if (own?.expelledAt !== undefined) return [state, [{ type: 'restart' }]]
  const wanted: FleetRecord[] = own === undefined ? [registration(state)] : []
  const missingSince = missing(state, fleet, event.atMs)
  for (const [expelled, sinceMs] of Object.entries(missingSince)) {
    if (event.atMs - sinceMs >= state.sessionMs) wanted.push({ kind: 'expel', proxy, expelled })
  }
  const due = wanted.filter((record) => event.atMs - (state.sent[nameOf(record)] ?? -Infinity) >= state.retryMs)
  const sent = Object.fromEntries(due.map((record) => [nameOf(record), event.atMs]))
  const effects = due.map((record): MembershipEffect => ({ type: 'append', record }))
  return [{ ...state, missingSince, sent: { ...state.sent, ...sent } }, effects]
}

function registration({ proxy, host, rules }: MembershipState): FleetRecord {
  return { kind: 'register', proxy, host, ...(rules === undefined ? {} : { rules }) }
}

function take(state: MembershipState, event: MembershipEvent): MembershipState {
  switch (event.type) {
    case 'fleet':
      return { ...state, fleet: event.fleet }
    case 'assigned':
      return { ...state, assignment: event.assignment }
    case 'lost': {
      const { assignment: _, ...rest } = state
      return { ...rest, missingSince: {} }
    }
    case 'tick':
      return state
  }
}

/** Who is registered and not in the group, as long as this proxy leads it and is registered itself. */
function missing(state: MembershipState, fleet: FleetState, atMs: number): Record<ProxyId, number> {
  if (!isLeader(state) || fleet.members[state.proxy] === undefined) return {}
  const present = new Set(state.assignment?.members)
  const absent = Object.entries(fleet.members).filter(
    ([proxy, member]) => member.expelledAt === undefined && !present.has(proxy),
  )
  return Object.fromEntries(absent.map(([proxy]) => [proxy, state.missingSince[proxy] ?? atMs]))
}

function nameOf(record: FleetRecord): string {
  return record.kind === 'expel' ? `expel ${record.expelled}` : 'register'
}
