import assert from 'node:assert/strict'
import { test } from 'node:test'
import { around } from '../../checker/around.ts'
import type { HistoryEvent } from '../../checker/history.ts'

test('around a violation: what its partition saw before and in between, runs of records in one line', () => {
  const place = { topic: 't', partition: 1 }
  const who = { member: 'M0', group: 'g' }
  const origin = { producer: 'P', sequence: 0, key: 'k' }
  const delivered = (at: number, offset: number): HistoryEvent => ({
    event: 'delivered',
    at,
    ...place,
    ...who,
    ...origin,
    offset,
  })
  const committed = (at: number, offset: number): HistoryEvent => ({ event: 'committed', at, ...place, ...who, offset })
  const [first, last] = [committed(10_000, 86), committed(27_000, 84)]
  const history: HistoryEvent[] = [
    delivered(4000, 70),
    { event: 'assigned', at: 9000, ...who, partitions: [['t', 1]] },
    delivered(9100, 84),
    delivered(9200, 85),
    { ...delivered(9300, 9), partition: 2 } as HistoryEvent,
    first,
    { event: 'fault', at: 11_000, kind: 'broker killed', until: 17_000 },
    delivered(26_000, 83),
    last,
    delivered(27_001, 86),
  ]
  assert.deepEqual(around(history, { rule: 'r', message: 'm', events: [first, last] }), [
    '-1000 ms: M0 assigned 1',
    '-900 ms: M0 delivered 84-85',
    '0 ms: M0 committed 86',
    '1000 ms: run fault (broker killed, for 6000 ms)',
    '16000 ms: M0 delivered 83',
    '17000 ms: M0 committed 84',
  ])
  assert.deepEqual(around(history, { rule: 'r', message: 'm', events: [] }), [])
})
