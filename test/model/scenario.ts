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
}

export interface ProducerPlan {
  name: string
  family: Family
  startMs: number
  records: number
  gapMs: number
  keys: number
  crashMs: number | undefined
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

export function drawScenario(random: Random, skip: ReadonlySet<number>): Scenario {
  const counts = random.pick(countsList)
  const order: Order = random.chance(0.5) ? 'key' : 'producer'
  const heaviness = random.pick([0, 0.3, 1, 1])
  const producers = Array.from({ length: random.int(2, 4) }, (_, index) =>
    drawProducer(random, index, counts, heaviness),
  )
  const groups = Array.from({ length: random.int(1, 2) }, (_, index) => drawGroup(random, index))
  const faultsUntil = 38_000
  const first = random.int(2500, 5000)
  const changes = [first, random.chance(0.35) ? first : random.int(5000, 14_000)]
  const theme = heaviness > 0 && random.chance(0.3) ? random.pick(themes) : undefined
  if (theme !== undefined) for (const group of groups) group.slowMs = random.pick([80, 150])
  const wanted = Math.round(random.int(3, 14) * heaviness)
  const faults = Array.from({ length: wanted }, (_, number) => drawFault(random, number, changes, faultsUntil))
  return {
    counts,
    changes,
    order,
    proxies: random.int(2, 3),
    producers,
    groups,
    faults: [...faults, ...(theme === undefined ? [] : drawTheme(random, theme, changes, faults.length))].filter(
      (fault) => !skip.has(fault.number),
    ),
    faultsUntil: heaviness === 0 ? 0 : faultsUntil,
    sealAfterMs: random.chance(0.1) ? 12_000 : undefined,
    endMs: 150_000,
  }
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

/** A proxy that acts on an old view for as long as it can, while others change layout. */
const themes: readonly [kind: string, fromMs: number, toMs: number][] = [
  ['pause with its upstream', 7000, 14_000],
  ['heartbeats lost, then reads', 9000, 12_000],
]

function drawTheme(random: Random, theme: (typeof themes)[number], changes: readonly number[], from: number): Fault[] {
  const [kind, fromMs, toMs] = theme
  return Array.from({ length: random.int(1, 2) }, (_, index) => ({
    number: from + index,
    kind,
    atMs: random.pick(changes) + random.int(-1000, 6000),
    forMs: random.int(fromMs, toMs),
    proxy: random.int(0, 1000),
  }))
}

/** Most faults befall the changes themselves, where they can do harm. */
function drawFault(random: Random, number: number, changes: readonly number[], until: number): Fault {
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0)
  let roll = random.next() * total
  const [kind, , longestMs] = kinds.find(([, weight]) => (roll -= weight) < 0) ?? ['compaction', 0, 0]
  const atMs = random.chance(0.6) ? random.pick(changes) + random.int(-2000, 7000) : random.int(2000, until)
  return { number, kind, atMs, forMs: random.int(Math.min(300, longestMs), longestMs), proxy: random.int(0, 1000) }
}
