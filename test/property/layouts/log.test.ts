/** The state log under random records, snapshots, tombstones and compaction: whoever reads it to its end agrees. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyEntry, emptyLog, fleetOf, type LogEntry, type LogState, topicOf } from '../../../src/state/log-reducer.ts'
import type { StateRecord } from '../../../src/state/record.ts'
import { keyOf } from '../../../src/state/records.ts'
import { dueSnapshots, erasableKeys } from '../../../src/state/snapshot.ts'

const proxies = ['p1', 'p2', 'p3']
const topicId = 'T'
const proxy = fc.constantFrom(...proxies)
const epoch = fc.constantFrom(1, 2)
const ends = fc.dictionary(fc.constantFrom('0', '1', '2'), fc.nat(30)) as fc.Arbitrary<Record<number, number>>
const proposal = fc.constantFrom('a', 'b')

const change: fc.Arbitrary<StateRecord> = fc.oneof(
  proxy.map((p): StateRecord => ({ kind: 'register', proxy: p, host: p })),
  fc.record({ kind: fc.constant('expel' as const), proxy, expelled: proxy }),
  proxy.map((p): StateRecord => ({ kind: 'topic', proxy: p, topicId, name: 't', count: 2 })),
  fc.record({
    kind: fc.constant('proposal' as const),
    proxy,
    topicId: fc.constant(topicId),
    proposal,
    after: fc.constantFrom(0, 0, 1),
    change: fc.constant('expand' as const),
    to: fc.constantFrom(3, 4),
    order: fc.constant('key' as const),
    gates: fc.constantFrom('seal' as const, 'cuts' as const),
  }),
  fc.record({
    kind: fc.constantFrom('preparing' as const, 'ready' as const),
    proxy,
    topicId: fc.constant(topicId),
    proposal,
  }),
  fc.record({
    kind: fc.constant('open' as const),
    proxy,
    topicId: fc.constant(topicId),
    proposal,
    starts: ends,
    leaderEpochs: ends,
    unsettled: fc.constant([0] as number[]),
  }),
  fc.record({
    kind: fc.constant('vote' as const),
    proxy,
    topicId: fc.constant(topicId),
    epoch,
    ballot: fc.integer({ min: 1, max: 3 }),
    instances: fc.constant([] as string[]),
    ends,
  }),
  fc.record({
    kind: fc.constant('withdrawal' as const),
    proxy,
    topicId: fc.constant(topicId),
    epoch,
    ballot: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({
    kind: fc.constant('sealed' as const),
    proxy,
    topicId: fc.constant(topicId),
    epoch,
    lastVote: fc.nat(60),
    boundaries: ends,
    gaveUp: fc.subarray(proxies),
    forced: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('cut' as const),
    proxy,
    topicId: fc.constant(topicId),
    cut: proposal,
    layouts: fc.constant([0, 1] as number[]),
    ends,
  }),
  fc.record({ kind: fc.constant('cut-read' as const), proxy, topicId: fc.constant(topicId), cut: proposal }),
)

type Step =
  | { do: 'record'; record: StateRecord }
  | { do: 'snapshot' }
  | { do: 'erase' }
  | { do: 'compact' }
  | { do: 'read'; reader: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: change.map((record): Step => ({ do: 'record', record })) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'snapshot' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'erase' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'compact' }) },
  { weight: 2, arbitrary: fc.nat(2).map((reader): Step => ({ do: 'read', reader })) },
)

class Log {
  entries: LogEntry[] = []
  end = 0

  append(key: string, record?: StateRecord): void {
    this.entries.push({ offset: this.end, atMs: this.end * 10, key, ...(record === undefined ? {} : { record }) })
    this.end += 1
  }

  /** Keeps the last record of each key, as the broker's cleaner may at any time. */
  compact(): void {
    const last = new Map(this.entries.map((entry) => [entry.key, entry.offset]))
    this.entries = this.entries.filter((entry) => last.get(entry.key) === entry.offset)
  }

  read(state: LogState): LogState {
    return this.entries.reduce((sum, entry) => applyEntry(sum, entry), state)
  }
}

const meaning = (state: LogState) => ({ fleet: fleetOf(state), topic: topicOf(state, topicId) })

void test('every reader that reached the end has the state of one that never missed a record', () => {
  const replay = process.env.SEED === undefined ? {} : { seed: Number(process.env.SEED) }
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const log = new Log()
      for (const p of proxies.slice(0, 2)) log.append(`register/fleet/${p}`, { kind: 'register', proxy: p, host: p })
      let writer = emptyLog()
      const readers = [emptyLog(), emptyLog(), emptyLog()]
      const all: LogEntry[] = []
      const remember = (): void => void all.push(...log.entries.slice(-1))
      all.push(...log.entries)
      steps.forEach((item, index) => {
        writer = log.read(writer)
        if (item.do === 'record') {
          log.append(keyOf(item.record, String(index)), item.record)
          remember()
        }
        // Nothing is forgotten here, so that the one that never missed a record can be compared as a whole.
        if (item.do === 'snapshot')
          for (const record of dueSnapshots(writer, 'p1', 1, 0)) log.append(keyOf(record, ''), record)
        if (item.do === 'erase') for (const key of erasableKeys(writer)) log.append(key)
        if (item.do === 'compact') log.compact()
        if (item.do === 'read') readers[item.reader] = log.read(readers[item.reader] ?? emptyLog())
      })
      const truth = meaning(all.reduce((sum, entry) => applyEntry(sum, entry), emptyLog()))
      for (const reader of [...readers, emptyLog()]) assert.deepEqual(meaning(log.read(reader)), truth)
    }),
    { numRuns: 300, ...replay },
  )
})
