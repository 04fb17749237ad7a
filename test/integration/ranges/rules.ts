/** The ranges that the proxy is configured with, per family, and what they mean for a record. */
import type { FamilyName } from '../../../scripts/setup/families.ts'
import { bucketOfKey, bucketOfOffset } from '../../../src/records/hashes/buckets.ts'
import type { ClientEvent } from '../client.ts'

/** The key that one consumer has for itself: the first that the client programs write. */
const key = Buffer.from('k0é')
const bucketOfThatKey = bucketOfKey(key, 0, key.length)

/** Consumers whose ranges complement each other, by what they have. */
export const rules = {
  half: { left: [[0, 0x7fff]], right: [[0x8000, 0xffff]] },
  whole: { all: [[0, 0xffff]] },
  key: {
    one: [[bucketOfThatKey, bucketOfThatKey]],
    others: [
      [0, bucketOfThatKey - 1],
      [bucketOfThatKey + 1, 0xffff],
    ],
  },
} as const

export type RuleSet = keyof typeof rules

/** Pairs of first and last bucket. */
type Ranges = readonly (readonly [number, number])[]

export function members(set: RuleSet): [name: string, ranges: Ranges][] {
  return Object.entries(rules[set])
}

export function clientIdOf(family: FamilyName, member: string): string {
  return `ranges-${family}-${member}`
}

/** The part of the configuration file. */
export function configuration(families: readonly FamilyName[]): string {
  const lines = ['groups:']
  for (const family of families) {
    for (const set of Object.keys(rules) as RuleSet[]) {
      lines.push(`  'ranges\\.${family}\\.${set}\\..*':`, '    ranges:')
      for (const [member, ranges] of members(set)) {
        const keys = ranges.map(([first, last]) => `'${first.toString(16)}-${last.toString(16)}'`)
        lines.push(`      - {clientId: ${clientIdOf(family, member)}, keys: [${keys.join(', ')}]}`)
      }
    }
  }
  return `${lines.join('\n')}\n`
}

export function isIn(ranges: Ranges, { key: text, offset = -1 }: ClientEvent): boolean {
  const bytes = typeof text === 'string' ? Buffer.from(text) : undefined
  const bucket = bytes === undefined ? bucketOfOffset(offset) : bucketOfKey(bytes, 0, bytes.length)
  return ranges.some(([first, last]) => first <= bucket && bucket <= last)
}
