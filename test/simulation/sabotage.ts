/**
 * Bugs made on purpose, by name: the simulation has to find them, or it proves nothing. Each changes the proxy's own
 * code while it is in force, from outside, and is undone afterwards.
 */
import { PartitionRead } from '../../src/editors/fetch/partition-read.ts'
import { type SkipPointer, SkipPointers } from '../../src/editors/fetch/skip-pointers.ts'
import { AddressEditor } from '../../src/editors/metadata/editor.ts'
import { AbortedBatches } from '../../src/records/aborted.ts'
import { isControl } from '../../src/records/batch.ts'
import { buildBatch } from '../../src/records/build.ts'
import type { ScenarioName } from './plan.ts'
import { patch } from './patch.ts'
import { layoutSabotages } from './sabotage-layouts.ts'

export interface Sabotage {
  name: string
  about: string
  scenario: ScenarioName
  /** Puts the bug in; returns how to take it out. */
  commit(): () => void
  /** How a run without the bug has to be judged, to be compared: in force until it is taken out again. */
  compare?(): () => void
}

export const sabotages: readonly Sabotage[] = [
  {
    name: 'zero-record-batch',
    about: 'where nothing is left after filtering, a batch without records is sent',
    scenario: 'filtered',
    commit: () =>
      patch(PartitionRead.prototype, 'result', (original) => {
        return function (this: PartitionRead) {
          const result = original.call(this as never) as ReturnType<PartitionRead['result']>
          const asked = this.request.fetchOffset
          if (result.errorCode !== 0 || (result.records?.length ?? 0) > 0 || this.position <= asked) return result
          this.pointers = () => []
          const records = buildBatch({ records: [], baseOffset: asked, lastOffsetDelta: this.position - 1 - asked })
          return { ...result, records }
        }
      }),
  },
  {
    name: 'pointer-after-seek',
    about: 'a skip pointer serves a Fetch at another offset than its own',
    scenario: 'filtered',
    commit: () =>
      patch(SkipPointers.prototype, 'find', () => {
        return function (this: { byPartition: Map<string, readonly SkipPointer[]> }, partition: string) {
          return this.byPartition.get(partition)?.[0]
        }
      }),
  },
  {
    name: 'survivors-below',
    about: 'records below the fetch offset count as something for the client',
    scenario: 'filtered',
    commit: () =>
      patch(PartitionRead.prototype, 'filter', (original) => {
        return function (this: PartitionRead, policy: unknown, records: Buffer, response: unknown) {
          const { position } = this
          this.position = Math.min(position, Number(records.readBigInt64BE(0)))
          original.call(this as never, policy as never, records as never, response as never)
          if (this.position < position) this.position = position
        }
      }),
  },
  {
    name: 'abort-marker-dropped',
    about: 'the end of an aborted transaction is overlooked',
    scenario: 'filtered',
    commit: () =>
      patch(AbortedBatches.prototype, 'includes', (original) => {
        return function (this: AbortedBatches, bytes: Buffer, at: number, end: number) {
          return isControl(bytes, at) ? false : original.call(this as never, bytes as never, at as never, end as never)
        }
      }),
  },
  {
    name: 'aborted-shown',
    about: 'records of aborted transactions are passed on as if they were committed',
    scenario: 'filtered',
    commit: () => patch(AbortedBatches.prototype, 'includes', () => () => false),
  },
  {
    name: 'gate-ignored',
    about: 'records behind a shut gate are passed on',
    scenario: 'filtered',
    commit: () =>
      patch(PartitionRead.prototype, 'limit', () => {
        return () => Number.POSITIVE_INFINITY
      }),
  },
  {
    name: 'addresses-untouched',
    about: 'the brokers’ own addresses reach the clients',
    scenario: 'plain',
    commit: () => patch(AddressEditor.prototype, 'onResponse', () => () => undefined),
  },
  ...layoutSabotages,
]

export function sabotageNamed(name: string): Sabotage {
  const found = sabotages.find((s) => s.name === name)
  if (found === undefined) throw new Error(`no sabotage ${name}; there are ${sabotages.map((s) => s.name).join(', ')}`)
  return found
}
