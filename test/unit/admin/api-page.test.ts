import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { LayoutApi as Api } from '../../../src/features/layouts/control/api.ts'
import { LayoutApi } from '../../../src/features/layouts/control/api.ts'
import { newLedger, reduceLedger } from '../../../src/features/layouts/clean.ts'
import { Fleet } from '../features/layouts/control/fleet.ts'

const page = readFileSync('docs/api.md', 'utf8')

/** Names of fields at any depth; what stands under a partition or a reason is no field. */
function fieldsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(fieldsOf)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, below]) => [
    ...(/^[a-zA-Z]+$/.test(key) ? [key] : []),
    ...fieldsOf(below),
  ])
}

function apiOf(fleet: Fleet): Api {
  const { control, state } = fleet.proxy(0)
  const at = { atMs: fleet.runtime.now() }
  const writer = reduceLedger(newLedger('a', 0), { type: 'arrived', mark: 'm', age: 0, ...at })
  const gone = reduceLedger(
    { ...writer, instance: 'b', connections: 1 },
    { type: 'lost', connection: '1', boundMs: 10, ...at },
  )
  return new LayoutApi({
    runtime: fleet.runtime,
    state,
    cluster: fleet.cluster,
    control,
    rules: [fleet.rule],
    meet: () => undefined,
    guards: { guardOf: () => ({ ledgers: [writer, gone], held: 0, counted: {}, late: 0 }) },
    gates: {
      gatesOf: () => [
        { topic: 'orders', partition: 3, from: 0, seal: 1, cut: 'c', parent: 0, until: 1, committed: 0, sinceMs: 0 },
      ],
      shutGroups: () => ['g'],
    },
    unassigned: {
      of: (group) => [
        {
          ...{ topic: 'orders', unassigned: [3], leader: `${group}/l`, sinceMs: 0 },
          unaware: [{ instance: 'i', member: 'm', partitions: 3 }],
        },
      ],
      groups: () => ['g', 'h'],
    },
  })
}

test('docs/api.md has every field of the answers about topics, groups and the state', async () => {
  const fleet = await Fleet.of(2, { sealAfterMs: 60_000 })
  fleet.proxy(0).votes = false
  fleet.proxy(1).isReady = false
  const api = apiOf(fleet)
  const answers: unknown[] = [api.state(), api.topics(), api.gates('g')]
  const look = async () => answers.push(await api.topic('orders'))
  const aborted = api.change('orders', 'expand', { to: 6 })
  await fleet.until(() => fleet.proxy(0).topic.proposal !== undefined)
  await look()
  await fleet.settled(aborted)
  await look()
  fleet.proxy(1).isReady = true
  answers.push(await api.change('orders', 'expand', { to: 6, dryRun: true }))
  answers.push(await fleet.settled(api.change('orders', 'expand', { to: 6 })))
  await look()
  await fleet.until(() => fleet.proxy(0).topic.layouts[1]?.seal !== undefined, 90_000)
  answers.push(await fleet.settled(api.change('orders', 'shrink', { to: 3 })))
  await fleet.until(() => fleet.proxy(0).topic.layouts[2]?.announcedAt !== undefined)
  await look()
  const bodies = answers.map((answer) => {
    if (typeof answer !== 'object' || answer === null || !('ok' in answer)) return answer
    assert.ok('body' in answer, JSON.stringify(answer))
    return answer.body
  })
  const fields = new Set(fieldsOf(bodies))
  assert.ok(fields.size > 40, [...fields].join(' '))
  for (const field of fields) assert.ok(page.includes(`\`${field}\``), `${field} is not in docs/api.md`)
})

test('docs/api.md has every reason for which batches are counted or refused', () => {
  const source = readFileSync('src/features/layouts/guard-state.ts', 'utf8')
  for (const name of ['CountReason', 'HoldReason']) {
    const type = new RegExp(`export type ${name} =([^]*?)\n\n`).exec(source)?.[1] ?? ''
    const reasons = Array.from(type.matchAll(/'([^']+)'/g), (match) => match[1])
    assert.ok(reasons.length > 5, name)
    for (const reason of reasons) assert.ok(page.includes(`\`${reason}\``), `${reason} is not in docs/api.md`)
  }
})
