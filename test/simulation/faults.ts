/** Makes the faults of a plan happen. Each says in the history when it began and until when it lasted. */
import type { PartitionLog } from '../../src/fake-broker/partition-log.ts'
import { fetch } from '../../src/protocol/generated/01-fetch.ts'
import type { Fault } from './plan.ts'
import { TOPIC, type World } from './world.ts'

/** A half-open link that lasts longer does not get its connections back. */
const LONGEST_SURVIVED_MS = 2_000
/** Explains re-sends for this long after: what was under way is asked for again after its time-out. */
const ECHO_MS = 10_000
/** How long what a client sends gets lost before it is told that it has no connection. */
const SILENCE_MS = 200

/** Schedules all faults of the world's plan. */
export function scheduleFaults(world: World): void {
  for (const fault of world.plan.faults) world.clock.schedule(fault.atMs, () => begin(world, fault))
}

function begin(world: World, fault: Fault): void {
  const isChanging = world.isChanging()
  const applied = apply(world, fault)
  if (!applied) return
  world.statistics.count(`faults.${fault.kind}`)
  if (isChanging) world.statistics.count(`faults in a change.${fault.kind}`)
  const lasts = 'forMs' in fault ? fault.forMs : 0
  const until = world.clock.nowMs + lasts + ECHO_MS
  world.ledger.record({ event: 'fault', at: world.clock.nowMs, kind: fault.kind, until })
}

/** False where there was nothing to do it to. */
function apply(world: World, fault: Fault): boolean {
  const later = (ms: number, then: () => void): void => void world.clock.schedule(world.clock.nowMs + ms, then)
  const { network, broker } = world
  switch (fault.kind) {
    case 'cut':
      return onLink(world, fault.link, (a, b) => network.cut(a, b))
    case 'half-open':
      return onLink(world, fault.link, (a, b) => {
        network.kill(a, b)
        later(fault.forMs, () => network.heal(a, b, fault.forMs > LONGEST_SURVIVED_MS))
      })
    case 'broker-down': {
      const nodeId = fault.node + 1
      if (!broker.cluster.nodes.some((n) => n.id === nodeId && n.up)) return false
      truncating(world, () => void broker.stopNode(nodeId, fault.reset).catch(world.fail))
      later(fault.forMs, () => void broker.startNode(nodeId).catch(world.fail))
      return true
    }
    case 'leader-change':
      return onPartition(world, fault.partition, (_, elect) => elect())
    case 'unclean-leader-change':
      return onPartition(world, fault.partition, (log, elect) => {
        void log.highWatermark
        log.replicating = false
        later(fault.forMs, elect)
      })
    case 'coordinator-reload':
      for (const group of broker.cluster.coordinators.groups) {
        broker.cluster.coordinators.reload(group.id, world.clock.nowMs, 300)
      }
      broker.cluster.arm()
      return true
    case 'proxy-crash': {
      const process = world.proxies[fault.proxy]
      if (process?.alive !== true) return false
      process.kill()
      later(fault.forMs, () => void world.startProxy(fault.proxy).catch(world.fail))
      return true
    }
    case 'proxy-pause': {
      const process = world.proxies[fault.proxy]
      if (process?.alive !== true || process.paused) return false
      process.pause()
      later(fault.forMs, () => process.resume())
      return true
    }
    case 'client-crash':
      return crash(world, fault.consumer, (restart) => later(fault.forMs, restart))
    case 'client-pause': {
      const live = world.consumers[fault.consumer]
      if (live === undefined || live.gone || live.process.paused) return false
      live.process.pause()
      later(fault.forMs, () => live.process.resume())
      return true
    }
    case 'error-answer':
    case 'late-answer':
    case 'cut-answer':
      return onAnswers(world, fault)
    case 'seek':
      return seek(world, fault.consumer, fault.back)
    case 'compact':
      return onPartition(world, fault.partition, (log) => log.compact())
    case 'state-cut-off': {
      const leader = broker.cluster.topics.partition('__headgate_state', 0)?.leader
      const proxy = world.proxies[fault.proxy]
      if (leader === undefined || proxy === undefined) return false
      const node = `broker-${leader}`
      network.kill(proxy.name, node)
      later(fault.forMs, () => network.heal(proxy.name, node, true))
      return true
    }
    case 'own-requests-lost':
      return loseOwnRequests(world, fault.proxy, (end) => later(fault.forMs, end))
    case 'producer-cut-off':
      return cutOff(world, fault.producer, fault.forMs, later)
    case 'compact-state': {
      const state = broker.cluster.topics.partition('__headgate_state', 0)
      state?.log.compact()
      return state !== undefined
    }
    case 'trim':
      return onPartition(world, fault.partition, (log) => {
        log.trim(Math.max(0, log.highWatermark - fault.keep))
        world.ledger.record({
          event: 'trimmed',
          at: world.clock.nowMs,
          topic: TOPIC,
          partition: fault.partition,
          offset: log.start,
        })
      })
  }
}

function onLink(world: World, number: number, happen: (a: string, b: string) => void): boolean {
  const links = world.network.links()
  const [a, b] = links[number % links.length] ?? []
  if (a === undefined || b === undefined) return false
  happen(a, b)
  return true
}

function loseOwnRequests(world: World, index: number, later: (end: () => void) => void): boolean {
  const proxy = world.proxies[index]
  if (proxy === undefined) return false
  const end = world.broker.cluster.controls.add(-1, ({ clientId, clientHost }) => {
    return clientId === 'headgate' && clientHost === `/${proxy.address}` ? { swallow: true, unserved: true } : undefined
  })
  later(end)
  return true
}

function cutOff(world: World, index: number, forMs: number, later: (ms: number, then: () => void) => void): boolean {
  const { network, plan, proxies } = world
  const name = plan.producers[index]?.name
  if (name === undefined) return false
  for (const proxy of proxies) {
    network.kill(name, proxy.name)
    later(SILENCE_MS, () => network.cut(name, proxy.name))
    later(forMs, () => network.heal(name, proxy.name, true))
  }
  return true
}

function onPartition(world: World, index: number, happen: (log: PartitionLog, elect: () => void) => void): boolean {
  const partition = world.broker.cluster.topics.partition(TOPIC, index)
  if (partition === undefined) return false
  happen(partition.log, () => truncating(world, () => void world.broker.cluster.elect(partition)))
  return true
}

/** Says which partitions lost their tail. */
function truncating(world: World, happen: () => void): void {
  const logs = (world.broker.cluster.topics.named(TOPIC)?.partitions ?? []).map((p) => ({
    index: p.index,
    log: p.log,
    end: p.log.end,
    epoch: p.log.epoch,
  }))
  happen()
  for (const { index, log, end, epoch } of logs) {
    if (log.began >= end || log.epoch === epoch) continue
    world.statistics.count('log.truncated')
    world.ledger.record({
      event: 'truncated',
      at: world.clock.nowMs,
      topic: TOPIC,
      partition: index,
      offset: log.began,
    })
  }
}

function crash(world: World, index: number, later: (restart: () => void) => void): boolean {
  const live = world.consumers[index]
  if (live === undefined || live.gone || !live.process.alive) return false
  live.process.kill()
  live.gone = true
  const { name, group } = live.consumer.options
  world.ledger.record({ event: 'crashed', at: world.clock.nowMs, member: name, group })
  later(() => void world.startConsumer(live.plan, live.life + 1).catch(world.fail))
  return true
}

function seek(world: World, index: number, back: number): boolean {
  const live = world.consumers[index]
  if (live === undefined || live.gone || live.process.paused) return false
  const owned = Array.from(live.consumer.owned.values()).find((o) => o.position > 0)
  if (owned === undefined) return false
  const start = world.broker.cluster.topics.partition(TOPIC, owned.partition)?.log.start ?? 0
  live.process.enter(() => {
    // Never forwards: what was skipped on purpose would look lost.
    const waiting = live.consumer.queue.find((record) => record.partition === owned.partition)
    const reached = Math.min(owned.position, waiting?.offset ?? owned.position)
    live.consumer.seek(owned.partition, Math.max(start, reached - back))
  })
  return true
}

function onAnswers(world: World, fault: Fault & { kind: 'error-answer' | 'late-answer' | 'cut-answer' }): boolean {
  let left = fault.kind === 'cut-answer' ? 1 : fault.times
  const { controls } = world.broker.cluster
  const remove = controls.add(fault.apiKey, ({ request, apiVersion }) => {
    if (--left < 0) {
      remove()
      return undefined
    }
    world.statistics.count(`answers.${fault.kind}`)
    if (fault.kind === 'late-answer') return { delayMs: fault.delayMs }
    if (fault.kind === 'cut-answer') return { cutAt: fault.afterBytes }
    return { answer: refuse(fault.apiKey, fault.code, request, apiVersion) }
  })
  return true
}

interface AnyRequest {
  topicData?: { name: string; topicId: string; partitionData: { index: number }[] }[]
  topics?: {
    name?: string
    topic?: string
    topicId: string
    partitions: { partitionIndex?: number; partition?: number }[]
  }[]
  memberId?: string
}

/** The answer that says `code` about everything in the request. */
function refuse(apiKey: number, errorCode: number, request: unknown, version: number): object {
  const { topicData = [], topics = [], memberId } = request as AnyRequest
  const noLeader = { leaderId: -1, leaderEpoch: -1 }
  if (apiKey === 0) {
    const responses = topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index }) => ({
        index,
        errorCode,
        baseOffset: -1,
        ...(version >= 10 ? { currentLeader: noLeader } : {}),
      })),
    }))
    return { responses }
  }
  if (apiKey === fetch.key) {
    const responses = topics.map(({ topic, topicId, partitions }) => ({
      topic,
      topicId,
      partitions: partitions.map(({ partition }) => ({
        partitionIndex: partition,
        errorCode,
        highWatermark: -1,
        abortedTransactions: null,
        records: Buffer.alloc(0),
      })),
    }))
    return { errorCode: 0, responses }
  }
  const rows = topics.map(({ name, topicId, partitions }) => ({
    name,
    topicId,
    partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })),
  }))
  if (apiKey === 8) return { topics: rows }
  return { errorCode, memberId: memberId ?? '', protocolName: '' }
}
