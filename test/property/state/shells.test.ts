/**
 * Three proxies' state shells on a broker model, with everything that may go wrong at once: processes killed and
 * restarted, networks cut, answers to appends lost, brokers restarted, the log compacted at any moment, a topic that is
 * deleted again and again while somebody still writes of it. In the end all
 * shells, and one that only ever saw what compaction left, show what the whole log says; and whoever is expelled by
 * another had stopped acting before.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readRecords } from '../../../src/records/read.ts'
import type { FakeBroker } from '../../../src/fake-broker/fake-broker.ts'
import type { ProduceRequest } from '../../../src/protocol/generated/00-produce.ts'
import { applyEntries, emptyLog, fleetOf, type LogEntry, topicOf } from '../../../src/state/log-reducer.ts'
import type { StateRecord } from '../../../src/state/record.ts'
import { decodeRecord } from '../../../src/state/records.ts'
import { currentLayout } from '../../../src/state/topic-state.ts'
import type { View } from '../../../src/state/view.ts'
import { Prng } from '../../support/prng.ts'
import { checkAsync } from '../../support/property.ts'
import { fakeCluster, type StateProcess, startProxy } from '../../support/state-rig.ts'
import { VirtualRuntime } from '../../support/virtual-runtime.ts'

const topic = '__headgate_state'
const topicIds = ['T1', 'T2', 'T3']
/** The one that comes and goes. */
const fleetingId = 'T3'
const proxyNames = ['a', 'b', 'c']
const forMs = 120_000
/** How long a proxy that is stopped in good order lives on. */
const stopMs = 100
const inflatedMax = 1024 * 1024

type Change = StateRecord extends infer R ? (R extends StateRecord ? Omit<R, 'proxy'> : never) : never

class Run {
  readonly world: VirtualRuntime
  readonly broker: FakeBroker
  readonly proxies = new Map<string, StateProcess>()
  /** Every entry that the log ever had. */
  readonly history = new Map<number, LogEntry>()
  areFaultsOn = true
  /** What the cluster does not have now. */
  readonly gone = new Set<string>()
  readonly violations: string[] = []
  readonly #prng: Prng
  #ids = 0

  constructor(world: VirtualRuntime, broker: FakeBroker, seed: number) {
    this.world = world
    this.broker = broker
    this.#prng = new Prng(seed)
    for (const name of proxyNames) this.start(name)
    broker.cluster.controls.add(0, ({ request }) => this.#watch(request as ProduceRequest))
  }

  get log() {
    return this.broker.cluster.topics.partition(topic, 0)?.log
  }

  start(name: string): void {
    const tailLength = 3 + this.#prng.below(8)
    this.proxies.set(name, startProxy(this.world, this.broker, name, { tailLength, isGone: (id) => this.gone.has(id) }))
  }

  /** Expelled by somebody else while it acts: what the lease is there to prevent. */
  #watch({ topicData }: ProduceRequest) {
    for (const { key, value } of readRecords(topicData[0]?.partitionData[0]?.records ?? Buffer.alloc(0), inflatedMax)) {
      const record = value === null ? undefined : decodeRecord(value)
      if (record?.kind !== 'expel' || record.expelled === record.proxy) continue
      const acting = [...this.proxies.values()].filter(({ shell }) => shell.mayAct()).map(({ shell }) => shell.proxy)
      if (acting.includes(record.expelled))
        this.violations.push(`${key?.toString()}: expelled ${record.expelled} while it acts`)
    }
    if (!this.areFaultsOn || !this.#happens(0.1)) return undefined
    if (this.#happens(0.5)) return { close: true as const }
    return { cutAt: 0 }
  }

  /** Remembers what the log holds, before compaction takes it. */
  remember(): void {
    for (const { bytes } of this.log?.batches ?? []) {
      for (const { offset, timestamp: atMs, key, value } of readRecords(bytes, inflatedMax)) {
        const record = value === null ? {} : { record: decodeRecord(value) }
        this.history.set(offset, { offset, atMs, key: key?.toString() ?? '', ...record })
      }
    }
  }

  step(): void {
    const name = this.#pick(proxyNames)
    const proxy = this.proxies.get(name)
    if (this.#happens(0.15)) {
      this.remember()
      this.log?.compact(this.#happens(0.5) ? undefined : this.#prng.below((this.log?.end ?? 0) + 1))
    }
    if (this.areFaultsOn && this.#happens(0.02)) this.#harm(name)
    if (this.#happens(0.03) && !this.gone.delete(fleetingId)) this.gone.add(fleetingId)
    if (proxy?.shell.mayAct() === true) this.#work(proxy)
  }

  #harm(name: string): void {
    const proxy = this.proxies.get(name)
    switch (this.#prng.below(5)) {
      case 0:
        proxy?.runtime.kill()
        return this.start(name)
      case 1:
        proxy?.runtime.cutOff(true)
        this.world.timer(this.#prng.below(25_000), () => proxy?.runtime.cutOff(false))
        return
      case 2: {
        const partition = this.broker.cluster.topics.partition(topic, 0)
        if (partition !== undefined) this.broker.cluster.elect(partition)
        return
      }
      case 3: {
        const node = 1 + this.#prng.below(3)
        if (this.broker.cluster.upNodeIds().length < 3) return
        void this.broker.stopNode(node, this.#happens(0.5))
        this.world.timer(this.#prng.below(10_000), () => void this.broker.startNode(node))
        return
      }
      default:
        void proxy?.shell.stop()
        this.world.timer(stopMs, () => {
          proxy?.runtime.kill()
          this.start(name)
        })
    }
  }

  #work({ shell }: StateProcess): void {
    const topicId = this.#pick(topicIds)
    if (this.gone.has(topicId) && !this.#happens(0.1)) return
    const change = this.#change(topicId, shell.view(topicId))
    shell.append({ ...change, proxy: shell.proxy })
  }

  /** Something that a feature might append now. */
  #change(topicId: string, view: View | undefined): Change {
    if (view === undefined) return { kind: 'topic', topicId, name: topicId, count: 3 }
    const { topic: state, position } = view
    const { epoch, count, lastVote } = currentLayout(state)
    const proposal = state.proposal?.id ?? ''
    const ends = { 0: position, 1: position }
    const changes: Change[] = [
      { kind: 'cut', topicId, cut: `c${this.#ids++}`, layouts: [epoch], ends },
      { kind: 'cut-read', topicId, cut: state.cuts.at(-1)?.id ?? '' },
      { kind: 'vote', topicId, epoch, ballot: this.#ids++, instances: ['i'], ends },
      { kind: 'withdrawal', topicId, epoch, ballot: this.#ids },
      { kind: 'sealed', topicId, epoch, lastVote, boundaries: ends, gaveUp: [], forced: this.#happens(0.2) },
      { kind: 'announced', topicId, epoch },
    ]
    if (proposal !== '') {
      changes.push({ kind: 'preparing', topicId, proposal }, { kind: 'ready', topicId, proposal })
      changes.push({ kind: 'aborted', topicId, proposal, reason: 'chance' })
      changes.push({ kind: 'open', topicId, proposal, starts: ends, leaderEpochs: {}, unsettled: [epoch] })
    } else {
      const to = count + 1
      const id = `p${this.#ids++}`
      changes.push({
        kind: 'proposal',
        topicId,
        proposal: id,
        after: epoch,
        change: 'expand',
        to,
        order: 'key',
        gates: 'seal',
      })
    }
    return this.#pick(changes)
  }

  #happens(probability: number): boolean {
    return this.#prng.below(1000) < probability * 1000
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#prng.below(items.length)] as T
  }
}

async function run(seed: number): Promise<void> {
  const world = new VirtualRuntime(seed)
  const broker = await fakeCluster(world)
  const run = new Run(world, broker, seed)
  for (let untilMs = 0; untilMs < forMs; untilMs += 100) {
    await world.run(() => false, 100)
    run.step()
  }
  run.areFaultsOn = false
  // Who is stopped in good order is replaced a moment later.
  await world.run(() => false, 2 * stopMs)
  assert.deepEqual(run.violations, [])
  for (const { runtime } of run.proxies.values()) runtime.cutOff(false)
  for (const node of [1, 2, 3]) await broker.startNode(node)
  run.start('fresh')
  const shells = [...run.proxies.values()].map((proxy) => proxy.shell)
  const isCalm = () =>
    shells.every((shell) => shell.mayAct() && shell.status().proxies.length === shells.length) &&
    shells.filter((shell) => shell.isLeader()).length === 1
  const told = () => JSON.stringify(shells.map((shell) => [shell.isLeader(), shell.status()]))
  assert.ok(await world.run(isCalm, 90_000), `never calm: ${told()}`)
  const end = run.log?.end ?? 0
  assert.ok(
    await world.run(() => shells.every((shell) => shell.counts().position >= end), 10_000),
    'it reads to the end',
  )
  run.remember()
  const whole = applyEntries(
    emptyLog(),
    [...run.history.values()].sort((a, b) => a.offset - b.offset).filter(({ offset }) => offset < end),
  )
  const live = Object.keys(fleetOf(whole).members).filter((id) => fleetOf(whole).members[id]?.expelledAt === undefined)
  assert.equal(live.length, shells.length)
  for (const shell of shells) {
    assert.deepEqual(
      shell
        .status()
        .proxies.map(({ proxy }) => proxy)
        .sort(),
      live.sort(),
    )
    for (const topicId of topicIds) {
      assert.deepEqual(shell.view(topicId)?.topic, topicOf(whole, topicId), `${shell.proxy} ${topicId}`)
    }
  }
  for (const proxy of run.proxies.values()) proxy.runtime.kill()
}

test('all shells agree with the whole log, and nobody acts when it is expelled', () =>
  checkAsync(fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), run), 4))
