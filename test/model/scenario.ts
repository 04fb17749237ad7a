/** What a seed stands for: counts, clients and faults. Faults are numbered, so that shrinking can leave some out. */
import type { Order } from '../../src/state/record.ts'
import type { Random } from './random.ts'

export interface Family {
  name: string
  idempotent: boolean
  /** Requests in flight per broker. */
  inFlight: number
  /** One request at a time over all brokers. */
  awaits: boolean
  /** How a batch that failed comes back. */
  retry: 'same' | 're-batch' | 're-partition'
  backoffMs: number
  /** A refused batch returns only with the next refresh, at most every 5 s. */
  franz: boolean
  refreshMs: number | undefined
  /** Takes a smaller count while it lives. */
  shrinks: boolean
  /** acks=0 */
  hasNoAcks?: boolean
}

export interface ProducerPlan {
  name: string
  family: Family
  startMs: number
  records: number
  gapMs: number
  keys: number
  crashMs: number | undefined
  /** Hands nothing over meanwhile. */
  quietMs?: [from: number, to: number]
}

export interface GroupPlan {
  name: string
  startMs: number
  members: number
  commits: 'record' | 'batch' | 'timer'
  /** Whether its commits pass control records at the end of a batch. */
  commitsControl: boolean
  prefetch: number
  slowMs: number
}

export interface Fault {
  number: number
  kind: string
  atMs: number
  forMs: number
  proxy: number
}

export interface Scenario {
  counts: number[]
  /** Not before: the times of the changes. */
  changes: number[]
  order: Order
  proxies: number
  producers: ProducerPlan[]
  groups: GroupPlan[]
  faults: Fault[]
  faultsUntil: number
  sealAfterMs: number | undefined
  settleMs: number
  /** Partitions are created without Headgate, and somebody writes to them before it notices. */
  isExternal: boolean
  /** What all groups have committed is deleted. */
  hasRetention: boolean
  /** Connections of one client may go to several proxies. */
  isSplit: boolean
  endMs: number
}

const families: readonly Omit<Family, 'refreshMs' | 'shrinks'>[] = [
  { name: 'idempotent', idempotent: true, inFlight: 5, awaits: false, retry: 'same', backoffMs: 200, franz: false },
  { name: 'pipelined', idempotent: false, inFlight: 5, awaits: false, retry: 'same', backoffMs: 400, franz: false },
  { name: 'awaiting', idempotent: false, inFlight: 1, awaits: true, retry: 'same', backoffMs: 300, franz: false },
  { name: 'franz', idempotent: true, inFlight: 1, awaits: false, retry: 'same', backoffMs: 200, franz: true },
  {
    name: 're-partitioning',
    idempotent: false,
    inFlight: 1,
    awaits: true,
    retry: 're-partition',
    backoffMs: 600,
    franz: false,
  },
  {
    name: 're-batching',
    idempotent: false,
    inFlight: 5,
    awaits: false,
    retry: 're-batch',
    backoffMs: 400,
    franz: false,
  },
  {
    name: 'fire and forget',
    idempotent: false,
    inFlight: 5,
    awaits: false,
    retry: 'same',
    backoffMs: 100,
    franz: false,
    hasNoAcks: true,
  },
]
const countsList: readonly number[][] = [
  [3, 6],
  [3, 5],
  [6, 3],
  [3, 6, 12],
  [2, 4, 3],
]
const kinds: readonly [kind: string, weight: number, longestMs: number][] = [
  ['kill', 2, 0],
  ['pause', 3, 9000],
  ['pause with its upstream', 3, 14_000],
  ['cut off from the state', 2, 9000],
  ['heartbeats lost', 1, 12_000],
  ['heartbeats lost, then reads', 3, 12_000],
  ['no leader', 3, 6000],
  ['leader blip', 3, 250],
  ['connection lost', 6, 0],
  ['client away', 4, 15_000],
  ['upstream stalls', 4, 12_000],
  ['compaction', 4, 0],
  ['crash of a member', 4, 0],
]

export function drawScenario(random: Random, skip: ReadonlySet<number>, theme?: Theme): Scenario {
  const counts = random.pick(countsList)
  const order: Order = random.chance(0.5) ? 'key' : 'producer'
  const heaviness = theme === undefined ? random.pick([0, 0.3, 1, 1]) : 1
  const producers = Array.from({ length: random.int(2, 4) }, (_, index) =>
    drawProducer(random, index, counts, heaviness),
  )
  const groups = Array.from({ length: random.int(1, 2) }, (_, index) => drawGroup(random, index))
  const faultsUntil = 38_000
  const first = random.int(2500, 5000)
  const changes = [first, random.chance(0.35) ? first : random.int(5000, 14_000)]
  const wanted = Math.round(random.int(3, 14) * heaviness)
  const faults = Array.from({ length: wanted }, (_, number) => drawFault(random, number, changes, faultsUntil))
  const drawn: Scenario = {
    counts,
    changes,
    order,
    proxies: random.int(2, 3),
    producers,
    groups,
    faults,
    faultsUntil: heaviness === 0 ? 0 : faultsUntil,
    sealAfterMs: random.chance(0.1) ? 12_000 : undefined,
    settleMs: 30_000,
    isExternal: random.chance(0.1),
    hasRetention: random.chance(0.1),
    isSplit: random.chance(0.04),
    endMs: 150_000,
  }
  const isBent = theme !== undefined || (heaviness > 0 && random.chance(0.55))
  const bend = { ...themes, ...rareThemes }[theme ?? random.pick(Object.keys(themes) as Theme[])]
  const scenario = isBent ? bend(random, drawn) : drawn
  return { ...scenario, faults: scenario.faults.filter((fault) => !skip.has(fault.number)) }
}

function drawProducer(random: Random, index: number, counts: readonly number[], heaviness: number): ProducerPlan {
  const base = random.pick(families)
  const isNever = random.chance(0.08)
  return {
    name: `p${index}`,
    family: { ...base, refreshMs: isNever ? undefined : random.int(2000, 9000), shrinks: random.chance(0.6) },
    startMs: random.chance(0.75) ? random.int(1500, 2500) : random.int(2500, 15_000),
    records: random.int(60, 160),
    gapMs: random.pick([20, 60, 120, 400]),
    keys: random.pick([Math.max(...counts), 2 * Math.max(...counts)]),
    crashMs: heaviness > 0 && random.chance(0.2) ? random.int(4000, 25_000) : undefined,
  }
}

function drawGroup(random: Random, index: number): GroupPlan {
  return {
    name: `g${index}`,
    startMs: random.chance(0.7) ? 1500 : random.int(3000, 20_000),
    members: random.int(1, 3),
    commits: random.pick(['record', 'batch', 'timer'] as const),
    commitsControl: random.chance(0.5),
    prefetch: random.pick([2, 10, 40]),
    slowMs: random.pick([6, 30, 80]),
  }
}

/** Scenarios bent towards a danger that chance alone meets too rarely. */
const themes = {
  pausedWithUpstream: (random, scenario) => actOnOldView(random, scenario, 'pause with its upstream', 1000),
  heartbeatsLost: (random, scenario) => actOnOldView(random, scenario, 'heartbeats lost, then reads', -2500),
  twoExpansionsApart,
  batchesThatReturnLate,
  logErasedBehindReaders,
  logsDeletedBehindGroups,
} satisfies Record<string, (random: Random, scenario: Scenario) => Scenario>

/** Only on demand: chance meets these often enough. */
const rareThemes = { proxiesThatStop } satisfies Record<string, (random: Random, scenario: Scenario) => Scenario>

export type Theme = keyof typeof themes | keyof typeof rareThemes

/** A proxy that acts on an old view for as long as it can, while producers move to fresh partitions. */
function actOnOldView(random: Random, scenario: Scenario, kind: string, afterMs: number): Scenario {
  const at = scenario.changes[0] ?? 0
  const number = scenario.faults.length
  const fault = {
    number,
    kind,
    atMs: at + afterMs + random.int(0, 2500),
    forMs: random.int(8000, 12_000),
    proxy: random.int(0, 1000),
  }
  return {
    ...scenario,
    counts: random.pick([
      [3, 5],
      [3, 6],
      [2, 4, 3],
    ]),
    order: 'producer',
    faults: [fault],
    producers: scenario.producers.map((plan) => ({
      ...plan,
      family: { ...plan.family, refreshMs: random.int(2000, 5000) },
      startMs: random.int(1500, 2500),
      gapMs: 60,
      records: 160,
      crashMs: undefined,
    })),
    groups: scenario.groups.map((plan) => ({ ...plan, startMs: 1500, members: 3, slowMs: random.pick([80, 150]) })),
  }
}

/** A second expansion long after the first was settled, nothing written in between, and a group that is far behind. */
function twoExpansionsApart(random: Random, scenario: Scenario): Scenario {
  const first = random.int(4000, 6000)
  return {
    ...scenario,
    counts: [3, 6, 12],
    order: 'key',
    changes: [first, first + 18_000],
    settleMs: 5000,
    faults: scenario.faults.filter((fault) => /compaction|member|connection/.test(fault.kind)),
    producers: scenario.producers.map((plan) => ({
      ...plan,
      family: { ...plan.family, refreshMs: random.int(1500, 3000), inFlight: 1, awaits: true },
      startMs: 1500,
      gapMs: 20,
      records: 500,
      crashMs: undefined,
      quietMs: [first + random.int(-500, 500), first + 24_000],
    })),
    groups: scenario.groups.map((plan) => ({
      ...plan,
      startMs: first + random.int(18_000, 23_000),
      members: 3,
      slowMs: 80,
    })),
  }
}

/** Batches that fail just before their producer is shown the new count, and come back when all others are clean. */
function batchesThatReturnLate(random: Random, scenario: Scenario): Scenario {
  const at = scenario.changes[0] ?? 0
  const blips = Array.from({ length: 5 }, (_, number) => {
    return {
      number,
      kind: 'leader blip',
      atMs: at + random.int(1500, 6000),
      forMs: random.int(100, 250),
      proxy: random.int(0, 2),
    }
  })
  const slow = families.filter((family) => family.franz || family.name === 'slow to retry')
  const common = { startMs: 1500, keys: 12, crashMs: undefined }
  const quick: Family = { ...(families[2] as Family), refreshMs: 1500, shrinks: true }
  const late: Family = { ...random.pick(slow), refreshMs: random.int(6000, 9000), shrinks: true }
  return {
    ...scenario,
    counts: [3, 6],
    order: 'key',
    faults: blips,
    sealAfterMs: undefined,
    producers: [
      { ...common, name: 'p0', family: late, gapMs: 30, records: 260 },
      { ...common, name: 'p1', family: quick, gapMs: 60, records: 160 },
    ],
  }
}

/** Proxies are told to stop around the first change, one after the other, while some clients are slow to reconnect. */
function proxiesThatStop(random: Random, scenario: Scenario): Scenario {
  const at = scenario.changes[0] ?? 0
  const faults = Array.from({ length: 6 }, (_, number) => {
    const isStop = number % 2 === 0
    const atMs = at + (number - 2) * 1000 + random.int(-1000, 1000)
    // The kind of a kill goes by the proxy's number.
    const proxy = isStop ? 3 * random.int(0, 300) : random.int(0, 1000)
    return { number, kind: isStop ? 'kill' : 'client away', atMs, forMs: random.int(2000, 12_000), proxy }
  })
  return { ...scenario, faults, counts: [3, 6], order: 'key', sealAfterMs: undefined, isSplit: false }
}

/** The state log is compacted again and again while proxies start that have to read all of it. */
function logErasedBehindReaders(random: Random, scenario: Scenario): Scenario {
  const at = scenario.changes[0] ?? 0
  const faults = Array.from({ length: 9 }, (_, number) => {
    const kind = number % 3 === 2 ? 'kill' : 'compaction'
    return { number, kind, atMs: at + random.int(-500, 9000), forMs: 0, proxy: random.int(0, 1000) }
  })
  return {
    ...scenario,
    faults,
    counts: random.pick([
      [3, 6, 12],
      [3, 5],
      [2, 4, 3],
    ]),
  }
}

/** Records are deleted as soon as all groups are done with them, cuts with them, and one group is far behind. */
function logsDeletedBehindGroups(random: Random, scenario: Scenario): Scenario {
  return {
    ...scenario,
    counts: random.pick([
      [3, 5],
      [6, 3],
    ]),
    order: 'producer',
    settleMs: 2000,
    hasRetention: true,
    faults: scenario.faults.filter((fault) => /compaction|member|kill/.test(fault.kind)),
    producers: scenario.producers.map((plan) => ({
      ...plan,
      family: { ...plan.family, refreshMs: random.int(1500, 3000) },
      startMs: 1500,
      crashMs: undefined,
    })),
    groups: scenario.groups.map((plan, index) => ({
      ...plan,
      slowMs: index === 0 ? 250 : 6,
      startMs: 1500,
      members: 3,
    })),
  }
}

/** Most faults befall the changes themselves, where they can do harm. */
function drawFault(random: Random, number: number, changes: readonly number[], until: number): Fault {
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0)
  let roll = random.next() * total
  const [kind, , longestMs] = kinds.find(([, weight]) => (roll -= weight) < 0) ?? ['compaction', 0, 0]
  const atMs = random.chance(0.6) ? random.pick(changes) + random.int(-2000, 7000) : random.int(2000, until)
  return { number, kind, atMs, forMs: random.int(Math.min(300, longestMs), longestMs), proxy: random.int(0, 1000) }
}
