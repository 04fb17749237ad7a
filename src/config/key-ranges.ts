/**
 * `groups.<regex>`: `ranges`, which buckets of the key hash a consumer has, as intervals of 16-bit hexadecimal numbers,
 * and `gate`, when the gates of layouts open for a group that never commits.
 */
import { z } from 'zod'
import { refuse } from './fields.ts'
import { gate, type GatePolicy } from './layouts.ts'
import { toPattern } from './patterns.ts'

type Context = z.core.$RefinementCtx

/** Buckets `first` to `last`, both included; there are 65,536. */
export interface KeyRange {
  readonly first: number
  readonly last: number
}

const fix = 'write hexadecimal buckets such as 0-7fff or c000-ffff (the hash space is 0-ffff)'

function parseRange(text: string, context: Context, index: number): KeyRange {
  const parsed = /^([0-9a-f]{1,8})(?:-([0-9a-f]{1,8}))?$/i.exec(text.trim())
  if (parsed === null) return refuse(context, `is not a range of buckets: ${JSON.stringify(text)}`, fix, [index])
  const first = Number.parseInt(parsed[1] ?? '', 16)
  const last = parsed[2] === undefined ? first : Number.parseInt(parsed[2], 16)
  if (last > 0xffff || first > 0xffff) return refuse(context, `is outside the hash space: ${text}`, fix, [index])
  if (last < first) return refuse(context, `is empty: ${text}`, 'write the lower bucket first', [index])
  return { first, last }
}

const keys = z
  .array(z.string({ error: () => `has the wrong type\n${fix}, in quotes` }))
  .min(1, `is empty\n${fix}`)
  .transform((texts, context): readonly KeyRange[] => texts.map((text, index) => parseRange(text, context, index)))

const rule = z.strictObject({
  clientId: z.string().min(1, 'is empty\nwrite the client.id of the consumer').describe('client.id of the consumer.'),
  keys: keys.describe('The buckets it gets, for example [0-7fff, c000-ffff].'),
})

const group = z
  .strictObject({
    ranges: z.array(rule).prefault([]).describe('Consumers that get only the records whose keys are in their buckets.'),
    gate: gate()
      .optional()
      .describe(
        'When records that wait after a change of a topic’s partitions are delivered to a group that never commits. block: never; position: when its fetches have passed; after 30s: so long after it met them.',
      ),
  })
  .superRefine(({ ranges }, context) => {
    const taken: (KeyRange & { clientId: string })[] = []
    ranges.forEach(({ clientId, keys: own }, index) =>
      own.forEach((range, at) => {
        const other = taken.find((t) => t.first <= range.last && range.first <= t.last)
        if (other !== undefined) {
          const message = `overlaps with ${hex(other)} of ${other.clientId}: a record would be delivered twice`
          refuse(context, message, 'give each bucket to one consumer', ['ranges', index, 'keys', at])
        }
        taken.push({ ...range, clientId })
      }),
    )
  })

function hex({ first, last }: KeyRange): string {
  return `${first.toString(16)}-${last.toString(16)}`
}

/** A regular expression that matches the whole group id, and what holds for such groups. */
export interface GroupConfig {
  readonly group: RegExp
  readonly ranges: readonly { readonly clientId: string; readonly ranges: readonly KeyRange[] }[]
  /** A number: milliseconds. undefined: a later entry, or `block`. */
  readonly gate: GatePolicy | undefined
}

export const groups = () =>
  z.record(z.string(), group).transform((entries, context): readonly GroupConfig[] => {
    const clientIds = new Set<string>()
    return Object.entries(entries).flatMap(([name, { ranges, gate: policy }]) => {
      const pattern = toPattern(name, 'group id', context)
      ranges.forEach(({ clientId }, index) => {
        const path = [name, 'ranges', index, 'clientId']
        if (clientIds.has(clientId))
          refuse(context, `is used twice: ${clientId}`, 'name a client id once, with all its keys', path)
        clientIds.add(clientId)
      })
      return pattern === undefined
        ? []
        : [
            {
              group: pattern,
              gate: policy,
              ranges: ranges.map(({ clientId, keys: own }) => ({ clientId, ranges: own })),
            },
          ]
    })
  })
