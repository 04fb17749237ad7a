import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Counters } from '../../../../../src/features/layouts/shell/counters.ts'
import { RecordingLog } from '../../../../support/telemetry.ts'
import { VirtualRuntime } from '../../../../support/virtual-runtime.ts'

test('counters: a reason is logged at once, then once a minute with how many there were since', async () => {
  const runtime = new VirtualRuntime(1)
  const log = new RecordingLog()
  const counters = new Counters(runtime, log, 'disorder')
  for (let second = 0; second < 90; second++) {
    counters.add('t', 'cut without quiet', 'i')
    await runtime.run(() => false, 1000)
  }
  assert.deepEqual(
    log.lines.map(({ fields }) => fields.count),
    [1, 60],
  )
  assert.equal(counters.of('t', 'cut without quiet'), 90)
})

test('counters: what a change makes of every batch is logged once for the change', async () => {
  const runtime = new VirtualRuntime(1)
  const log = new RecordingLog()
  const counters = new Counters(runtime, log, 'disorder')
  for (const epoch of [2, 2, 3, 3]) {
    counters.add('t', 'old and new alike', 'i', epoch)
    await runtime.run(() => false, 600_000)
  }
  assert.deepEqual(
    log.lines.map(({ fields }) => [fields.epoch, fields.count]),
    [
      [2, 1],
      [3, 2],
    ],
  )
  assert.equal(counters.of('t', 'old and new alike'), 4)
})
