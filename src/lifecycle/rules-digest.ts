/** A digest of the rules by which a proxy guards topics, which all proxies of a fleet are to share. */
import { createHash } from 'node:crypto'
import type { Config } from '../config/schema.ts'

/** The same for the same rules in the same order, and nothing else of the configuration. */
export function rulesDigest({ topics, groups }: Pick<Config, 'topics' | 'groups'>): string {
  const gates = groups.flatMap(({ group, gate }) => (gate === undefined ? [] : [[group.source, gate]]))
  const rules = topics.map(({ topic, ...settings }) => [topic.source, Object.entries(settings).sort()])
  return createHash('sha256')
    .update(JSON.stringify([rules, gates]))
    .digest('hex')
    .slice(0, 12)
}
