/**
 * Order across a change of layout, with real clients: the same run directly to the broker loses it (the control), through
 * a fleet of proxies it does not. A quick run has each family once as producer and once as consumer, paired by the printed
 * seed, and one control; `TEST_FULL=1` all pairs, so that each family meets each change twice on either side. `TEST_SEED=n` replays a choice, `TEST_FAMILIES=a,b` narrows it.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { familyNames } from '../../../scripts/setup/families.ts'
import { preparePrograms } from '../programs.ts'
import { directly, type Fleet, startFleet } from './fleet.ts'
import { assertOrdered, isDisordered, play, type Scenario } from './scenario.ts'

const full = process.env['TEST_FULL'] === '1'
const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 1e9))
const wanted = process.env['TEST_FAMILIES']?.split(',')
const families = familyNames.filter((name) => name !== 'java-2.8' && (wanted === undefined || wanted.includes(name)))
const programs = await preparePrograms(families)
const { here } = programs
const skip = programs.skipWithout([])

const changes: readonly (readonly number[])[] = [
  [3, 6],
  [3, 5],
  [6, 3],
  [3, 6, 12],
]
/** Of the whole control, at most: one that loses order is enough. */
const CONTROL_RUNS = 4

interface Case extends Omit<Scenario, 'topic'> {
  readonly order: 'key' | 'producer'
}

/** Each family once as producer and as consumer, or all pairs, with the changes and ways to send in turn. */
function cases(): Case[] {
  if (full) {
    return here.flatMap((producer, i) =>
      here.map((consumer, j): Case => {
        const counts = changes[(i + j) % changes.length] ?? [3, 6]
        return {
          producer,
          consumer,
          counts,
          idempotent: i % 2 === (j % 4) >> 1,
          order: (i + 2 * j) % 4 === 0 ? 'producer' : 'key',
        }
      }),
    )
  }
  const shift = seed % Math.max(1, here.length)
  return here.map((producer, i): Case => {
    const consumer = here[(i + shift) % here.length] ?? producer
    const counts = changes[(i + Math.floor(seed / 8)) % changes.length] ?? [3, 6]
    return { producer, consumer, counts, idempotent: (i + seed) % 2 === 0, order: i % 4 === 0 ? 'producer' : 'key' }
  })
}

/** Existing partitions gain keys: order holds per producer, and a key may be at two consumers until sealed. */
function needsCuts(counts: readonly number[]): boolean {
  return counts.some((count, i) => i > 0 && count % (counts[i - 1] ?? count) !== 0)
}

describe(`topics that change their partition count (TEST_SEED=${seed})`, { skip, concurrency: 2 }, () => {
  let fleet: Fleet
  before(async () => {
    fleet = await startFleet(
      2,
      "topics:\n  'key\\..*': {layouts: {goneAfter: 20s}}\n  'producer\\..*': {layouts: {order: producer, goneAfter: 20s}}\n",
    )
  })
  after(() => fleet?.stop())

  for (const [number, one] of cases().entries()) {
    const { producer, consumer, counts, idempotent, order } = one
    const how = `${idempotent ? 'idempotent ' : ''}${producer} → ${consumer}, order: ${order}`
    test(`${counts.join(' → ')}: ${how}`, { timeout: 480_000 }, async (t) => {
      const topic = `${order}.${number}.${producer}.${consumer}`
      const outcome = await play({ ...one, topic }, fleet.way(), programs.start)
      if (outcome.counted > 0) t.diagnostic(`${how}: ${outcome.counted} batches whose order nobody vouches for`)
      assertOrdered(outcome, { perProducer: order === 'producer' || needsCuts(counts) })
    })
  }

  // platformatic and kafka-python take up new partitions so late that nothing waits any more in the old ones.
  const prompt = here.filter((family) => family !== 'platformatic' && family !== 'kafka-python')
  const controls = full ? prompt : prompt.slice(seed % Math.max(1, prompt.length)).slice(0, 1)
  for (const family of controls) {
    test(`without Headgate: ${family} loses order`, { timeout: 480_000 }, async (t) => {
      // Order is lost by chance: the new partitions must be taken up while the old ones still have a backlog.
      for (let run = 1; run <= CONTROL_RUNS; run++) {
        const topic = `direct.${family}.${run}`
        const one = { topic, producer: family, consumer: family, idempotent: true, counts: [3, 6] }
        if (!isDisordered(await play(one, directly(fleet.kafka.bootstrap), programs.start))) continue
        t.diagnostic(`in run ${run}`)
        return
      }
      assert.fail(`the checker saw no key out of order in ${CONTROL_RUNS} runs`)
    })
  }
})
