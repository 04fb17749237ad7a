/**
 * One run of a topic that changes its partition count under load, as applications see it. A first member falls behind
 * before the change and others join after it, so that keys whose partition changed have records waiting in the old place
 * while the new one is already read: without a gate their order breaks. The same run goes directly to the broker as control.
 */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { FamilyName } from '../../../scripts/setup/families.ts'
import { around } from '../../checker/around.ts'
import { allRules, check, rulesNamed } from '../../checker/checker.ts'
import type { HistoryEvent, RunSettings } from '../../checker/history.ts'
import { until } from '../../support/until.ts'
import { type ClientProgram, type Run, watching } from '../client.ts'
import { historyOf, type Part } from '../faults/history.ts'

export interface Scenario {
  readonly topic: string
  readonly producer: FamilyName
  readonly consumer: FamilyName
  readonly idempotent: boolean
  /** Partition counts, one after the other. */
  readonly counts: readonly number[]
  /** How slowly a member works, in ms a record; default: one alone falls behind, three do not. */
  readonly workMs?: number
}

/** Where clients connect, and how the count is changed. */
export interface Way {
  /** In turn for the producers and members: several proxies, or the broker. */
  readonly bootstraps: readonly string[]
  change(topic: string, to: number): Promise<void>
  create(topic: string, partitions: number): Promise<void>
  /** All proxies are there and no change is being prepared: what was asked for is open, or aborted. */
  isDecided(topic: string): Promise<boolean>
  /** The count that a new client is shown. */
  count(topic: string): Promise<number>
  /** Batches for whose order no proxy could vouch. */
  counted(topic: string): Promise<number>
  /** What is known of the topic and the group of its name, for messages of failed runs. */
  describe(topic: string): Promise<string>
}

export interface Outcome {
  readonly consumer: FamilyName
  readonly history: readonly HistoryEvent[]
  /** How long after the change had returned a record of a new partition was first delivered; undefined: none was. */
  readonly firstNewMs: number | undefined
  /** Batches for whose order no proxy could vouch. */
  readonly counted: number
  /** What the proxies knew of the topic in the end. */
  readonly described: string
}

const keys = 40
const rate = 100
/**
 * One member alone falls behind, three do not. sarama works on its partitions side by side. Of platformatic two must do:
 * it takes up new partitions only as it rebalances, so that one joins after each change.
 */
const workMs = (consumer: FamilyName): number => (consumer === 'sarama' ? 40 : consumer === 'platformatic' ? 14 : 20)
/** Acknowledged before the first change: seconds of work for one member; and after each. */
const backlog = 400
const progress = 200
/** Of a change that is disturbed. */
const MOST_ASKS = 3
/** Clients notice a change of layout with their next refresh, or when they are pushed. */
const metadataMs = 2000
/** Their sends have an order only if each waits for the one before. */
const unordered: ReadonlySet<FamilyName> = new Set(['kafkajs', 'platformatic'])

export type Start = (family: FamilyName) => ClientProgram

/**
 * Runs it to its end: everything acknowledged was delivered. `disturb` is called after each change was asked for; only
 * then may that fail, and is asked again.
 */
export async function play(
  scenario: Scenario,
  way: Way,
  start: Start,
  disturb?: () => Promise<void>,
): Promise<Outcome> {
  const { topic, producer, consumer, idempotent, counts } = scenario
  const programs: ClientProgram[] = []
  const program = (family: FamilyName): ClientProgram => {
    const one = start(family)
    programs.push(one)
    return one
  }
  let turn = 0
  const bootstrap = (): string => way.bootstraps[turn++ % way.bootstraps.length] ?? ''
  const consumers = program(consumer)
  const members: Run[] = []
  const join = (): Run => {
    const member = `M${members.length}`
    const common = {
      topics: [topic],
      group: topic,
      commit: 'batch',
      workMs: scenario.workMs ?? workMs(consumer),
      sessionMs: 10_000,
      metadataMs,
    }
    const run = consumers.start({
      cmd: 'consume',
      bootstrap: bootstrap(),
      ...common,
      member,
      clientId: `${topic}.${member}`,
    })
    members.push(run)
    return run
  }
  try {
    const [first = 3, ...later] = counts
    await way.create(topic, first)
    const send = {
      topic,
      keys,
      rate,
      count: 1_000_000,
      idempotent,
      sent: true,
      awaited: unordered.has(producer),
      metadataMs,
    }
    const sending = program(producer).start({
      cmd: 'produce',
      bootstrap: bootstrap(),
      ...send,
      producer: 'P',
      clientId: `${topic}.P`,
    })
    join()
    let firstNewMs: number | undefined
    let widest = first
    for (const [step, count] of later.entries()) {
      await more(step === 0 ? backlog : progress, sending)
      const asked = way.change(topic, count)
      if (disturb === undefined) await asked
      else {
        asked.catch(() => undefined) // seen below
        await disturb()
        await untilChanged(way, topic, count, asked)
      }
      const changedAt = Date.now()
      if (count > widest) {
        const isNew = (partition: number | undefined): boolean => (partition ?? 0) >= widest
        await watching([sending], 'record of a new partition acknowledged', () =>
          acknowledged(sending).some((e) => isNew(e.partition)),
        )
        if (consumer === 'platformatic') {
          // It looks for new partitions only as it rebalances, in Metadata that may be this old.
          await delay(2 * metadataMs)
          join()
        }
        while (members.length < 3 && consumer !== 'platformatic') join()
        await watching(members, 'record of a new partition delivered', () =>
          members.some((run) => deliveredBy(run).some((e) => isNew(e.partition))),
        )
        firstNewMs ??= Date.now() - changedAt
        widest = count
      } else while (members.length < 3) join()
    }
    while (members.length < 3) join()
    await more(progress, sending)
    await sending.stop()
    await watching(members, 'all records', () => missing(sending, members).length === 0).catch(async (error: Error) => {
      const places = missing(sending, members).map(({ partition, offset }) => `${partition}/${offset}`)
      const shown = `${places.length} missing: ${places.slice(0, 20).join(' ')}`
      throw new Error(`${error.message}\n${shown}\n${await way.describe(topic)}`)
    })
    const drainedAt = Date.now()
    await Promise.all(members.map((run) => run.stop()))
    const common = { group: topic, isolation: 'read_uncommitted' }
    const parts: Part[] = [
      { run: sending, who: { producer: 'P', idempotent, ordered: true } },
      ...members.map((run, index): Part => ({ run, who: { member: `M${index}`, ...common } })),
    ]
    const drained = { event: 'drained', group: topic, topic, at: drainedAt } as const
    const [counted, described] = await Promise.all([way.counted(topic), way.describe(topic)])
    return { consumer, history: historyOf(parts, [drained]), firstNewMs, counted, described }
  } finally {
    await Promise.all(programs.map((one) => one.kill()))
  }
}

/**
 * What clients do by themselves, directly to the broker as well: platformatic repeats records after a rebalance, since it
 * does not wait for the application; a commit of kafkajs that goes out beside a rebalance counts for the new generation,
 * behind the offset which that began with.
 */
const ownWays: Partial<Record<FamilyName, readonly string[]>> = {
  platformatic: ['duplicates-explained', 'committed-not-redelivered', 'commit-not-above-processed'],
  kafkajs: ['committed-not-redelivered'],
}

/**
 * What order and delivery demand of every run with Headgate. Order is not lost silently: it may be where a batch was
 * counted, one with records of two layouts for example.
 */
export function assertOrdered(outcome: Outcome, settings: RunSettings = {}): void {
  const { counted, described } = outcome
  const { violations, events } = judge(outcome, settings)
  assert.ok((events['acknowledged'] ?? 0) >= backlog + progress, JSON.stringify(events))
  const unexplained = counted === 0 ? violations : violations.filter(({ rule }) => rule !== 'key-order')
  const first = unexplained.slice(0, 3).map((violation) => JSON.stringify(violation))
  const context = unexplained[0] === undefined ? [] : around(outcome.history, unexplained[0])
  assert.equal(unexplained.length, 0, [`${unexplained.length} violations`, ...first, ...context, described].join('\n'))
}

/** By all rules that hold for the family. */
export function judge({ history, consumer }: Pick<Outcome, 'history' | 'consumer'>, settings: RunSettings = {}) {
  const without = ownWays[consumer] ?? []
  const rules = allRules.filter(({ name }) => !without.includes(name))
  return check(history, { rules, settings: { slack: 100, ...settings } })
}

/** Whether keys were delivered out of order. */
export function isDisordered({ history }: Outcome): boolean {
  return check(history, { rules: rulesNamed(['key-order']) }).violations.length > 0
}

/** Waits until `count` more records were acknowledged. */
async function more(count: number, sending: Run): Promise<void> {
  const before = acknowledged(sending).length
  await watching([sending], `${count} more acknowledged`, () => acknowledged(sending).length >= before + count)
}

/**
 * Whoever was asked may be the victim: then the change goes on without an answer, or is aborted and has to be asked for
 * again. What was answered is printed, and an error if it is the last.
 */
async function untilChanged(way: Way, topic: string, count: number, asked: Promise<void>): Promise<void> {
  for (let asks = 1, call = asked; ; asks++, call = way.change(topic, count)) {
    const failure = await call.then(
      () => undefined,
      (error: Error) => error,
    )
    if (failure === undefined) return
    console.log(`${topic} to ${count}, asked ${asks} times: ${failure.message}`)
    const isDone = (): Promise<boolean> =>
      way.count(topic).then(
        (shown) => shown === count,
        () => false,
      )
    await until(async () => (await isDone()) || (await way.isDecided(topic)))
    if (await isDone()) return
    if (asks === MOST_ASKS) throw failure
  }
}

/** What was acknowledged and not delivered. */
function missing(sending: Run, members: readonly Run[]) {
  const given = new Set(members.flatMap((run) => deliveredBy(run).map(({ sequence }) => sequence)))
  return acknowledged(sending).filter(({ sequence }) => !given.has(sequence))
}

function acknowledged(run: Run) {
  return run.events.filter(({ event }) => event === 'acknowledged')
}

function deliveredBy(run: Run) {
  return run.events.filter(({ event }) => event === 'delivered')
}
