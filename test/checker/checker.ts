/** Judges a history by named rules. */
import type { HistoryEvent, RunSettings } from './history.ts'
import { Index } from './run-index.ts'
import type { Rule, Violation } from './rule.ts'
import { abortedUnseen } from './rules/aborted-unseen.ts'
import { childAfterParents } from './rules/child-after-parents.ts'
import { commitNotAboveProcessed } from './rules/commit-not-above-processed.ts'
import { committedNotRedelivered } from './rules/committed-not-redelivered.ts'
import { duplicatesExplained } from './rules/duplicates-explained.ts'
import { identity } from './rules/identity.ts'
import { keyOrder } from './rules/key-order.ts'
import { nothingLost } from './rules/nothing-lost.ts'
import { oneMemberPerKey } from './rules/one-member-per-key.ts'

export const allRules: readonly Rule[] = [
  keyOrder,
  nothingLost,
  duplicatesExplained,
  oneMemberPerKey,
  committedNotRedelivered,
  commitNotAboveProcessed,
  childAfterParents,
  identity,
  abortedUnseen,
]

export interface Verdict {
  /** The first violations of each rule, at most `keep` of them. */
  violations: Violation[]
  /** Rule → how many violations in all; rules without any are there with 0. */
  counts: Record<string, number>
  /** Event name → how many of it the history holds, so that an empty run does not pass for a clean one. */
  events: Record<string, number>
}

export interface CheckOptions {
  rules?: readonly Rule[]
  /** Overrides what the history's `run` events say. */
  settings?: RunSettings
  /** Violations kept with their events, per rule. Default 20. */
  keep?: number
}

/** Judges a history that is already in the order of time (see `merge`). */
export function check(history: readonly HistoryEvent[], options: CheckOptions = {}): Verdict {
  const index = new Index(history)
  Object.assign(index.settings, options.settings)
  const verdict: Verdict = { violations: [], counts: {}, events: {} }
  for (const { event } of index.entries) verdict.events[event.event] = (verdict.events[event.event] ?? 0) + 1
  for (const rule of options.rules ?? allRules) {
    let count = 0
    const judge = rule.judge(index, (message, ...events) => {
      if (count++ >= (options.keep ?? 20)) return
      const proof = events.filter((event) => event !== undefined)
      verdict.violations.push({ rule: rule.name, message, events: proof })
    })
    for (const entry of index.entries) judge.see(entry)
    judge.end?.()
    verdict.counts[rule.name] = count
  }
  return verdict
}

/** Finds rules by name; throws on a name that no rule has. */
export function rulesNamed(names: readonly string[]): Rule[] {
  return names.map((name) => {
    const rule = allRules.find((r) => r.name === name)
    if (rule === undefined) throw new Error(`no rule ${name}; there are ${allRules.map((r) => r.name).join(', ')}`)
    return rule
  })
}
