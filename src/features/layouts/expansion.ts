/**
 * The coordinator of one topic's changes: proposal → partitions created, hidden → preparing → all ready → open → all
 * voted → sealed. It looks at the log's state and does the next step, so it resumes after any crash and may run twice:
 * the log decides which of two equal records counts. Nothing is created before the proposal was read back, and nothing
 * is shown before `open` was.
 */
import type { AnnouncedRecord, OpenRecord, ProxyId, SealedRecord, StateRecord } from '../../state/record.ts'
import { expelledBelow } from '../../state/fleet.ts'
import {
  currentLayout,
  isSettled,
  type Layout,
  missingVotes,
  openEpochs,
  type Proposal,
  widestCount,
} from '../../state/topic-state.ts'
import { waitedUntil } from './departure.ts'
import type { Moment } from './guard-state.ts'
import { range } from './keys-moving.ts'
import { noteSent, type Sent } from './sent.ts'
import type { LayoutTimes } from './times.ts'
import { unsealed } from './votes.ts'
import type { View } from '../../state/view.ts'

export interface CoordinatorState {
  readonly proxy: ProxyId
  readonly times: LayoutTimes
  view?: View
  /** Whether this proxy leads the fleet; others only abort what takes too long. */
  isLeader: boolean
  /** What Metadata says of the topic: partitions that exist, and whether each has a leader. */
  observed?: { count: number; isLed: boolean; leaderEpochs: Readonly<Record<number, number>> }
  /** Answers of reads of end offsets, by what they were read for. */
  reads: Readonly<Record<string, Readonly<Record<number, number>>>>
  sent: Sent
}

export type CoordinatorEvent =
  | { type: 'view'; view: View }
  | { type: 'leader'; isLeader: boolean }
  | { type: 'observed'; count: number; isLed: boolean; leaderEpochs: Readonly<Record<number, number>> }
  | { type: 'ends'; what: string; ends: Readonly<Record<number, number>> }
  /** First offsets of the logs. */
  | { type: 'starts'; starts: Readonly<Record<number, number>> }
  | { type: 'tick' }

export type CoordinatorEffect =
  | { type: 'append'; record: StateRecord }
  | { type: 'create'; count: number }
  | { type: 'observe' }
  | { type: 'read-ends'; what: string; partitions: number[] }
  | { type: 'read-starts'; partitions: number[] }

export function newCoordinator(proxy: ProxyId, times: LayoutTimes): CoordinatorState {
  return { proxy, times, isLeader: false, reads: {}, sent: {} }
}

interface Turn extends Moment {
  readonly state: CoordinatorState
  readonly effects: CoordinatorEffect[]
}

/** `wallMs` left out: it is the same as `atMs`. */
export function reduceCoordinator(
  before: CoordinatorState,
  event: CoordinatorEvent & Partial<Moment> & Pick<Moment, 'atMs'>,
): readonly [CoordinatorState, CoordinatorEffect[]] {
  const { atMs, wallMs = atMs } = event
  const turn: Turn = { state: { ...before }, atMs, wallMs, effects: [] }
  const { state } = turn
  switch (event.type) {
    case 'view':
      state.view = event.view
      break
    case 'leader':
      state.isLeader = event.isLeader
      break
    case 'observed':
      state.observed = { count: event.count, isLed: event.isLed, leaderEpochs: event.leaderEpochs }
      break
    case 'ends':
      state.reads = Object.fromEntries([...Object.entries(state.reads).slice(-7), [event.what, event.ends]])
      break
    case 'starts':
      if (state.view !== undefined) prune(turn, state.view, event.starts)
      break
    case 'tick':
      break
  }
  if (state.view !== undefined) advance(turn, state.view)
  return [state, turn.effects]
}

function advance(turn: Turn, view: View): void {
  const { proposal } = view.topic
  if (proposal !== undefined) abortWhenOverdue(turn, view, proposal)
  if (!turn.state.isLeader) return
  if (proposal !== undefined) {
    if (proposal.preparingAt === undefined) prepare(turn, view, proposal)
    else open(turn, view, proposal)
  }
  announce(turn, view)
  for (const layout of unsealed(view)) seal(turn, view, layout)
  lookAtStarts(turn, view)
}

/** Creates what is missing and waits for leaders. A shrink, and partitions left by an aborted change, need neither. */
function prepare(turn: Turn, view: View, proposal: Proposal): void {
  const { observed, proxy } = turn.state
  if (observed !== undefined && observed.count >= proposal.to && observed.isLed) {
    append(turn, `preparing ${proposal.id}`, {
      kind: 'preparing',
      proxy,
      topicId: view.topic.topicId,
      proposal: proposal.id,
    })
    return
  }
  if (observed !== undefined && observed.count < proposal.to) {
    once(turn, `create ${proposal.id}`, { type: 'create', count: proposal.to })
  }
  once(turn, `observe ${proposal.id}`, { type: 'observe' })
}

function open(turn: Turn, view: View, proposal: Proposal): void {
  const { topic } = view
  if (notReady(view, proposal).length > 0) return
  const fresh = range(widestCount(topic), proposal.to)
  // Read after the last `ready`: until then some proxy could still forward to them.
  const what = `starts ${proposal.id} ${Math.max(...Object.values(proposal.ready))}`
  const starts = fresh.length === 0 ? {} : turn.state.reads[what]
  if (starts === undefined) return once(turn, what, { type: 'read-ends', what, partitions: fresh })
  const epochs = turn.state.observed?.leaderEpochs ?? {}
  const record: OpenRecord = {
    kind: 'open',
    proxy: turn.state.proxy,
    topicId: topic.topicId,
    proposal: proposal.id,
    starts: pick(starts, fresh),
    leaderEpochs: pick(epochs, fresh),
    unsettled: openEpochs(topic, turn.wallMs, turn.state.times.settleMs),
  }
  append(turn, what.replace('starts', 'open'), record)
}

/** Past the bound any proxy says `aborted`; that or `open`, whichever comes first in the log, is obeyed. */
function abortWhenOverdue(turn: Turn, view: View, proposal: Proposal): void {
  const { times, proxy } = turn.state
  const isPreparing = proposal.preparingAtMs !== undefined
  const ageMs = turn.wallMs - (proposal.preparingAtMs ?? proposal.atMs)
  if (ageMs < (isPreparing ? times.prepareBoundMs : 3 * times.prepareBoundMs)) return
  const missing = notReady(view, proposal)
  const late = missing.length > 0 ? `these proxies were not ready in time: ${missing.join(', ')}` : noEnds
  const reason = isPreparing ? late : 'the partitions got no leaders in time'
  append(turn, `aborted ${proposal.id}`, {
    kind: 'aborted',
    proxy,
    topicId: view.topic.topicId,
    proposal: proposal.id,
    reason,
  })
}

const noEnds = 'every proxy was ready, but the end offsets of the new partitions could not be read in time'

/** Proxies that live and have not said that they are ready. */
function notReady({ fleet }: View, proposal: Proposal): ProxyId[] {
  const live = Object.keys(fleet.members).filter((proxy) => fleet.members[proxy]?.expelledAt === undefined)
  return live.filter((proxy) => proposal.ready[proxy] === undefined)
}

function announce(turn: Turn, view: View): void {
  const layout = currentLayout(view.topic)
  if (layout.change !== 'shrink' || layout.announcedAt !== undefined) return
  const { topicId } = view.topic
  const record: AnnouncedRecord = { kind: 'announced', proxy: turn.state.proxy, topicId, epoch: layout.epoch }
  append(turn, `announced ${layout.epoch}`, record)
}

function seal(turn: Turn, view: View, layout: Layout): void {
  const { times, proxy } = turn.state
  const forced = times.sealAfterMs !== undefined && turn.wallMs - layout.openedAtMs >= times.sealAfterMs
  const waits = whoIsMissing(view, layout, turn.wallMs, times)
  if (!forced && waits.length > 0) return
  const what = `boundaries ${layout.epoch} ${layout.lastVote}`
  const boundaries = turn.state.reads[what]
  const older = view.topic.layouts.filter((other) => other.epoch < layout.epoch)
  const old = range(0, Math.max(...older.map((other) => other.count)))
  if (boundaries === undefined) return once(turn, what, { type: 'read-ends', what, partitions: old })
  const record: SealedRecord = {
    kind: 'sealed',
    proxy,
    topicId: view.topic.topicId,
    epoch: layout.epoch,
    lastVote: layout.lastVote,
    boundaries: pick(boundaries, old),
    gaveUp: missingVotes(view.topic, layout, view.fleet, view.position).dead,
    forced,
  }
  append(turn, what.replace('boundaries', 'sealed'), record)
}

/** Proxies whose vote is still waited for: the living, and the dead for as long as their writers may need. */
export function whoIsMissing(view: View, layout: Layout, wallMs: number, times: LayoutTimes): ProxyId[] {
  const { live } = missingVotes(view.topic, layout, view.fleet, view.position)
  const dead = expelledBelow(view.fleet, view.position)
    .map(({ proxy }) => proxy)
    .filter((proxy) => layout.votes[proxy] === undefined && waitedUntil(view, layout, proxy, times) > wallMs)
  return [...live, ...dead]
}

/** At rest, cuts may have become useless. */
function lookAtStarts(turn: Turn, view: View): void {
  const { cuts, layouts, proposal } = view.topic
  const { times } = turn.state
  const isAtRest = proposal === undefined && layouts.every((layout) => isSettled(layout, turn.wallMs, times.settleMs))
  if (cuts.length === 0 || !isAtRest) return
  once(turn, 'starts', { type: 'read-starts', partitions: range(0, widestCount(view.topic)) }, times.pruneMs)
}

/**
 * Forgets cuts that gate nothing for any group, whatever it committed: all logs start at or above their ends. Only from
 * the oldest on, so that whatever an earlier cut gated is open when a later one is forgotten. Where the logs keep
 * everything, cuts are kept too: a group that reads from the beginning needs them.
 */
function prune(turn: Turn, view: View, starts: Readonly<Record<number, number>>): void {
  const isUseless = (ends: Readonly<Record<number, number>>): boolean =>
    Object.entries(ends).every(([partition, end]) => (starts[Number(partition)] ?? 0) >= end)
  const kept = view.topic.cuts.findIndex((cut) => !isUseless(cut.ends))
  const last = view.topic.cuts.at(kept < 0 ? -1 : kept - 1)
  if (kept === 0 || last === undefined) return
  const { proxy } = turn.state
  append(turn, `pruned ${last.at}`, { kind: 'pruned', proxy, topicId: view.topic.topicId, upTo: last.at })
}

function pick(offsets: Readonly<Record<number, number>>, partitions: readonly number[]): Record<number, number> {
  return Object.fromEntries(partitions.map((partition) => [partition, offsets[partition] ?? 0]))
}

function append(turn: Turn, what: string, record: StateRecord): void {
  once(turn, what, { type: 'append', record })
}

/** Does it unless it was done less than `apartMs` ago. */
function once(turn: Turn, what: string, effect: CoordinatorEffect, apartMs = turn.state.times.retryMs): void {
  const sentMs = turn.state.sent[what]
  if (sentMs !== undefined && turn.atMs - sentMs < apartMs) return
  turn.state.sent = noteSent(turn.state.sent, what, turn.atMs)
  turn.effects.push(effect)
}
