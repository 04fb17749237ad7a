/**
 * What features see of the state log and the fleet. Behind it are the shell's connections; a feature gives records and
 * is told when something may have changed.
 */
import type { ProxyId, StateRecord } from './record.ts'
import type { View } from './view.ts'

export interface StateStatus {
  /** `loading`: it could never act on this log yet; `lost`: it could, and the lease does not hold now. */
  readonly condition: 'loading' | 'ready' | 'lost'
  /** What is wrong and what to do, for people; undefined while `ready`. */
  readonly problem: string | undefined
  readonly proxy: ProxyId
  readonly leader: ProxyId | undefined
  readonly proxies: readonly FleetProxy[]
}

export interface FleetProxy {
  readonly proxy: ProxyId
  readonly host: string
  /** Digest of its rules; undefined: it does not say. */
  readonly rules?: string | undefined
}

/** Proxies of the fleet whose rules for topics or groups are not those of this one: what it guards they may not. */
export function withOtherRules({ proxy, proxies }: StateStatus): FleetProxy[] {
  const own = proxies.find((one) => one.proxy === proxy)?.rules
  if (own === undefined) return []
  return proxies.filter(({ rules }) => rules !== undefined && rules !== own)
}

/** What a proxy that stops in good order tells the others. */
export interface Departure {
  /** Ids of the topics that somebody wrote to through it. */
  readonly wroteTo: readonly string[]
  /** What it vouches for, of some or all of these. */
  readonly records: readonly StateRecord[]
}

export interface State {
  /** This proxy's id; another one after an expulsion: whatever was kept under the old one is void. */
  readonly proxy: ProxyId
  /** A topic as of the last confirmed read of the log's end; undefined: the log does not know it. */
  view(topicId: string): View | undefined
  /** Topic ids that the log knows. */
  topicIds(): readonly string[]
  /**
   * Whether this proxy may forward Produce, deliver Fetch and answer Metadata of guarded topics now: asked before a
   * request is forwarded and again when its answer has arrived.
   */
  mayAct(): boolean
  /** Whether this proxy coordinates the fleet. */
  isLeader(): boolean
  /** Appends a record, once; it may be lost. Whether it counts is seen in a view. */
  append(record: StateRecord): void
  /** Told after every confirmed read that brought something, and when lease, leadership or id change. */
  onChange(listener: () => void): void
  status(): StateStatus
}
