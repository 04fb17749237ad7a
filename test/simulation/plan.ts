/**
 * What one simulated run consists of, as plain data drawn from a seed: so that it can be printed, replayed, edited and
 * made smaller. Times are virtual milliseconds from the start.
 */
import { aimed } from './aims.ts'
import { type ConsumerFamily, consumerFamilies, producerFamilies } from './clients/families.ts'
import { Random } from './kernel/random.ts'

/**
 * plain: groups through proxies that change nothing. filtered: consumers that divide the keys among them. layouts: a
 * topic whose partition count changes in order.
 */
export const scenarios = ['plain', 'filtered', 'layouts'] as const
export type ScenarioName = (typeof scenarios)[number]

export interface ProducerPlan {
  name: string
  family: string
  /** Transactional: ends every few records with a commit or an abort. */
  transactional: boolean
  keys: number
  records: number
  /** Records handed over at once: they share batches. */
  burst: number
  gapMs: number
  /** Hands nothing over from the first to the second of these times. */
  quietMs?: [number, number]
}

export interface ConsumerPlan {
  name: string
  family: string
  /** Of its group: what all members support. */
  assignor?: ConsumerFamily['assignor']
  startMs: number
  /** Leaves in order at this time; never where undefined. */
  leaveMs?: number
  maxWorkMs: number
  /** The share of the buckets it reads, from and to (exclusive), where partitions are filtered. */
  range?: [number, number]
}

export type Fault = { atMs: number } & (
  | { kind: 'cut'; link: number }
  | { kind: 'half-open'; link: number; forMs: number }
  | { kind: 'broker-down'; node: number; forMs: number; reset: boolean }
  | { kind: 'leader-change'; partition: number }
  | { kind: 'unclean-leader-change'; partition: number; forMs: number }
  | { kind: 'coordinator-reload' }
  | { kind: 'proxy-crash'; proxy: number; forMs: number }
  | { kind: 'proxy-pause'; proxy: number; forMs: number }
  | { kind: 'client-crash'; consumer: number; forMs: number }
  | { kind: 'client-pause'; consumer: number; forMs: number }
  | { kind: 'error-answer'; apiKey: number; code: number; times: number }
  | { kind: 'late-answer'; apiKey: number; delayMs: number; times: number }
  | { kind: 'cut-answer'; apiKey: number; afterBytes: number }
  | { kind: 'seek'; consumer: number; back: number }
  | { kind: 'compact'; partition: number }
  | { kind: 'trim'; partition: number; keep: number }
  | { kind: 'compact-state' }
  /** A proxy cannot reach whoever leads the state log, and goes on with the other brokers. */
  | { kind: 'state-cut-off'; proxy: number; forMs: number }
  /** What a proxy asks on its own behalf gets lost, so that it is expelled; what its clients ask does not. */
  | { kind: 'own-requests-lost'; proxy: number; forMs: number }
  /** Its last requests get lost, then it has no connection: it left without being clean, and comes back. */
  | { kind: 'producer-cut-off'; producer: number; forMs: number }
)
export type FaultKind = Fault['kind']

/** How the topic's count changes. */
export interface LayoutsPlan {
  order: 'key' | 'producer'
  /** Learned, or said: that of all model producers. */
  partitioner: 'auto' | 'murmur2-mask'
  changes: { atMs: number; to: number }[]
  /** Partitions are added behind everybody's back. */
  isExternal: boolean
}

export interface Plan {
  seed: number
  scenario: ScenarioName
  proxies: number
  nodes: number
  partitions: number
  maxDelayMs: number
  splitChance: number
  /** Records per batch and codec are the families' business; bytes asked for per partition are ours. */
  partitionMaxBytes: number
  producers: ProducerPlan[]
  consumers: ConsumerPlan[]
  /** From when on the proxies edit every Fetch of a group although they withhold nothing; never where undefined. */
  editFromMs?: number
  /** Records of a partition from `offset` on wait until `openMs`. */
  gates: { partition: number; offset: number; openMs: number }[]
  /** The topic grows to this many partitions, behind everybody's back. */
  grow?: { atMs: number; to: number }
  layouts?: LayoutsPlan
  /** How old the clients let their metadata become. */
  metadataMaxAgeMs: number
  faults: Fault[]
}

const BUCKETS = 65_536
/** Faults come between these times; the load lasts about as long. */
const FIRST_FAULT_MS = 1_000
const LAST_FAULT_MS = 12_000
/** How many plans of changes are aimed at one danger. */
const AIMED_CHANCE = 0.3

const produce = 0
const fetch = 1
const metadata = 3
const offsetCommit = 8
const joinGroup = 11
const heartbeat = 12

/** Answers a broker may give at any time, by API. */
const errorAnswers: readonly [apiKey: number, code: number][] = [
  [produce, 6],
  [produce, 7],
  [produce, 3],
  [fetch, 6],
  [fetch, 3],
  [offsetCommit, 14],
  [offsetCommit, 16],
  [joinGroup, 15],
  [joinGroup, 16],
  [heartbeat, 27],
]

export function drawPlan(seed: number, scenario: ScenarioName): Plan {
  if (scenario === 'layouts') return drawLayouts(seed)
  const random = Random.forked(seed, `plan ${scenario}`)
  const filtered = scenario === 'filtered'
  const partitions = filtered ? random.between(1, 2) : random.pick([1, 2, 3, 4, 6])
  const nodes = random.pick([1, 2, 3])
  const plan: Plan = {
    seed,
    scenario,
    proxies: random.pick([1, 1, 3]),
    nodes,
    partitions,
    maxDelayMs: random.pick([1, 3, 10, 40]),
    splitChance: random.pick([0, 0.05, 0.5]),
    partitionMaxBytes: random.pick(filtered ? [100, 100, 400, 1024 * 1024] : [300, 2_000, 1024 * 1024]),
    producers: drawProducers(random, filtered),
    consumers: filtered ? drawRangeConsumers(random) : drawGroup(random),
    gates: [],
    metadataMaxAgeMs: 30_000,
    faults: [],
  }
  if (!filtered && random.chance(0.3)) plan.editFromMs = random.between(0, 8_000)
  if (filtered || plan.editFromMs !== undefined) {
    // A gate holds from the start, or what passed before it was known would look like a leak.
    if (random.chance(0.4)) plan.editFromMs = 0
    if (filtered || plan.editFromMs === 0) plan.gates = drawGates(random, partitions)
  }
  const count = random.between(1, 5)
  for (let i = 0; i < count; i++) plan.faults.push(drawFault(random, plan))
  plan.faults.sort((a, b) => a.atMs - b.atMs)
  return plan
}

/** Counts one after the other: by a multiple, otherwise, fewer, and twice. */
const countsOf: readonly (readonly number[])[] = [
  [3, 6],
  [3, 6],
  [3, 5],
  [6, 3],
  [2, 4, 8],
  [2, 4, 3],
]
const layoutFaults: readonly FaultKind[] = [
  'cut',
  'half-open',
  'broker-down',
  'leader-change',
  'coordinator-reload',
  'proxy-crash',
  'proxy-pause',
  'client-crash',
  'client-pause',
  'error-answer',
  'late-answer',
  'cut-answer',
  'compact',
]

/** A topic whose count changes once or twice under load, with faults around the changes. */
function drawLayouts(seed: number): Plan {
  const random = Random.forked(seed, 'plan layouts')
  const [partitions = 3, ...counts] = random.pick(countsOf)
  const { editFromMs: _, ...base } = drawPlan(seed, 'plain')
  const first = random.between(3_000, 5_000)
  const changes = counts.map((to, i) => ({ atMs: first + i * random.between(500, 7_000), to }))
  const producers = drawProducers(random, false).map((producer) => ({
    ...producer,
    // What is placed anew on retry is reordered by its own client, where it writes to several brokers at once.
    family: producer.family === 'kafkajs' && base.nodes > 1 ? 'kafkajs-idempotent' : producer.family,
    keys: random.pick([6, 12]),
    records: random.between(70, 150),
    burst: random.pick([1, 4]),
    // A transactional one waits this long for each record; the others half of it on average.
    gapMs: random.pick(producer.transactional ? [50, 80] : [100, 160]),
  }))
  // Some lag behind: what comes too early is seen only where what it overtook has not been worked off.
  const consumers = base.consumers.map((consumer) => ({ ...consumer, maxWorkMs: random.pick([0, 5, 60, 150]) }))
  const plan: Plan = {
    ...base,
    scenario: 'layouts',
    proxies: random.between(2, 3),
    maxDelayMs: random.pick([1, 3, 10]),
    partitions,
    producers,
    consumers,
    gates: [],
    metadataMaxAgeMs: random.between(1_500, 6_000),
    layouts: {
      order: random.pick(['key', 'producer'] as const),
      partitioner: random.pick(['auto', 'murmur2-mask'] as const),
      changes,
      isExternal: random.chance(0.15),
    },
    faults: [],
  }
  const wanted = random.pick([0, 1, 2, 3, 5])
  while (plan.faults.length < wanted) {
    const atMs = random.between(first - 1_500, first + 9_000)
    plan.faults.push(...drawStateFaults(random, plan, atMs))
    const fault = { ...drawFault(random, plan), atMs }
    // Long enough to be expelled, now and then.
    const mayExpel = fault.kind === 'proxy-pause' || fault.kind === 'half-open'
    if (mayExpel && random.chance(0.5)) fault.forMs = random.between(6_000, 14_000)
    if (layoutFaults.includes(fault.kind)) plan.faults.push(fault)
  }
  plan.faults.sort((a, b) => a.atMs - b.atMs)
  // Drawn apart, so that all other seeds keep their meaning.
  const aim = Random.forked(seed, 'aim')
  return aim.chance(AIMED_CHANCE) ? aimed(plan, aim) : plan
}

/** What only changes of layout can suffer from. */
function drawStateFaults(random: Random, plan: Plan, atMs: number): Fault[] {
  const faults: Fault[] = []
  const proxy = random.below(plan.proxies)
  if (random.chance(0.2)) {
    faults.push({ atMs, kind: 'compact-state' })
    // Whoever starts now reads what is left.
    const isRead = random.chance(0.4)
    if (isRead) faults.push({ atMs: atMs + 50, kind: 'proxy-crash', proxy, forMs: random.between(50, 1_500) })
  }
  if (random.chance(0.15)) faults.push({ atMs, kind: 'state-cut-off', proxy, forMs: random.between(4_000, 14_000) })
  if (random.chance(0.2)) {
    const producer = random.below(plan.producers.length)
    faults.push({ atMs, kind: 'producer-cut-off', producer, forMs: random.between(2_000, 12_000) })
  }
  return faults
}

function drawGates(random: Random, partitions: number): Plan['gates'] {
  return Array.from({ length: random.below(3) }, () => ({
    partition: random.below(partitions),
    offset: random.below(40),
    openMs: random.between(500, 15_000),
  }))
}

/** A topic that grows under load with nobody to keep the order: what a checker of order has to notice. */
export function drawControl(seed: number): Plan {
  const plan = drawPlan(seed, 'plain')
  const random = Random.forked(seed, 'control')
  const producers = Array.from({ length: 2 }, (_, i) => ({
    name: `p${i}`,
    family: 'java',
    transactional: false,
    keys: 8,
    records: 60,
    burst: 1,
    gapMs: 60,
  }))
  const consumers = Array.from({ length: 3 }, (_, i) => ({
    name: `c${i}`,
    family: 'sarama',
    assignor: 'range' as const,
    startMs: 0,
    maxWorkMs: 150,
  }))
  const { editFromMs: _, ...rest } = plan
  const grow = { atMs: random.between(800, 1_500), to: 6 }
  return {
    ...rest,
    proxies: 0,
    partitions: 3,
    producers,
    consumers,
    gates: [],
    faults: [],
    grow,
    metadataMaxAgeMs: 500,
  }
}

function drawProducers(random: Random, filtered: boolean): ProducerPlan[] {
  return Array.from({ length: random.between(1, 3) }, (_, i) => {
    const transactional = random.chance(filtered ? 0.4 : 0.2)
    return {
      name: `p${i}`,
      family: random.pick(producerFamilies).name,
      transactional,
      keys: random.pick(filtered ? [1, 5, 8] : [1, 3, 8]),
      records: random.between(20, 50),
      burst: random.pick(filtered ? [1, 8, 16] : [1, 4, 12]),
      gapMs: random.pick([20, 100, 300]),
    }
  })
}

function drawGroup(random: Random): ConsumerPlan[] {
  const assignor = random.pick(['range', 'roundrobin', 'cooperative-sticky'] as const)
  return Array.from({ length: random.between(1, 4) }, (_, i) => {
    const leaves = random.chance(0.2)
    return {
      name: `c${i}`,
      family: random.pick(consumerFamilies).name,
      assignor,
      startMs: i === 0 ? 0 : random.pick([0, 0, random.below(10_000)]),
      ...(leaves && i > 0 ? { leaveMs: random.between(6_000, 14_000) } : {}),
      maxWorkMs: random.pick([0, 5, 60]),
    }
  })
}

/** Consumers without a group that divide the buckets among them, some very unevenly. */
function drawRangeConsumers(random: Random): ConsumerPlan[] {
  const count = random.pick([1, 2, 2, 3, 3])
  const edges = [0, BUCKETS - 1]
  const inner = Array.from({ length: count - 1 }, () =>
    random.chance(0.2) ? random.pick(edges) : random.below(BUCKETS),
  )
  const bounds = [0, ...inner.sort((a, b) => a - b), BUCKETS]
  return Array.from({ length: count }, (_, i) => ({
    name: `c${i}`,
    family: random.pick(consumerFamilies).name,
    startMs: random.pick([0, 0, random.below(5_000)]),
    maxWorkMs: random.pick([0, 5, 60]),
    range: [bounds[i] ?? 0, bounds[i + 1] ?? BUCKETS] as [number, number],
  }))
}

function drawFault(random: Random, plan: Plan): Fault {
  const atMs = random.between(FIRST_FAULT_MS, LAST_FAULT_MS)
  const forMs = random.between(50, 5_000)
  const partition = random.below(plan.partitions)
  const proxy = random.below(Math.max(1, plan.proxies))
  const consumer = random.below(plan.consumers.length)
  const [apiKey, code] = random.pick(errorAnswers)
  const times = random.between(1, 3)
  const make: readonly (() => Fault)[] = [
    () => ({ atMs, kind: 'cut', link: random.below(100) }),
    () => ({ atMs, kind: 'cut', link: random.below(100) }),
    () => ({ atMs, kind: 'half-open', link: random.below(100), forMs }),
    () => ({ atMs, kind: 'broker-down', node: random.below(plan.nodes), forMs, reset: random.chance(0.5) }),
    () => ({ atMs, kind: 'leader-change', partition }),
    () => ({ atMs, kind: 'unclean-leader-change', partition, forMs: random.between(50, 1_000) }),
    () => ({ atMs, kind: 'coordinator-reload' }),
    () => ({ atMs, kind: 'proxy-crash', proxy, forMs: random.between(10, 3_000) }),
    () => ({ atMs, kind: 'proxy-pause', proxy, forMs: random.between(10, 3_000) }),
    () => ({ atMs, kind: 'client-crash', consumer, forMs }),
    () => ({ atMs, kind: 'client-pause', consumer, forMs: random.pick([500, 2_000, 9_000]) }),
    () => ({ atMs, kind: 'error-answer', apiKey, code, times }),
    () => ({
      atMs,
      kind: 'late-answer',
      apiKey: random.pick([produce, fetch, metadata, joinGroup]),
      delayMs: forMs,
      times,
    }),
    () => ({
      atMs,
      kind: 'cut-answer',
      apiKey: random.pick([produce, fetch, metadata]),
      afterBytes: random.below(200),
    }),
    () => ({ atMs, kind: 'seek', consumer, back: random.between(1, 30) }),
    () => ({ atMs, kind: 'compact', partition }),
    () => ({ atMs, kind: 'trim', partition, keep: random.between(0, 20) }),
  ]
  // Where records are withheld, what is remembered between two Fetches is the most fragile.
  const fragile: readonly (() => Fault)[] = [
    () => ({ atMs, kind: 'seek', consumer, back: random.between(1, 12) }),
    () => ({ atMs, kind: 'proxy-crash', proxy, forMs: random.between(10, 500) }),
  ]
  return random.pick(plan.scenario === 'filtered' && random.chance(0.5) ? fragile : make)()
}
