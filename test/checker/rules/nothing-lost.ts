/**
 * Nothing acknowledged is lost: once a group has drained a topic, it was given every record that had been acknowledged
 * by then, save those of transactions that did not commit, those that retention or truncation took, and, on a
 * compacted topic, those that a later record of the same key and partition replaced.
 */
import type { DrainedEvent } from '../history.ts'
import type { Index } from '../run-index.ts'
import type { Report, Rule } from '../rule.ts'

export const nothingLost: Rule = {
  name: 'nothing-lost',
  about: 'a drained group was given every acknowledged record',
  judge(index, report) {
    const delivered = new Map<number, Set<number>>()
    const drained: DrainedEvent[] = []
    return {
      see({ event, group, origin }) {
        if (event.event === 'drained') drained.push(event)
        if (event.event !== 'delivered') return
        let ofGroup = delivered.get(group)
        if (ofGroup === undefined) delivered.set(group, (ofGroup = new Set()))
        ofGroup.add(origin)
      },
      end() {
        for (const event of drained) {
          judgeDrained(index, event, delivered.get(index.groups.id(event.group)) ?? new Set(), report)
        }
      },
    }
  },
}

function judgeDrained(index: Index, drained: DrainedEvent, delivered: ReadonlySet<number>, report: Report): void {
  const replaced = drained.compacted === true ? replacedOrigins(index, drained.topic) : new Set<number>()
  for (const [id, { topic, acknowledged }] of index.origins.entries()) {
    if (topic !== drained.topic || acknowledged === undefined || acknowledged.at > drained.at) continue
    if (delivered.has(id) || replaced.has(id)) continue
    const outcome = index.outcome(id)
    if (outcome === 'aborted' || outcome === 'unknown') continue
    const facts = index.partitions[index.partition(topic, acknowledged.partition)]
    const from = drained.from?.[acknowledged.partition] ?? 0
    const { offset } = acknowledged
    if (facts === undefined || offset < Math.max(facts.trimmedBelow, from) || offset >= facts.truncatedFrom) continue
    report(`acknowledged but never delivered to ${drained.group}`, acknowledged, drained)
  }
}

function replacedOrigins(index: Index, topic: string): Set<number> {
  const replaced = new Set<number>()
  for (const facts of index.partitions) {
    if (facts.topic !== topic) continue
    const lastOfKey = new Map<number, number>()
    // Not `known`: behind a truncation offsets are used again, and those records replace earlier ones too.
    for (const offset of Array.from(facts.origins.keys()).sort((a, b) => a - b)) {
      const origin = facts.origins.get(offset) ?? -1
      const key = index.origins[origin]?.key ?? -1
      const earlier = lastOfKey.get(key)
      if (key >= 0 && earlier !== undefined) replaced.add(earlier)
      lastOfKey.set(key, origin)
    }
  }
  return replaced
}
