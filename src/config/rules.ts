/** The rules for topics and groups, as people are told of them: those in force, and those that look like a mistake. */
import { writtenAs } from './patterns.ts'
import type { Problem } from './problems.ts'
import type { Config } from './schema.ts'
import { durationText } from './units.ts'

type Rules = Pick<Config, 'topics' | 'groups'>

/** One line for each rule for topics, in the order in which they are tried. */
export function topicRuleLines({ topics }: Rules): string[] {
  return topics.map(({ topic, order, partitioner, sealAfterMs, goneAfterMs, late, stateLoss }) => {
    const times = `sealAfter ${sealAfterMs === undefined ? 'never' : durationText(sealAfterMs)}, goneAfter ${durationText(goneAfterMs)}`
    return `${writtenAs(topic)}: order ${order}, partitioner ${partitioner}, ${times}, late ${late}, stateLoss ${stateLoss}`
  })
}

/** One line for each rule for groups, in the order in which they are tried. */
export function groupRuleLines({ groups }: Rules): string[] {
  return groups.map(({ group, gate, ranges }) => {
    const shares = ranges.length === 0 ? '' : `, key ranges for ${ranges.map(({ clientId }) => clientId).join(', ')}`
    return `${writtenAs(group)}: gate ${gateText(gate)}${shares}`
  })
}

function gateText(gate: Config['groups'][number]['gate']): string {
  return typeof gate === 'number' ? `after ${durationText(gate)}` : (gate ?? 'block')
}

/** What is allowed and hardly meant. `where` is not filled in. */
export function ruleWarnings({ topics, groups }: Rules): Problem[] {
  const gates = groups.filter(({ gate }) => gate !== undefined)
  const patterns = { topics: topics.map(({ topic }) => topic), groups: gates.map(({ group }) => group) }
  return [...warnings('topics', patterns.topics), ...warnings('groups', patterns.groups)]
}

function warnings(section: 'topics' | 'groups', patterns: readonly RegExp[]): Problem[] {
  return patterns.flatMap((pattern, index) => {
    const written = writtenAs(pattern)
    const key = `${section}.${written}`
    const earlier = patterns.slice(0, index).find((other) => covers(other, written, pattern))
    const found: Problem[] = []
    if (earlier !== undefined) {
      const message = `never holds: ${writtenAs(earlier)} before it matches the same ${section}`
      found.push({ where: '', key, message, fix: 'put the exception before the rule it is taken from' })
    }
    const glob = /^([\w-]+)\*$/.exec(written)?.[1]
    if (glob !== undefined) {
      const message = `matches only names such as ${glob} and ${glob}${glob.at(-1)}: it is a regular expression`
      found.push({ where: '', key, message, fix: `write ${glob}.* for all names that begin with ${glob}` })
    }
    return found
  })
}

/** Whether `earlier` matches whatever this expression does, as far as that can be seen from examples of it. */
function covers(earlier: RegExp, written: string, pattern: RegExp): boolean {
  const examples = ['', 'x', '-7', '.eu.q_1'].map((any) => written.replace(/\.[*+]/g, any).replaceAll('\\.', '.'))
  const names = examples.filter((name) => /^[\w.-]+$/.test(name) && pattern.test(name))
  return names.length > 0 && names.every((name) => earlier.test(name))
}
