/**
 * The vote of one proxy on a change: "whoever wrote through me under an older layout, or may, is clean". It is taken back as
 * soon as that stops being true, and a late batch that comes while a vote stands, or may be on its way, waits until the
 * withdrawal was read back: then no seal rests on the vote, or the seal came first and the batch is counted.
 * Ballots ascend so that a vote which arrives in the log after its own withdrawal is void.
 */
import { currentLayout, type Layout } from '../../state/topic-state.ts'
import { isClean } from './clean.ts'
import { appendOnce, type Turn } from './guard-state.ts'
import type { View } from '../../state/view.ts'

/** Changes that are not sealed yet, oldest first. */
export function unsealed(view: View): Layout[] {
  return view.topic.layouts.filter((layout) => layout.change !== 'met' && layout.seal === undefined)
}

/** Whether this proxy's vote on the change stands in the log or may still get there. */
export function mayStand(turn: Turn, layout: Layout): boolean {
  const ballot = turn.state.ballots[layout.epoch]
  return ballot !== undefined && ballot > (layout.withdrawn[turn.state.proxy] ?? 0)
}

/** Takes the vote back; the log shows when that has happened. */
export function withdraw(turn: Turn, view: View, layout: Layout): void {
  const { proxy, ballots } = turn.state
  const ballot = ballots[layout.epoch] ?? 0
  const { topicId } = view.topic
  const record = { kind: 'withdrawal', proxy, topicId, epoch: layout.epoch, ballot } as const
  appendOnce(turn, `withdrawal ${layout.epoch} ${ballot}`, record)
}

/** Votes where everyone is clean, withdraws where somebody no longer is. */
export function vote(turn: Turn, view: View): void {
  for (const layout of unsealed(view)) {
    if (!isReady(turn, layout)) {
      if (mayStand(turn, layout)) withdraw(turn, view, layout)
    } else if (layout.votes[turn.state.proxy] === undefined) {
      castVote(turn, view, layout)
    }
  }
}

function isReady(turn: Turn, layout: Layout): boolean {
  const { ledgers, held, times } = turn.state
  const waits = held.some((item) => item.age < layout.epoch && item.reason !== 'no view')
  return !waits && [...ledgers.values()].every((ledger) => isClean(ledger, layout.epoch, turn.atMs, times))
}

function castVote(turn: Turn, view: View, layout: Layout): void {
  const { proxy, ballots, ends, ledgers } = turn.state
  const { epoch } = layout
  const ballot = mayStand(turn, layout)
    ? (ballots[epoch] ?? 0)
    : Math.max(ballots[epoch] ?? 0, layout.withdrawn[proxy] ?? 0) + 1
  // Both may have been lost: what was taken back is taken back again until the log shows it.
  if (hasPendingWithdrawal(turn, layout)) return withdraw(turn, view, layout)
  turn.state.ballots = { ...ballots, [epoch]: ballot }
  const here = [...ledgers.values()].filter((ledger) => ledger.goneSinceMs === undefined)
  const instances = here.filter((ledger) => ledger.wrote || ledger.isWriter).map((ledger) => ledger.instance)
  const { topicId } = view.topic
  const seen = view.position
  const record = {
    kind: 'vote',
    proxy,
    topicId,
    epoch,
    ballot,
    instances,
    ends: oldEnds(view, layout, ends),
    seen,
  } as const
  appendOnce(turn, `vote ${epoch} ${ballot}`, record)
}

/** A withdrawal is on its way: voting again with the same ballot would be undone by it. */
function hasPendingWithdrawal(turn: Turn, layout: Layout): boolean {
  const ballot = turn.state.ballots[layout.epoch]
  return mayStand(turn, layout) && turn.state.sent[`withdrawal ${layout.epoch} ${ballot}`] !== undefined
}

/** Ends of the partitions that an earlier layout had. */
function oldEnds(view: View, layout: Layout, ends: Readonly<Record<number, number>>): Record<number, number> {
  const older = view.topic.layouts.filter((other) => other.epoch < layout.epoch)
  const widest = Math.max(...older.map((other) => other.count))
  return Object.fromEntries(Object.entries(ends).filter(([partition]) => Number(partition) < widest))
}

/** Instances that left here and that another proxy has voted for since. */
export function takenOver(turn: Turn, view: View): string[] {
  const named = unsealed(view).flatMap((layout) => namedByOthers(turn, layout))
  const elsewhere = new Set(named.map(({ instance }) => instance))
  return [...turn.state.ledgers.values()]
    .filter((l) => l.goneSinceMs !== undefined && l.takenOverMs === undefined && elsewhere.has(l.instance))
    .map((l) => l.instance)
}

/**
 * An instance that writes here, and has been here without a break since before another proxy decided on the vote, or the
 * cut, that names it, is at both: neither knows all its batches. So is one that was here before a proxy that names it
 * began to stop. Its order is counted, and later changes use the seal where they can.
 */
export function reportSplit(turn: Turn, view: View): void {
  for (const layout of unsealed(view)) {
    for (const { instance, seen } of namedByOthers(turn, layout))
      noteSplit(turn, view, instance, (at) => wallOf(turn, at) < layout.openedAtMs || seen > positionAt(turn, at))
    for (const { instances, gone, sinceMs } of Object.values(view.topic.left ?? {}))
      for (const instance of Object.keys(instances))
        if (!gone.includes(instance)) noteSplit(turn, view, instance, (at) => wallOf(turn, at) < sinceMs)
  }
  const { openedAtMs } = currentLayout(view.topic)
  for (const { proxy, serves = [], seen = -1 } of view.topic.cuts) {
    if (proxy === turn.state.proxy) continue
    for (const instance of serves)
      noteSplit(turn, view, instance, (at) => wallOf(turn, at) < openedAtMs || seen > positionAt(turn, at))
  }
}

/** @param isDouble whether it was somewhere else since it was connected here */
function noteSplit(turn: Turn, view: View, instance: string, isDouble: (connectedMs: number) => boolean): void {
  const { state } = turn
  const ledger = state.ledgers.get(instance)
  if (ledger === undefined || ledger.connections === 0 || !ledger.wrote || state.split.has(instance)) return
  if (!isDouble(ledger.connectedMs)) return
  state.split = new Set(state.split).add(instance)
  turn.effects.push({ type: 'count', reason: 'at two proxies', instance })
  if (view.topic.split !== undefined) return
  appendOnce(turn, 'split', { kind: 'split', proxy: state.proxy, topicId: view.topic.topicId, instance })
}

function wallOf(turn: Turn, atMs: number): number {
  return atMs + turn.wallMs - turn.atMs
}

/** Whom other proxies vouch for, and up to where they had read when they decided to. */
function namedByOthers(turn: Turn, layout: Layout): { instance: string; seen: number }[] {
  return Object.entries(layout.votes).flatMap(([proxy, { instances, seen = -1 }]) =>
    proxy === turn.state.proxy ? [] : instances.map((instance) => ({ instance, seen })),
  )
}

/**
 * The log's end at a moment, or later; Infinity until it is known: the first reading after it may have been under way
 * already, the second one was not.
 */
function positionAt(turn: Turn, atMs: number): number {
  return turn.state.readings.filter((reading) => reading.atMs >= atMs)[1]?.position ?? Infinity
}
