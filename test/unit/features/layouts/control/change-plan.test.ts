import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ChangeRequest, planChange } from '../../../../../src/features/layouts/control/change-plan.ts'
import type { Layout, TopicState } from '../../../../../src/state/topic-state.ts'

const layout = (epoch: number, count: number, more: Partial<Layout> = {}) =>
  ({ epoch, count, change: epoch === 0 ? 'met' : 'expand', gates: 'seal', ...more }) as Layout
const seal = { at: 9, atMs: 9, boundaries: {}, gaveUp: [], forced: false }
const topic = (...layouts: Layout[]): TopicState => ({ topicId: 'T', name: 'orders', layouts, cuts: [] })
const three = topic(layout(0, 3))
const ask = (state: TopicState, change: ChangeRequest['change'], to: number, any = false) =>
  planChange(state, 'key', { change, to, any })
const codeOf = (plan: ReturnType<typeof ask>) => (plan.kind === 'refused' ? plan.code : plan.gates)

test('every count that makes no sense is refused with what to do', () => {
  const cases: [TopicState, 'expand' | 'shrink', number, string][] = [
    [three, 'expand', 3, 'HG_TO_SAME'],
    [three, 'shrink', 3, 'HG_TO_SAME'],
    [three, 'expand', 2, 'HG_TO_TOO_SMALL'],
    [three, 'shrink', 6, 'HG_TO_TOO_LARGE'],
    [three, 'shrink', 0, 'HG_TO_INVALID'],
    [three, 'expand', -1, 'HG_TO_INVALID'],
    [three, 'expand', 4.5, 'HG_TO_INVALID'],
    [three, 'expand', Number.NaN, 'HG_TO_INVALID'],
    [three, 'expand', 30_000, 'HG_TO_TOO_LARGE'],
    [three, 'expand', 5, 'HG_NOT_MULTIPLE'],
  ]
  for (const [state, change, to, code] of cases) {
    const plan = ask(state, change, to)
    assert.equal(codeOf(plan), code, `${change} to ${to}`)
    assert.ok(plan.kind === 'refused' && plan.message.length > 10 && plan.fix.length > 10)
  }
})

test('a count that is no multiple names those that are near, and is taken when any is', () => {
  const plan = ask(topic(layout(0, 4)), 'expand', 10)
  assert.match(plan.kind === 'refused' ? plan.fix : '', /^expand to 8 or 12,/)
  const first = ask(three, 'expand', 4)
  assert.match(first.kind === 'refused' ? first.fix : '', /^expand to 6,/)
  const any = ask(three, 'expand', 5, true)
  assert.ok(any.kind === 'plan')
  assert.deepEqual([any.gates, any.fresh, any.gaining], ['cuts', [3, 4], [0, 1, 2]])
})

test('a plan says what is created and which existing partitions gain keys', () => {
  const wider = ask(three, 'expand', 6)
  assert.ok(wider.kind === 'plan')
  assert.deepEqual([wider.from, wider.after, wider.gates, wider.fresh, wider.gaining], [3, 0, 'seal', [3, 4, 5], []])
  const narrower = ask(topic(layout(0, 6)), 'shrink', 3)
  assert.ok(narrower.kind === 'plan')
  assert.deepEqual([narrower.gates, narrower.fresh, narrower.gaining], ['cuts', [], [0, 1, 2]])
})

test('growing back into marked partitions creates nothing and uses cuts', () => {
  const marked = topic(layout(0, 6), layout(1, 3, { change: 'shrink', gates: 'cuts' }))
  const plan = ask(marked, 'expand', 6)
  assert.ok(plan.kind === 'plan')
  assert.deepEqual([plan.gates, plan.fresh], ['cuts', []])
})

test('one change at a time; what needs cuts waits for the seal of an expansion', () => {
  const busy = { ...three, proposal: { id: 'x', to: 6 } } as TopicState
  assert.equal(codeOf(ask(busy, 'expand', 9)), 'HG_CHANGE_IN_PROGRESS')
  const unsealed = topic(layout(0, 3), layout(1, 6))
  assert.equal(codeOf(ask(unsealed, 'shrink', 3)), 'HG_NOT_SEALED')
  assert.equal(codeOf(ask(unsealed, 'expand', 8, true)), 'HG_NOT_SEALED')
  assert.equal(codeOf(ask(unsealed, 'expand', 12)), 'seal')
  assert.equal(codeOf(ask(topic(layout(0, 3), layout(1, 6, { seal })), 'shrink', 3)), 'cuts')
})
