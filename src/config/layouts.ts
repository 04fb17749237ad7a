/**
 * `topics.<regex>.layouts`: topics whose partition count may change without breaking the order of a key. The shapes are
 * those that src/features/layouts reads.
 */
import { z } from 'zod'
import { duration, durationOrNever, refuse } from './fields.ts'
import { toPattern } from './patterns.ts'

/** As src/records names them; a test keeps both lists equal. */
const partitioners = [
  'auto',
  'murmur2-mask',
  'murmur2-unsigned',
  'crc32',
  'fnv1a-abs',
  'fnv1a-mask',
  'fnv1a-unsigned',
  'kafkajs-legacy',
  'none',
] as const

const choice = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, `is not a known value\nuse one of: ${values.join(', ')}`)

const layouts = z
  .strictObject({
    partitioner: choice(partitioners)
      .default('auto')
      .describe('How producers place keys. auto: learned from what each writes. none: keys say nothing.'),
    order: choice(['key', 'producer'])
      .default('key')
      .describe(
        'What is kept in order. key: all records of a key, whoever wrote them; new partitions wait for all producers. producer: those of one producer; nobody waits for a stranger.',
      ),
    sealAfter: durationOrNever(1000)
      .prefault('never')
      .describe('Ends the wait for producers of the old layout after this long; what they write then is counted.'),
    goneAfter: duration(1000)
      .prefault('2m')
      .describe('How long a producer that left with batches unanswered, or a dead proxy, is waited for.'),
    late: choice(['accept', 'refuse'])
      .default('accept')
      .describe(
        'Batches of the old layout after a change. refuse fails them for good, except where that would break the client.',
      ),
    stateLoss: choice(['hold', 'pass'])
      .default('hold')
      .describe('While __headgate_state cannot be had: hold the requests, or pass them on with the last known layout.'),
  })
  .transform(({ sealAfter, goneAfter, ...rest }) => ({
    ...rest,
    sealAfterMs: sealAfter,
    goneAfterMs: goneAfter,
  }))

const topic = z.strictObject(
  {
    layouts: layouts.optional().describe('Lets the partition count change in order; {} for the defaults.'),
  },
  'is not a map of settings\nwrite for example {layouts: {}}',
)

/** A regular expression that matches the whole topic name, and what holds for such topics. */
export interface TopicConfig extends z.output<typeof layouts> {
  readonly topic: RegExp
}

/** One entry for each expression with `layouts`, in the order of the file: the first that matches a topic holds. */
export const topics = () =>
  z.record(z.string(), topic).transform((entries, context): readonly TopicConfig[] =>
    Object.entries(entries).flatMap(([name, settings]) => {
      const pattern = toPattern(name, 'topic name', context)
      if (pattern === undefined || settings.layouts === undefined) return []
      return [{ topic: pattern, ...settings.layouts }]
    }),
  )

export type GatePolicy = 'block' | 'position' | number

const gateFix = 'write block, position, or after and a duration: after 30s'
/** A plain number counts milliseconds: `after 30` would give up order at once. */
const gateMinMs = 1000

/** `groups.<regex>.gate`; a number is that many milliseconds. */
export const gate = () =>
  z.string({ error: () => `has the wrong type\n${gateFix}` }).transform((text, context): GatePolicy => {
    if (text === 'block' || text === 'position') return text
    const after = /^after\s+(\S+)$/.exec(text.trim())?.[1]
    if (after === undefined) return refuse(context, `is not a gate policy: ${JSON.stringify(text)}`, gateFix)
    const parsed = duration(gateMinMs).safeParse(after)
    if (parsed.success) return parsed.data
    return refuse(context, `is not a gate policy: ${JSON.stringify(text)}`, gateFix)
  })
