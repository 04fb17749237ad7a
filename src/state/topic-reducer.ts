/**
 * Which records of a topic count, and what they change. Every reader decides alike, because a record is judged only by
 * the state below it in the log and by the facts of the fleet.
 */
import { type FleetState, liveAt, livesAt } from './fleet.ts'
import type { GateKind, LeftRecord, TopicChangeRecord } from './record.ts'
import {
  type Cut,
  currentLayout,
  isInForce,
  type Layout,
  layoutOf,
  missingVotes,
  type Placed,
  type Proposal,
  type TopicState,
} from './topic-state.ts'

/** The state after a record, or the same state where the record does not count at its place. */
export function applyTopic(
  topic: TopicState | undefined,
  entry: Placed<TopicChangeRecord>,
  fleet: FleetState,
): TopicState | undefined {
  const { record, offset } = entry
  if (!livesAt(fleet, record.proxy, offset)) return topic
  if (record.kind === 'topic') return topic ?? metTopic(record.topicId, record.name, record.count, offset, entry.atMs)
  if (topic === undefined) return undefined
  switch (record.kind) {
    case 'proposal':
    case 'preparing':
    case 'ready':
    case 'aborted':
    case 'open':
      return applyProposal(topic, { ...entry, record }, fleet)
    case 'vote':
    case 'withdrawal':
    case 'sealed':
    case 'announced':
      return applyToLayout(topic, { ...entry, record }, fleet)
    case 'cut':
      return applyCut(topic, { ...entry, record })
    case 'pruned':
      return { ...topic, cuts: topic.cuts.filter((cut) => cut.at > record.upTo) }
    case 'left':
      return leave(topic, { ...entry, record })
    case 'split':
      return { ...topic, split: topic.split ?? record.instance }
    case 'cut-read':
      return { ...topic, cuts: topic.cuts.map((cut) => (cut.id === record.cut ? readCut(cut, entry, fleet) : cut)) }
  }
}

function metTopic(topicId: string, name: string, count: number, offset: number, atMs: number): TopicState {
  const layout: Layout = {
    epoch: 0,
    count,
    change: 'met',
    order: 'key',
    gates: 'seal',
    openedAt: offset,
    openedAtMs: atMs,
    starts: {},
    leaderEpochs: {},
    unsettled: [],
    votes: {},
    withdrawn: {},
    lastVote: -1,
  }
  return { topicId, name, layouts: [layout], cuts: [] }
}

type ProposalEntry = Placed<Extract<TopicChangeRecord, { proposal: string }>>

function applyProposal(topic: TopicState, entry: ProposalEntry, fleet: FleetState): TopicState {
  const { record, offset, atMs } = entry
  if (record.kind === 'proposal') {
    if (record.after !== currentLayout(topic).epoch || !mayPropose(topic, record.to, record.gates)) return topic
    const { change, to, order, gates, proxy } = record
    const isAssigned = record.assigned === true ? { isAssigned: true } : {}
    const proposal = {
      id: record.proposal,
      proxy,
      at: offset,
      atMs,
      change,
      to,
      order,
      gates,
      ready: {},
      ...isAssigned,
    }
    return { ...topic, proposal }
  }
  const proposal = topic.proposal
  if (proposal === undefined || proposal.id !== record.proposal) return topic
  switch (record.kind) {
    case 'preparing':
      if (proposal.preparingAt !== undefined) return topic
      return { ...topic, proposal: { ...proposal, preparingAt: offset, preparingAtMs: atMs } }
    case 'ready':
      if (proposal.preparingAt === undefined) return topic
      return { ...topic, proposal: { ...proposal, ready: { ...proposal.ready, [record.proxy]: offset } } }
    case 'aborted':
      return abort(topic, proposal, record.reason, atMs)
    case 'open':
      if (proposal.preparingAt === undefined) return topic
      if (liveAt(fleet, offset).some((proxy) => proposal.ready[proxy] === undefined)) return topic
      return openLayout(topic, proposal, { ...entry, record })
  }
}

/** One change at a time; one that needs cuts waits until every earlier expansion with fresh partitions is sealed. */
export function mayPropose(topic: TopicState, to: number, gates: GateKind): boolean {
  if (topic.proposal !== undefined || to < 1 || to === currentLayout(topic).count) return false
  if (gates === 'seal') return true
  return topic.layouts.every(
    (layout) => layout.gates === 'cuts' || layout.change === 'met' || layout.seal !== undefined,
  )
}

function abort(topic: TopicState, { id, change, to }: Proposal, reason: string, atMs: number): TopicState {
  const aborted = { proposal: id, change, to, reason, atMs }
  // What somebody else created is noticed again as it was the first time.
  const attempted = change === 'expand' ? { attempted: Math.max(to, topic.attempted ?? 0) } : {}
  return { ...withoutProposal(topic), ...attempted, aborted }
}

function withoutProposal(topic: TopicState): TopicState {
  const { proposal: _, ...rest } = topic
  return rest
}

function openLayout(
  topic: TopicState,
  proposal: Proposal,
  entry: Placed<Extract<TopicChangeRecord, { kind: 'open' }>>,
): TopicState {
  const layout: Layout = {
    epoch: currentLayout(topic).epoch + 1,
    count: proposal.to,
    change: proposal.change,
    order: proposal.order,
    gates: proposal.gates,
    openedAt: entry.offset,
    openedAtMs: entry.atMs,
    starts: entry.record.starts,
    leaderEpochs: entry.record.leaderEpochs,
    unsettled: entry.record.unsettled,
    votes: {},
    withdrawn: {},
    lastVote: -1,
  }
  return { ...withoutProposal(topic), layouts: [...topic.layouts, layout] }
}

type LayoutEntry = Placed<Extract<TopicChangeRecord, { epoch: number }>>

function applyToLayout(topic: TopicState, entry: LayoutEntry, fleet: FleetState): TopicState {
  const layout = layoutOf(topic, entry.record.epoch)
  if (layout === undefined || layout.change === 'met') return topic
  const next = changeLayout(topic, layout, entry, fleet)
  if (next === layout) return topic
  return { ...topic, layouts: topic.layouts.map((other) => (other === layout ? next : other)) }
}

function changeLayout(topic: TopicState, layout: Layout, entry: LayoutEntry, fleet: FleetState): Layout {
  const { record, offset, atMs } = entry
  if (record.kind === 'announced') return announce(layout, record.live === true, offset)
  if (layout.seal !== undefined) return layout
  switch (record.kind) {
    case 'vote': {
      const { proxy, ballot, instances, ends, seen } = record
      if (ballot <= (layout.withdrawn[proxy] ?? -1)) return layout
      return {
        ...layout,
        votes: {
          ...layout.votes,
          [proxy]: { at: offset, ballot, instances, ends, ...(seen === undefined ? {} : { seen }) },
        },
        lastVote: offset,
      }
    }
    case 'withdrawal': {
      const { [record.proxy]: vote, ...others } = layout.votes
      const withdrawn = {
        ...layout.withdrawn,
        [record.proxy]: Math.max(record.ballot, layout.withdrawn[record.proxy] ?? -1),
      }
      const stands = vote !== undefined && vote.ballot > record.ballot
      return { ...layout, withdrawn, lastVote: offset, votes: stands ? layout.votes : others }
    }
    case 'sealed': {
      const { boundaries, gaveUp, forced } = record
      const missing = missingVotes(topic, layout, fleet, offset)
      const isComplete = missing.live.length === 0 && missing.dead.every((proxy) => gaveUp.includes(proxy))
      if (!forced && (!isComplete || record.lastVote !== layout.lastVote)) return layout
      const left = Object.values(topic.left ?? {}).filter(({ at }) => at > layout.openedAt)
      const raised = [...Object.values(layout.votes), ...left].reduce((sum, { ends }) => raise(sum, ends), boundaries)
      // Who voted stays to be shown; whose batches it vouched for is not asked again.
      const votes = Object.fromEntries(
        Object.entries(layout.votes).map(([proxy, vote]) => [proxy, { ...vote, instances: [] }]),
      )
      return { ...layout, votes, seal: { at: offset, atMs, boundaries: raised, gaveUp, forced } }
    }
  }
}

function announce(layout: Layout, live: boolean, offset: number): Layout {
  const isKnown = layout.announcedAt !== undefined && (!live || layout.isLive === true)
  if (isKnown) return layout
  return { ...layout, announcedAt: layout.announcedAt ?? offset, ...(live ? { isLive: true } : {}) }
}

/** What was said by proxies that left long ago concerns no change any more. */
const leftKeptMs = 3_600_000

function leave(topic: TopicState, entry: Placed<LeftRecord>): TopicState {
  const { offset: at, atMs } = entry
  const { proxy, sinceMs, instances, gone, ends } = entry.record
  const kept = Object.entries(topic.left ?? {}).filter(([, other]) => atMs - other.atMs < leftKeptMs)
  return { ...topic, left: { ...Object.fromEntries(kept), [proxy]: { at, atMs, sinceMs, instances, gone, ends } } }
}

/** A cut's ends are raised to those of every earlier cut and boundary: else two cuts can wait for each other. */
function applyCut(topic: TopicState, entry: Placed<Extract<TopicChangeRecord, { kind: 'cut' }>>): TopicState {
  const { record, offset, atMs } = entry
  if (topic.cuts.some((cut) => cut.id === record.cut)) return topic
  const earlier = [
    ...topic.cuts.map((cut) => cut.ends),
    ...topic.layouts.flatMap((layout) => (layout.seal === undefined ? [] : [layout.seal.boundaries])),
  ]
  const ends = earlier.reduce((sum, other) => raise(sum, other), record.ends)
  const cut: Cut = { id: record.cut, proxy: record.proxy, at: offset, atMs, layouts: record.layouts, ends, readers: {} }
  const { serves, seen } = record
  const named = serves === undefined || seen === undefined ? cut : { ...cut, serves, seen }
  return { ...topic, cuts: [...topic.cuts, named] }
}

/** Once it is in force nobody asks any more whom it serves. */
function readCut(before: Cut, { record, offset }: Placed<TopicChangeRecord>, fleet: FleetState): Cut {
  const cut = { ...before, readers: { ...before.readers, [record.proxy]: offset } }
  if (!isInForce(cut, fleet)) return cut
  const { serves: _, seen: __, ...bare } = cut
  return bare
}

/** Component-wise maximum over the partitions of `ends` only. */
function raise(ends: Record<number, number>, to: Record<number, number>): Record<number, number> {
  return Object.fromEntries(
    Object.entries(ends).map(([partition, end]) => [partition, Math.max(end, to[Number(partition)] ?? 0)]),
  )
}
