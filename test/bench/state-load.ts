/**
 * How long a proxy takes to load the state of many topics, and how much memory it keeps, with the gates of many groups:
 * `npm run bench -- state [--topics 1000] [--groups 200]`. Each group reads ten of the topics. The cluster is the model in
 * this process; the proxy's state shell is a process of its own that measures itself, once with a log of changes only and
 * once with snapshots and what they replaced.
 */
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { Brokers } from '../../src/cluster/brokers.ts'
import { ClusterClient } from '../../src/cluster/cluster-client.ts'
import { configSchema } from '../../src/config/schema.ts'
import { FakeBroker } from '../../src/fake-broker/fake-broker.ts'
import { GroupGates } from '../../src/features/layouts/gates/group-gates.ts'
import type { LayoutTopic } from '../../src/features/layouts/topic-rule.ts'
import { ChunkPool } from '../../src/net/chunk-pool.ts'
import { buildBatch } from '../../src/records/build.ts'
import { nodeRuntime } from '../../src/runtime/node-runtime.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { applyEntry, emptyLog, type LogState, topicOf } from '../../src/state/log-reducer.ts'
import type { StateRecord } from '../../src/state/record.ts'
import { encodeRecord, keyOf } from '../../src/state/records.ts'
import { StateShell, stateTopic } from '../../src/state/shell/state-shell.ts'

interface Measured {
  readonly loadMs: number
  readonly cpuMs: number
  readonly keptBytes: number
  readonly residentBytes: number
  /** From the first Fetch of the first group until every gate was judged. */
  readonly gatesMs: number
  /** Kept with the gates of every group. */
  readonly withGroupsBytes: number
}

const silent = () => undefined
const log = { debug: silent, info: silent, warn: silent, error: silent }
const proxies = ['a', 'b', 'c']

/** What happened to one topic of 12 partitions: met with 3, expanded to 6 and to 12, both sealed. */
function historyOf(topicId: string, lastOffset: () => number): Iterable<StateRecord> {
  return (function* () {
    const [proxy = ''] = proxies
    yield { kind: 'topic', proxy, topicId, name: `orders-${topicId}`, count: 3 }
    for (const [epoch, to] of [
      [1, 6],
      [2, 12],
    ] as const) {
      const proposal = `${topicId}/${epoch}`
      const offsets = (from: number, below: number) =>
        Object.fromEntries(Array.from({ length: below - from }, (_, i) => [from + i, 1_000_000 + i]))
      yield {
        kind: 'proposal',
        proxy,
        topicId,
        proposal,
        after: epoch - 1,
        change: 'expand',
        to,
        order: 'key',
        gates: 'seal',
      }
      yield { kind: 'preparing', proxy, topicId, proposal }
      for (const one of proxies) yield { kind: 'ready', proxy: one, topicId, proposal }
      const starts = offsets(to / 2, to)
      yield { kind: 'open', proxy, topicId, proposal, starts, leaderEpochs: starts, unsettled: [epoch - 1] }
      for (const one of proxies) {
        const instances = Array.from({ length: 5 }, (_, i) => `${one}/10.0.0.${i}/orders-service`)
        yield { kind: 'vote', proxy: one, topicId, epoch, ballot: 1, instances, ends: offsets(0, to / 2) }
      }
      const boundaries = offsets(0, to / 2)
      yield { kind: 'sealed', proxy, topicId, epoch, lastVote: lastOffset(), boundaries, gaveUp: [], forced: false }
    }
  })()
}

async function serve(topics: number, withSnapshots: boolean): Promise<{ broker: FakeBroker; records: number }> {
  const broker = await FakeBroker.start(await nodeRuntime(), { nodeIds: [1] })
  const topic = broker.cluster.createTopic(stateTopic, 1)
  topic.configs = new Map([
    ['cleanup.policy', 'compact'],
    ['min.compaction.lag.ms', '3600000'],
  ])
  const partition = topic.partitions[0]
  if (partition === undefined) throw new Error('the topic has no partition')
  let offset = 0
  let state: LogState = emptyLog()
  const write = (record: StateRecord) => {
    const key = keyOf(record, `bench:${offset}`)
    const atMs = Date.now()
    partition.log.append(
      buildBatch({ records: [{ key: Buffer.from(key), value: encodeRecord(record), timestamp: atMs }] }),
    )
    if (withSnapshots) state = applyEntry(state, { offset, atMs, key, record })
    offset++
  }
  for (const proxy of proxies) write({ kind: 'register', proxy, host: `${proxy}:9190` })
  for (let index = 0; index < topics; index++) {
    const topicId = `topic-${index.toString().padStart(16, '0')}`
    for (const record of historyOf(topicId, () => offset - 1)) write(record)
    const whole = topicOf(state, topicId)
    if (whole !== undefined) write({ kind: 'topic-snapshot', proxy: 'a', topicId, below: offset, state: whole })
  }
  return { broker, records: offset }
}

const topicsEach = 10

/** The gates of groups that are behind in ten topics each: what is kept for each group and topic that is read here. */
function readBy(groups: number, state: StateShell, cluster: ClusterClient, runtime: Runtime): GroupGates {
  const rule = configSchema.parse({ upstream: { bootstrap: 'k:1' }, topics: { '.*': { layouts: {} } } }).topics[0]
  if (rule === undefined) throw new Error('there is a rule')
  const all = state.topicIds().map((topicId): LayoutTopic => {
    const name = `orders-${topicId}`
    return { name, topicId, rule, count: 12, view: () => state.view(topicId) }
  })
  const find = (name: string): LayoutTopic | undefined => all.find((topic) => topic.name === name)
  const gates = new GroupGates({
    runtime,
    log,
    state,
    cluster,
    topics: {
      isLoaded: true,
      rule: () => rule,
      find,
      all: () => all,
      mayBeRuled: () => true,
      onNamed: () => undefined,
    },
    rules: [],
  })
  for (let group = 0; group < groups; group++) {
    for (let i = 0; i < topicsEach; i++) {
      const topic = all[(group * topicsEach + i) % all.length]
      const known = topic?.view()?.topic
      if (topic === undefined || known === undefined) continue
      const ofTopic = gates.group(`group-${group}`).gates(topic)
      ofTopic.progress.read(new Map(Array.from({ length: 6 }, (_, q) => [q, 900_000 + q])), runtime.now())
      for (let p = 0; p < 12; p++) ofTopic.fetched(p, 900_000)
      if (ofTopic.isOpen(known)) throw new Error('a group that is behind has shut gates')
    }
  }
  return gates
}

/** In the process of its own: loads, and says what it took. */
async function load(bootstrap: string, topics: number, groups: number): Promise<Measured> {
  const [host = '', port = ''] = bootstrap.split(':')
  const runtime = await nodeRuntime()
  const pool = new ChunkPool()
  const settings = { runtime, pool, log, dialTimeoutMs: 2000, onNew: silent }
  const brokers = new Brokers({ ...settings, bootstrap: [{ host, port: Number(port) }], refreshMs: 300_000 })
  const cluster = new ClusterClient({ ...settings, brokers, requestTimeoutMs: 5000 })
  const state = new StateShell({ runtime, cluster, log, host: 'bench' })
  global.gc?.()
  const before = process.memoryUsage()
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  const loaded = new Promise<void>((resolve) => {
    state.onChange(() => {
      if (state.topicIds().length >= topics) resolve()
    })
  })
  state.start()
  await loaded
  const loadMs = performance.now() - startMs
  const used = process.cpuUsage(cpu)
  const residentBytes = process.memoryUsage().rss - before.rss
  global.gc?.()
  const keptBytes = process.memoryUsage().heapUsed - before.heapUsed
  if (state.view(`topic-${'0'.padStart(16, '0')}`)?.topic.layouts.at(-1)?.seal === undefined)
    throw new Error('the state is not what was written')
  const gatesFromMs = performance.now()
  const gates = readBy(groups, state, cluster, runtime)
  const gatesMs = performance.now() - gatesFromMs
  global.gc?.()
  const withGroupsBytes = process.memoryUsage().heapUsed - before.heapUsed
  const shut = gates.held().reduce((sum, one) => sum + one.shut, 0)
  if (shut < groups * topicsEach) throw new Error(`${shut} partitions are shut`)
  const cpuMs = (used.user + used.system) / 1000
  return { loadMs, cpuMs, keptBytes, residentBytes, gatesMs, withGroupsBytes }
}

const { values } = parseArgs({
  options: {
    topics: { type: 'string', default: '1000' },
    groups: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    load: { type: 'string' },
  },
})
const [topics, groups] = [Number(values.topics), Number(values.groups)]
if (values.load !== undefined) {
  process.send?.(await load(values.load, topics, groups))
  process.exit(0)
}
const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`
for (const withSnapshots of [false, true]) {
  const { broker, records } = await serve(topics, withSnapshots)
  for (let round = 0; round < Number(values.rounds); round++) {
    const measured = await new Promise<Measured>((resolve, reject) => {
      const words = ['--topics', String(topics), '--groups', String(groups), '--load', broker.bootstrap[0] ?? '']
      const child = fork(import.meta.filename, words, {
        execArgv: ['--import', 'tsx', '--expose-gc'],
      })
      child.once('message', (message) => resolve(message as Measured))
      child.once('exit', (code) => reject(new Error(`the loading process ended with ${code}`)))
    })
    const { loadMs, cpuMs, keptBytes, residentBytes, gatesMs, withGroupsBytes } = measured
    console.log(
      `${topics} topics, ${records} records${withSnapshots ? ' with snapshots' : ''}: ${loadMs.toFixed(0)} ms, CPU ${cpuMs.toFixed(0)} ms, heap kept ${mib(keptBytes)}, resident + ${mib(residentBytes)}`,
    )
    console.log(
      `  ${groups} groups that wait in ${topicsEach} topics each: ${gatesMs.toFixed(0)} ms, heap kept ${mib(withGroupsBytes)} with them`,
    )
  }
  await broker.stop()
}
