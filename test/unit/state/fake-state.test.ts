import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeStateLog } from '../../support/fake-state.ts'
import { VirtualRuntime } from '../../support/virtual-runtime.ts'

const topic = { kind: 'topic', topicId: 'T', name: 'orders', count: 3 } as const

test('fake state: records of one proxy reach the views of all, through the real reducers', async () => {
  const runtime = new VirtualRuntime()
  const log = new FakeStateLog(runtime)
  const [a, b] = [log.join('a'), log.join('b')]
  assert.equal(a.mayAct(), false)
  await runtime.run(() => a.mayAct() && b.mayAct())
  a.append({ ...topic, proxy: a.proxy })
  await runtime.run(() => b.view('T') !== undefined)
  assert.equal(b.view('T')?.topic.layouts[0]?.count, 3)
  assert.equal(a.isLeader(), true)
  assert.equal(b.isLeader(), false)
})

test('fake state: an expelled proxy comes back under another id; one that is cut off reads nothing', async () => {
  const runtime = new VirtualRuntime()
  const log = new FakeStateLog(runtime)
  const [a, b] = [log.join('a'), log.join('b')]
  await runtime.run(() => a.mayAct() && b.mayAct())
  const before = a.proxy
  a.expel()
  await runtime.run(() => a.proxy !== before && a.mayAct())
  b.disconnect()
  a.append({ ...topic, proxy: a.proxy })
  await runtime.run(() => a.view('T') !== undefined)
  assert.equal(b.mayAct(), false)
  assert.equal(b.view('T'), undefined)
  b.reconnect()
  assert.notEqual(b.view('T'), undefined)
})
