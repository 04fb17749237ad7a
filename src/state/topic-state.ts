/** The layouts of one topic as the log tells them: plain JSON, so that a snapshot is the state itself. */
import { expelledBelow, type FleetState, liveAt } from './fleet.ts'
import type { ChangeName, GateKind, Order, ProxyId } from './record.ts'

export interface Vote {
  at: number
  ballot: number
  instances: string[]
  ends: Record<number, number>
  seen?: number
}

export interface Seal {
  at: number
  /** Time of the record: after it and the longest age of Metadata the change is settled. */
  atMs: number
  boundaries: Record<number, number>
  gaveUp: ProxyId[]
  forced: boolean
}

/** One layout, and the change that led to it. Layout 0 is the one the topic was met with. */
export interface Layout {
  epoch: number
  count: number
  change: ChangeName | 'met'
  order: Order
  gates: GateKind
  /** Log offset and time of `open`. */
  openedAt: number
  openedAtMs: number
  /** Fresh partition (no earlier layout had it) → first offset that waits. */
  starts: Record<number, number>
  leaderEpochs: Record<number, number>
  /** Older epochs by whose layout batches could still come when it was opened. */
  unsettled: number[]
  votes: Record<ProxyId, Vote>
  /** Highest ballot each proxy took back. */
  withdrawn: Record<ProxyId, number>
  /** Log offset of the last vote or withdrawal that counted; -1 without one. */
  lastVote: number
  seal?: Seal
  /** Shrink: log offset from which new instances are shown this layout. */
  announcedAt?: number
  /** Shrink: living instances are shown it too, not only those that meet the topic anew. */
  isLive?: boolean
}

export interface Proposal {
  id: string
  proxy: ProxyId
  at: number
  atMs: number
  change: ChangeName
  to: number
  order: Order
  gates: GateKind
  preparingAt?: number
  preparingAtMs?: number
  ready: Record<ProxyId, number>
  /** Its proxy alone creates the partitions. */
  isAssigned?: boolean
}

/** What a proxy that stopped in good order said of its writers. */
export interface Left {
  at: number
  atMs: number
  sinceMs: number
  /** Instance → the newest epoch that it is clean for. */
  instances: Record<string, number>
  gone: string[]
  ends: Record<number, number>
}

/** A change that came to nothing. */
export interface Aborted {
  proposal: string
  change: ChangeName
  to: number
  reason: string
  atMs: number
}

export interface Cut {
  id: string
  proxy: ProxyId
  at: number
  atMs: number
  layouts: number[]
  ends: Record<number, number>
  readers: Record<ProxyId, number>
  /** Whom it serves, until it is in force: who finds one of them at itself tells that it is at two proxies. */
  serves?: string[]
  seen?: number
}

export interface TopicState {
  topicId: string
  name: string
  layouts: Layout[]
  proposal?: Proposal
  cuts: Cut[]
  /** The last change that was aborted. */
  aborted?: Aborted
  /** Highest count that an aborted expansion was for: so many partitions may exist, hidden. */
  attempted?: number
  /** The first instance that was found at two proxies at once: the seal is then used wherever it is enough. */
  split?: string
  /** Proxies that stopped in good order, as long as somebody may have to wait for their writers. */
  left?: Record<ProxyId, Left>
}

/** A record at its place in the log. */
export interface Placed<R> {
  record: R
  offset: number
  atMs: number
}

export function currentLayout(topic: TopicState): Layout {
  const layout = topic.layouts.at(-1)
  if (layout === undefined) throw new RangeError('a topic state always has a layout')
  return layout
}

export function layoutOf(topic: TopicState, epoch: number): Layout | undefined {
  return topic.layouts.find((layout) => layout.epoch === epoch)
}

/** The highest partition count that any layout had. */
export function widestCount(topic: TopicState): number {
  return Math.max(...topic.layouts.map((layout) => layout.count))
}

/** Settled: sealed, and `settleMs` (the longest Metadata age) ago. */
export function isSettled(layout: Layout, atMs: number, settleMs: number): boolean {
  return layout.change === 'met' || (layout.seal !== undefined && atMs - layout.seal.atMs >= settleMs)
}

/** Epochs by whose layout batches may still come: from the one before the first unsettled change on. */
export function openEpochs(topic: TopicState, atMs: number, settleMs: number): number[] {
  const first = topic.layouts.findIndex((layout) => !isSettled(layout, atMs, settleMs))
  const layouts = first < 0 ? topic.layouts.slice(-1) : topic.layouts.slice(Math.max(0, first - 1))
  return layouts.map((layout) => layout.epoch)
}

/** In force: every proxy that lived when the cut was recorded has read it or is out. */
export function isInForce(cut: Cut, fleet: FleetState): boolean {
  return Object.entries(fleet.members).every(
    ([proxy, member]) =>
      member.registeredAt > cut.at || member.expelledAt !== undefined || cut.readers[proxy] !== undefined,
  )
}

/**
 * Who is missing at log offset `offset` for the seal of `layout`: the living who have not voted, and the dead who had not
 * and from whose writers batches of an older layout may still come.
 */
export function missingVotes(
  topic: TopicState,
  layout: Layout,
  fleet: FleetState,
  offset: number,
): { live: ProxyId[]; dead: ProxyId[] } {
  const lacks = (proxy: ProxyId): boolean => layout.votes[proxy] === undefined
  return {
    live: liveAt(fleet, offset).filter(lacks),
    dead: expelledBelow(fleet, offset)
      .map((member) => member.proxy)
      .filter((proxy) => lacks(proxy) && writersOf(topic, layout, fleet, proxy)?.unseen.length !== 0),
  }
}

/**
 * The writers of a proxy that stopped in good order that were not clean for `layout`; `unseen` are those that no other
 * proxy has vouched for since. Undefined: it did not stop so, or what it said of this topic was lost.
 */
export function writersOf(
  topic: TopicState,
  layout: Layout,
  fleet: FleetState,
  proxy: ProxyId,
): { unclean: string[]; unseen: string[] } | undefined {
  const wroteTo = fleet.members[proxy]?.wroteTo
  if (wroteTo === undefined) return undefined
  if (!wroteTo.includes(topic.topicId)) return { unclean: [], unseen: [] }
  const left = topic.left?.[proxy]
  if (left === undefined) return undefined
  const seen = new Set(Object.values(layout.votes).flatMap((vote) => vote.instances))
  const unclean = Object.keys(left.instances).filter((instance) => (left.instances[instance] ?? 0) < layout.epoch)
  return { unclean, unseen: unclean.filter((instance) => !seen.has(instance)) }
}
