/**
 * Plans aimed at one danger of changing layouts each: what has to come together for it does so too rarely by chance. The
 * rest of a plan stays as it was drawn.
 */
import type { Random } from './kernel/random.ts'
import type { ConsumerPlan, Fault, Plan, ProducerPlan } from './plan.ts'

type Aim = (plan: Plan, random: Random) => Plan

const produce = 0
/** One request in flight: they take the new layout at once, and are quiet. */
const serial = ['kafkajs-idempotent', 'sarama', 'aiokafka', 'platformatic']
const readingAhead = ['java', 'librdkafka', 'franz-go']
/** By then a change of an idle topic is sealed (15 s) and the layout before it settled (20 s, `layouts.ts`). */
const settledMs = 40_000
/** Of the first five keys (`k0` …) one lies in 0 of 3, 3 of 6, 9 of 12 partitions, and no other in 3. */
const chainedKeys = 5
/** Idempotent and pipelining: the order of their records is theirs to keep, whatever is refused. */
const pipelining = ['java', 'librdkafka-idempotent', 'kafka-python', 'franz-go']

/** Refused batches that come back only seconds later, when all else is quiet. */
const batchesThatReturnLate: Aim = (plan, random) => {
  const first = firstChange(plan)
  return {
    ...changed(plan, 3, [{ atMs: first, to: 6 }]),
    producers: plan.producers.map((producer) => steady(producer, { family: 'franz-go', keys: 12, gapMs: 60 })),
    faults: [refusals(random, first), refusals(random, first)],
  }
}

/**
 * A second expansion when the first is settled, with nothing written between them, and a group that is behind both: what it
 * waits for in the partitions of the first is nothing, and what that waits for is all.
 */
const twoExpansionsApart: Aim = (plan, random) => {
  const first = firstChange(plan)
  const second = first + settledMs + random.between(0, 2_000)
  const quietMs: [number, number] = [first - 300, second + 2_000]
  const changes = [
    { atMs: first, to: 6 },
    { atMs: second, to: 12 },
  ]
  return {
    ...changed(plan, 3, changes),
    producers: plan.producers.map((producer) =>
      steady(producer, { keys: chainedKeys, records: 200, gapMs: 60, quietMs }),
    ),
    consumers: plan.consumers.map((consumer) => ({
      ...lagging(consumer),
      startMs: second + random.between(4_000, 8_000),
    })),
    faults: [],
  }
}

/** Batches of the old layout that are refused at one broker while others take those of the new one. */
const oldBehindNew: Aim = (plan, random) => {
  const first = firstChange(plan)
  return {
    ...changed(plan, 3, [{ atMs: first, to: 5 }]),
    nodes: 3,
    producers: plan.producers.map((producer) =>
      steady(producer, { family: random.pick(pipelining), keys: 6, gapMs: 40 }),
    ),
    consumers: plan.consumers.map((consumer) => ({ ...consumer, maxWorkMs: 0 })),
    faults: [refusals(random, first), refusals(random, first), refusals(random, first)],
  }
}

/** A proxy that does not get to read the cuts, while it still may act. */
const cutsUnread: Aim = (plan, random) => {
  const atMs = firstChange(plan) + random.between(30, 600)
  const fault = { atMs, kind: 'state-cut-off', proxy: random.below(2), forMs: random.between(4_000, 8_000) } as const
  return { ...behindCuts(plan, random, 60), faults: [fault] }
}

/** A proxy that does not hear of the change at all, until it is expelled, and goes on with what it knew. */
const changeUnheard: Aim = (plan, random) => {
  const atMs = firstChange(plan) - random.between(500, 2_500)
  const fault = {
    atMs,
    kind: 'own-requests-lost',
    proxy: random.below(2),
    forMs: random.between(18_000, 24_000),
  } as const
  return { ...behindCuts(plan, random, 250), faults: [fault] }
}

const aims: readonly Aim[] = [batchesThatReturnLate, twoExpansionsApart, oldBehindNew, cutsUnread, changeUnheard]

export function aimed(plan: Plan, random: Random): Plan {
  return random.pick(aims)(plan, random)
}

function firstChange({ layouts }: Plan): number {
  return layouts?.changes[0]?.atMs ?? 0
}

function changed(plan: Plan, partitions: number, changes: { atMs: number; to: number }[]): Plan {
  const { layouts } = plan
  return layouts === undefined
    ? plan
    : { ...plan, partitions, layouts: { ...layouts, order: 'key', changes, isExternal: false } }
}

/** Keys move between old partitions, and a group of clients that read ahead lags in all of them. */
function behindCuts(plan: Plan, random: Random, gapMs: number): Plan {
  const family = random.pick(readingAhead)
  const assignor = 'range'
  return {
    ...changed(plan, 3, [{ atMs: firstChange(plan), to: 5 }]),
    proxies: 2,
    nodes: 3,
    partitionMaxBytes: 1024 * 1024,
    producers: plan.producers.map((producer) =>
      steady(producer, { family: random.pick(serial), keys: 24, records: 200, gapMs }),
    ),
    consumers: ['c0', 'c1', 'c2'].map((name) => ({ name, family, assignor, startMs: 0, maxWorkMs: 600 })),
  }
}

function steady(producer: ProducerPlan, change: Partial<ProducerPlan>): ProducerPlan {
  return { ...producer, transactional: false, burst: 1, records: 120, ...change }
}

function lagging(consumer: ConsumerPlan): ConsumerPlan {
  const { leaveMs: _, ...rest } = consumer
  return { ...rest, maxWorkMs: 200 }
}

function refusals(random: Random, first: number): Fault {
  const atMs = first + random.between(300, 2_000)
  return { atMs, kind: 'error-answer', apiKey: produce, code: 6, times: random.between(1, 3) }
}
