/**
 * What members of the Kafka group `__headgate` (protocol type `headgate`) tell each other: in the subscription who a
 * proxy is, in the assignment who leads. The group only detects failures and elects; the state log decides.
 * Contents are JSON with a version; one of a newer Headgate is refused, so that an old proxy does not lead it.
 */
import { StateError } from './errors.ts'
import type { ProxyId } from './record.ts'

export const groupId = '__headgate'
export const protocolType = 'headgate'
/** The one protocol name that members offer; a change that old proxies cannot follow takes a new name. */
export const protocolName = 'v1'

export interface Subscription {
  proxy: ProxyId
  /** Where its admin port answers, for people. */
  host: string
}

export interface Assignment {
  leader: ProxyId
  /** All members of this generation. */
  members: ProxyId[]
}

export function encodeSubscription(subscription: Subscription): Uint8Array {
  return encode(subscription)
}

/** Throws StateError where the bytes are not a subscription of this version. */
export function decodeSubscription(bytes: Uint8Array): Subscription {
  const { proxy, host } = decode(bytes)
  if (typeof proxy === 'string' && typeof host === 'string') return { proxy, host }
  throw new StateError('HG_STATE_INVALID', 'a subscription in the group __headgate names no proxy')
}

export function encodeAssignment(assignment: Assignment): Uint8Array {
  return encode(assignment)
}

/** Throws StateError where the bytes are not an assignment of this version. */
export function decodeAssignment(bytes: Uint8Array): Assignment {
  const { leader, members } = decode(bytes)
  const isList = Array.isArray(members) && members.every((member) => typeof member === 'string')
  if (typeof leader === 'string' && isList) return { leader, members: members }
  throw new StateError('HG_STATE_INVALID', 'an assignment in the group __headgate names no leader')
}

/** The same assignment for every member. The member that Kafka made leader leads. */
export function assign(leader: ProxyId, subscriptions: readonly Subscription[]): Assignment {
  return { leader, members: subscriptions.map((subscription) => subscription.proxy).sort() }
}

function encode(content: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ v: 1, ...content }))
}

function decode(bytes: Uint8Array): Record<string, unknown> {
  let content: unknown
  try {
    content = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new StateError('HG_STATE_FOREIGN', 'a member of the group __headgate is not a Headgate proxy', { cause })
  }
  if (typeof content !== 'object' || content === null || (content as { v?: unknown }).v !== 1) {
    throw new StateError('HG_STATE_VERSION', 'a member of the group __headgate is of another version: update it')
  }
  return content as Record<string, unknown>
}
