/** What `headgate groups gates` prints: for each partition what its next records wait for, or every gate; what nobody is assigned. */
import { ranges, span, table } from './table.ts'

export interface GateText {
  topic: string
  partition: number
  from: number
  seal?: number
  cut?: string
  parent?: number
  until?: number
  committed?: number
  since: string
}

/** Partitions of a topic that nobody in the group is assigned. */
export interface UnassignedText {
  topic: string
  unassigned: number[]
  leader: string
  unaware: { instance: string; member: string; partitions: number }[]
  since: string
}

/** Every gate, those that wait behind others too. */
export function allGates(
  gates: readonly GateText[],
  nowMs: number,
  unassigned: readonly UnassignedText[] = [],
): string {
  const rows = gates.map((gate) => {
    const { topic, partition, from, committed, until, since } = gate
    const done = until === undefined ? undefined : (committed ?? 'nothing')
    return [topic, partition, from, waitsFor(gate, unassigned), done, leftOf(gate), span(nowMs - Date.parse(since))]
  })
  return table(['TOPIC', 'PARTITION', 'FROM', 'WAITS FOR', 'COMMITTED', 'OFFSETS LEFT', 'SINCE'], rows)
}

/**
 * One row for each partition: what its first record that waits is waited for. After several cuts most gates wait behind
 * those; how many is said below.
 */
export function firstGates(
  gates: readonly GateText[],
  nowMs: number,
  unassigned: readonly UnassignedText[] = [],
): string {
  const partitions = new Map<string, GateText[]>()
  for (const gate of gates) {
    const name = `${gate.topic}/${gate.partition}`
    partitions.set(name, [...(partitions.get(name) ?? []), gate])
  }
  let shown = 0
  const rows = Array.from(partitions.values(), (all) => {
    const from = Math.min(...all.map((gate) => gate.from))
    const first = all.filter((gate) => gate.from === from)
    shown += first.length
    const [slowest] = first.sort((a, b) => (leftOf(b) ?? Infinity) - (leftOf(a) ?? Infinity))
    if (slowest === undefined) return []
    const { topic, partition, committed, until } = slowest
    const parents = new Set(first.map(({ parent }) => parent))
    const others = parents.size === 1 ? '' : ` and ${parents.size - 1} more`
    const done = until === undefined ? undefined : (committed ?? 'nothing')
    const sinceMs = Math.min(...first.map(({ since }) => Date.parse(since)))
    const what = `${waitsFor(slowest, unassigned)}${others}`
    return [topic, partition, from, what, done, leftOf(slowest), span(nowMs - sinceMs)]
  })
  const text = table(['TOPIC', 'PARTITION', 'FROM', 'WAITS FOR', 'COMMITTED', 'OFFSETS LEFT', 'SINCE'], rows)
  const hidden = gates.length - shown
  if (hidden === 0) return text
  return `${text}${hidden} ${hidden === 1 ? 'gate' : 'gates'} behind these, of later changes of layout: --all shows them\n`
}

function leftOf({ until, committed }: GateText): number | undefined {
  return until === undefined ? undefined : Math.max(0, until - (committed ?? 0))
}

function waitsFor({ topic, parent, until, seal, cut }: GateText, unassigned: readonly UnassignedText[]): string {
  if (parent === undefined) return `the seal of epoch ${seal}`
  const isNobodys = unassigned.some((row) => row.topic === topic && row.unassigned.includes(parent))
  return `partition ${parent} up to ${until}${cut === undefined ? '' : ` (cut ${cut})`}${isNobodys ? ', not assigned yet' : ''}`
}

/** A line for each topic with partitions that nobody is assigned: who has to learn of them, or to assign them. */
export function unassignedLines(rows: readonly UnassignedText[], nowMs: number): string {
  return rows
    .map(({ topic, unassigned, leader, unaware, since }) => {
      const clients = unaware.map(
        ({ instance, partitions }) =>
          `${instance} (${instance === leader ? 'leads, ' : ''}was shown ${partitions === 0 ? 'none' : partitions})`,
      )
      const why =
        clients.length === 0
          ? `all members here have seen them; their leader ${leader} assigns them when the group joins again`
          : `not seen yet by ${clients.join(', ')}`
      const what = unassigned.length === 1 ? 'partition' : 'partitions'
      return `${topic} ${what} ${ranges(unassigned)}: not assigned yet, for ${span(nowMs - Date.parse(since))}; ${why}\n`
    })
    .join('')
}
