/**
 * Cuts: an instance's first batch under another layout than its last waits until nothing of an older layout can still
 * come from it, then until a cut (the ends of all partitions at that moment) is recorded and read by every proxy.
 * A cut serves all instances that are quiet when its ends are read; of one instance only the oldest waiting layout.
 * Whatever arrives late or fails before the cut is in force starts the wait again, within the same bound.
 */
import type { CutRecord } from '../../state/record.ts'
import { currentLayout, isInForce, openEpochs, type TopicState } from '../../state/topic-state.ts'
import { clockOf, hasUnansweredOlder, lastOlder, owesOlder } from './clean.ts'
import { appendOnce, type Cutting, ledgerOf, type Round, type Turn } from './guard-state.ts'
import type { View } from '../../state/view.ts'

/** Far more than one client ever needed, in the model and in practice. */
const cutsMax = 20

/** The layout of the instance's last batch; of an unknown one the oldest by which batches may still come. */
export function cuttingOf(turn: Turn, view: View, instance: string): Cutting {
  const oldest = openEpochs(view.topic, turn.wallMs, turn.state.times.settleMs)[0] ?? 0
  const known = turn.state.cutting.get(instance) ?? { layout: oldest, reached: oldest, sinceMs: turn.atMs }
  return known.layout < oldest ? { ...known, layout: oldest } : known
}

/**
 * Changes layout again and again: several clients go by one name, or keys that no rule places. Cuts are kept as long as
 * their records, so there is an end to them, and what it writes is counted instead.
 */
export function goesToAndFro({ cuts = 0 }: Cutting): boolean {
  return cuts >= cutsMax
}

export function setCutting(turn: Turn, instance: string, cutting: Cutting): void {
  turn.state.cutting = new Map(turn.state.cutting).set(instance, cutting)
}

/** Begins the wait for a change to `target`, or keeps the one that runs (for the older of both). */
export function awaitCut(turn: Turn, view: View, instance: string, target: number): void {
  const cutting = cuttingOf(turn, view, instance)
  if (cutting.target !== undefined && cutting.target <= target) return
  const sinceMs = cutting.target === undefined ? turn.atMs : cutting.sinceMs
  setCutting(turn, instance, { ...cutting, target, sinceMs })
}

/**
 * Something older arrived, failed or was lost: cuts of this instance that are not in force do not serve it, unless it
 * has waited so long that it gets its cut whatever comes.
 */
export function restartCut(turn: Turn, instance: string, age: number): void {
  const { target, sinceMs = 0 } = turn.state.cutting.get(instance) ?? {}
  if (target === undefined || age >= target) return
  const isOverdue = turn.atMs - sinceMs >= turn.state.times.cutBoundMs
  turn.state.rounds = turn.state.rounds.map((round) => {
    if (round.targets[instance] === undefined) return round
    if (isOverdue) return { ...round, unquiet: [...new Set([...round.unquiet, instance])] }
    const { [instance]: _, ...targets } = round.targets
    return { ...round, targets }
  })
}

/** Fresh partitions whose seal is missing. */
export function waitingForSeal(topic: TopicState): number[] {
  return topic.layouts
    .filter((layout) => layout.gates === 'seal' && layout.seal === undefined)
    .flatMap((layout) => Object.keys(layout.starts).map(Number))
}

interface Released {
  readonly instance: string
  readonly target: number
  /** Since when it waited. */
  readonly sinceMs: number
  /** Older batches of it may lie above the cut. */
  readonly isForced: boolean
}

/** Looks at all rounds and all waiting instances: records, releases, begins. Returns what may go now. */
export function advanceCuts(turn: Turn, view: View): Released[] {
  const released: Released[] = []
  const open: Round[] = []
  for (const round of turn.state.rounds) {
    const cut = view.topic.cuts.find((other) => other.id === round.id)
    if (cut !== undefined && isInForce(cut, view.fleet)) {
      for (const [instance, target] of Object.entries(round.targets))
        released.push(release(turn, view, round, instance, target))
    } else if (Object.keys(round.targets).length > 0) {
      open.push(round)
      if (cut === undefined && round.ends !== undefined) recordCut(turn, view, round, round.ends)
    }
  }
  turn.state.rounds = open
  for (const { instance, target } of released) finishCut(turn, view, instance, target)
  beginRound(turn, view)
  return released
}

function release(turn: Turn, view: View, { unquiet }: Round, instance: string, target: number): Released {
  const cutting = cuttingOf(turn, view, instance)
  const isForced = unquiet.includes(instance) || !isQuiet(turn, instance, cutting, target)
  return { instance, target, sinceMs: cutting.sinceMs, isForced }
}

/** The ends of a round have been read; they are raised to what was seen acknowledged (the high watermark may lag). */
export function setEnds(turn: Turn, id: string, read: Readonly<Record<number, number>>): void {
  turn.state.rounds = turn.state.rounds.map((round) => {
    if (round.id !== id || round.ends !== undefined) return round
    const kept = Object.entries(read).filter(([partition]) => !round.leftOut.includes(Number(partition)))
    const ends = kept.map(([partition, end]) => [partition, Math.max(end, turn.state.ends[Number(partition)] ?? 0)])
    return { ...round, ends: Object.fromEntries(ends) as Record<number, number> }
  })
}

function finishCut(turn: Turn, view: View, instance: string, target: number): void {
  const { target: waited, ...cutting } = cuttingOf(turn, view, instance)
  const isDone = waited === undefined || waited <= target
  const cuts = target > cutting.reached ? 1 : (cutting.cuts ?? 0) + 1
  setCutting(turn, instance, { ...cutting, ...(isDone ? {} : { target: waited }), layout: target, cuts })
}

function recordCut(turn: Turn, view: View, round: Round, ends: Readonly<Record<number, number>>): void {
  const { topicId } = view.topic
  const isHere = (instance: string): boolean => (turn.state.ledgers.get(instance)?.connections ?? 0) > 0
  const record: CutRecord = {
    kind: 'cut',
    proxy: turn.state.proxy,
    topicId,
    cut: round.id,
    layouts: [...round.layouts],
    ends,
    serves: Object.keys(round.targets).filter(isHere),
    seen: view.position,
  }
  appendOnce(turn, `cut ${round.id}`, record)
}

/**
 * Every cut is kept as long as its records are, so where many producers change one after the other, cuts are taken
 * ever further apart and each serves more of them: some hundreds for a change, whatever the number of producers.
 */
function apartMs(topic: TopicState): number {
  const opened = currentLayout(topic).openedAt
  return Math.min(4000, 10 * topic.cuts.filter((cut) => cut.at > opened).length)
}

function beginRound(turn: Turn, view: View): void {
  const { rounds, times, proxy } = turn.state
  const reading = rounds.find((round) => round.ends === undefined)
  if (reading !== undefined) {
    // Its answer was lost, or its instances left: ask again, with whoever is quiet by then.
    if (turn.atMs - reading.askedMs < times.retryMs) return
    turn.state.rounds = rounds.filter((round) => round !== reading)
  }
  if (turn.atMs - turn.state.lastRoundMs < apartMs(view.topic)) return
  const targets: Record<string, number> = {}
  const unquiet: string[] = []
  for (const [instance, cutting] of turn.state.cutting) {
    const { target } = cutting
    if (target === undefined || turn.state.rounds.some((round) => round.targets[instance] !== undefined)) continue
    const isCalm = isQuiet(turn, instance, cutting, target)
    if (!isCalm && turn.atMs - cutting.sinceMs < times.cutBoundMs) continue
    targets[instance] = target
    if (!isCalm) unquiet.push(instance)
  }
  if (Object.keys(targets).length === 0) return
  const id = `${proxy}:${turn.state.roundsMade}`
  turn.state.roundsMade += 1
  turn.state.lastRoundMs = turn.atMs
  const layouts = openEpochs(view.topic, turn.wallMs, times.settleMs)
  const leftOut = waitingForSeal(view.topic)
  turn.state.rounds = [...turn.state.rounds, { id, targets, layouts, leftOut, unquiet, askedMs: turn.atMs }]
  const widest = Math.max(...view.topic.layouts.map((layout) => layout.count))
  turn.effects.push({ type: 'read-ends', round: id, partitions: Array.from({ length: widest }, (_, p) => p) })
}

/** Whether nothing older than `target` is known to be on its way from the instance, and was not for a while. */
function isQuiet(turn: Turn, instance: string, cutting: Cutting, target: number): boolean {
  const { times, held } = turn.state
  const ledger = ledgerOf(turn, instance)
  const patience = { ...times, comeBackMs: Math.min(times.comeBackMs, times.cutComeBackMs) }
  if (hasUnansweredOlder(ledger, target, turn.atMs) || owesOlder(ledger, target, turn.atMs, patience)) return false
  if (held.some((item) => item.batch.instance === instance && item.age < target && item.reason === 'withdrawal'))
    return false
  const now = clockOf(ledger, turn.atMs)
  // The instance's clock runs behind real time by its stops: the wait began no earlier on it than this.
  const since = Math.max(lastOlder(ledger, target), now - (turn.atMs - cutting.sinceMs))
  return now - since >= times.cutQuietMs
}
