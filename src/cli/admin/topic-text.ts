/** What `headgate topics` prints, from the answers of /api/topics. */
import { offsets, ranges, span, table, waiting } from './table.ts'

export interface TopicRow {
  topic: string
  partitions?: number
  exists: number
  epoch?: number
  order: string
  phase: string
  /** Since when it has been in this phase. */
  since?: string
  /** The expression of the rule, as it stands in the configuration. */
  matches?: string
}

interface Waited {
  why: string
  since?: string
  atMost?: string
}

export interface LayoutText {
  epoch: number
  partitions: number
  change: string
  gates: string
  since: string
  starts?: Record<string, number>
  votes?: { proxy: string; instances: number }[]
  announced?: boolean
  live?: boolean
  stillWide?: { instance: string; partitions: number }[]
  waitsFor?: { proxies: (Waited & { proxy: string; host: string })[]; instances: (Waited & { instance: string })[] }
  seal?: { at: string; boundaries: Record<string, number>; gaveUp: string[]; forced: boolean }
}

export interface TopicText extends TopicRow {
  topicId: string
  rule: { matches: string; partitioner: string; order: string; late: string; stateLoss: string }
  seenBy: string
  held: number
  late: number
  counted: Record<string, number>
  problem?: string
  /** Proxies whose rules differ from those of the proxy that answers. */
  otherRules?: { proxy: string; host: string }[]
  change?: {
    change: string
    to: number
    gates: string
    since: string
    step: string
    notReady: string[]
    atMost: string
  }
  aborted?: { change: string; to: number; reason: string; at: string }
  cuts?: number
  lastCut?: { at: string; ends: Record<string, number> }
  layouts?: LayoutText[]
}

export interface PlanText {
  topic: string
  from: number
  to: number
  change: string
  epoch?: number
  gates?: string
  fresh?: number[]
  gaining?: number[]
  live?: boolean
  dryRun?: boolean
}

export function listText(rows: readonly TopicRow[], nowMs: number): string {
  if (rows.length === 0) return 'no topic with layouts exists yet\n'
  const cells = rows.map(({ topic, phase, since, partitions, exists, epoch, order, matches }) => {
    const hidden = partitions === undefined ? undefined : exists - partitions
    const forLong = since === undefined ? undefined : span(nowMs - Date.parse(since))
    return [topic, phase, forLong, partitions, hidden, epoch, order, matches]
  })
  return table(['TOPIC', 'PHASE', 'FOR', 'PARTITIONS', 'HIDDEN', 'EPOCH', 'ORDER', 'RULE'], cells)
}

export function topicText(topic: TopicText, nowMs: number): string {
  const { partitions = '?', exists, rule, layouts = [] } = topic
  const hidden = typeof partitions === 'number' && exists > partitions ? ` (${exists} exist)` : ''
  const lines = [
    `topic ${topic.topic}: ${partitions} partitions${hidden}, ${topic.phase}`,
    `  id ${topic.topicId}, rule ${rule.matches}: order ${rule.order}, partitioner ${rule.partitioner}, late ${rule.late}, state loss ${rule.stateLoss}`,
    ...(topic.problem === undefined ? [] : [`  ${topic.problem}`]),
    ...(topic.otherRules ?? []).map(
      ({ proxy, host }) => `  proxy ${proxy} (${host}) has other rules for topics or groups: give every proxy the same`,
    ),
    ...changeLines(topic, nowMs),
    ...[...layouts].reverse().flatMap((layout) => layoutLines(layout, nowMs)),
    ...cutLines(topic),
    `  late batches ${topic.late}, held now ${topic.held} (as proxy ${topic.seenBy} sees it)${lateNote(topic)}`,
    ...Object.entries(topic.counted).map(([reason, count]) => `  order may be lost, ${reason}: ${count}`),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/** So that a number that grows is not taken for an error. */
function lateNote({ late, phase }: TopicText): string {
  if (late === 0) return ''
  if (phase === 'shrinking') return '; normal: producers that were not restarted write by the larger count, in order'
  return phase === 'unsealed' ? '; normal until the change is sealed: they are kept in order' : ''
}

function changeLines({ change, aborted }: TopicText, nowMs: number): string[] {
  const lines: string[] = []
  if (change !== undefined) {
    lines.push(`  ${change.change} to ${change.to}: ${change.step}${waiting(change.since, change.atMost, nowMs)}`)
    if (change.notReady.length > 0) lines.push(`    not ready yet: ${change.notReady.join(', ')}`)
  }
  if (aborted !== undefined)
    lines.push(`  last aborted: ${aborted.change} to ${aborted.to} at ${aborted.at}: ${aborted.reason}`)
  return lines
}

function cutLines({ cuts = 0, lastCut }: TopicText): string[] {
  if (lastCut === undefined) return []
  return [`  cuts ${cuts}, the last at ${lastCut.at}: ${offsets(lastCut.ends)}`]
}

function layoutLines(layout: LayoutText, nowMs: number): string[] {
  const { epoch, partitions, change, gates, since, seal, waitsFor, starts = {}, votes = [] } = layout
  const lines = [
    `  epoch ${epoch}: ${partitions} partitions since ${since}${change === 'met' ? ', as it was met' : ` (${change}, ${gates})`}`,
  ]
  if (Object.keys(starts).length > 0) lines.push(`    new partitions begin at ${offsets(starts)}`)
  if (change === 'shrink' && layout.announced !== undefined) lines.push(...shrinkLines(layout))
  if (seal !== undefined) {
    const how = seal.forced
      ? ', forced by sealAfter'
      : seal.gaveUp.length > 0
        ? `, gave up ${seal.gaveUp.join(', ')}`
        : ''
    lines.push(`    sealed at ${seal.at}${how}; boundaries ${offsets(seal.boundaries)}`)
  }
  if (waitsFor === undefined) return lines
  const voted = votes.length === 0 ? 'nobody yet' : votes.map(({ proxy }) => proxy).join(', ')
  lines.push(`    not sealed; voted: ${voted}`)
  for (const { proxy, host, why, since: from, atMost } of waitsFor.proxies)
    lines.push(`    waits for proxy ${proxy} (${host}): ${why}${waiting(from, atMost, nowMs)}`)
  for (const { instance, why, since: from, atMost } of waitsFor.instances)
    lines.push(`    waits for client ${instance}: ${why}${waiting(from, atMost, nowMs)}`)
  return lines
}

function shrinkLines({ announced, live, stillWide = [] }: LayoutText): string[] {
  const how = announced
    ? live
      ? 'announced, to living clients too'
      : 'announced to clients that start'
    : 'not announced'
  if (stillWide.length === 0) return [`    ${how}; no client here keeps more partitions`]
  return [
    `    ${how}; to be restarted:`,
    ...stillWide.map(({ instance, partitions }) => `      ${instance} keeps ${partitions} partitions`),
  ]
}

export function planText(plan: PlanText): string {
  const { topic, from, to, change, epoch, gates, fresh = [], gaining = [], live, dryRun } = plan
  if (from === to) {
    const shown = dryRun ? 'would be shown' : 'is now shown'
    return `the shrink of topic ${topic} to ${to} partitions (epoch ${epoch}) ${shown} to living producers too: batches that cannot follow fail visibly\n`
  }
  const done = dryRun ? 'would go' : 'went'
  const lines = [
    `topic ${topic} ${done} from ${from} to ${to} partitions (${change}${epoch === undefined ? '' : `, epoch ${epoch}`})`,
  ]
  if (fresh.length > 0) lines.push(`  new: ${ranges(fresh)}`)
  if (gates === 'seal') lines.push('  new partitions are delivered once every producer has left the old layout')
  if (gates === 'cuts') {
    lines.push('  each producer’s first batch by the new layout waits for a cut')
    lines.push('  groups are given what lies behind a cut when they have committed what lies before it')
  }
  if (gaining.length > 0) lines.push(`  existing partitions that are given keys: ${ranges(gaining)}`)
  if (live) lines.push('  shown to living producers too: batches that cannot follow fail visibly')
  if (dryRun) lines.push('  nothing was changed')
  return lines.map((line) => `${line}\n`).join('')
}
