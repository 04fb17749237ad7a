import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fleet, type TestProxy } from './fleet.ts'

const told = ({ log }: TestProxy) =>
  log.lines.filter(({ level }) => level !== 'debug').map(({ level, message }) => `${level} ${message.split(/[:,]/)[0]}`)

test('every proxy tells each step of a change once; the one that was asked also who asked', async () => {
  const fleet = await Fleet.of(2)
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  await fleet.settled(a.ask('expand', 6))
  await fleet.until(() => fleet.proxies.every(({ topic }) => topic.layouts[1]?.seal !== undefined))
  const steps = ['info a change begins', 'info preparing', 'info open', 'info sealed']
  assert.deepEqual(told(b), steps)
  assert.deepEqual(told(a), ['info a change was asked for', ...steps])
  assert.equal(a.log.lines.find(({ message }) => message === 'a change was asked for')?.fields.by, 'the test')
  const opened = b.log.lines.find(({ message }) => message.startsWith('open'))?.fields
  assert.deepEqual(opened, { topic: 'orders', change: 'expand', epoch: 1, partitions: 6, gates: 'seal' })
})

test('a change that is aborted or refused says why, and a seal without everybody is a warning', async () => {
  const fleet = await Fleet.of(2, { sealAfterMs: 5000 })
  const [a, b] = [fleet.proxy(0), fleet.proxy(1)]
  b.isReady = false
  b.votes = false
  await fleet.settled(a.ask('expand', 5))
  assert.equal(told(a).at(-1), 'warn a change was asked for and refused')
  await fleet.settled(a.ask('expand', 6))
  await fleet.until(() => b.topic.aborted !== undefined)
  assert.deepEqual(told(b), ['info a change begins', 'info preparing', 'warn the change was aborted'])
  b.isReady = true
  await fleet.settled(a.ask('expand', 6))
  await fleet.until(() => fleet.proxies.every(({ topic }) => topic.layouts[1]?.seal !== undefined))
  assert.equal(told(b).at(-1), 'warn sealed by sealAfter')
})

test('a shrink is told as it is announced, to clients that start and to living ones', async () => {
  const fleet = await Fleet.of(1)
  const [a] = [fleet.proxy(0)]
  await fleet.settled(a.ask('shrink', 1))
  await fleet.until(() => a.topic.layouts[1]?.announcedAt !== undefined)
  a.coordinator.announceLive(1)
  await fleet.until(() => a.topic.layouts[1]?.isLive === true)
  const all = told(a)
  assert.ok(all.includes('info the smaller count is shown to clients that start'), all.join('\n'))
  assert.ok(all.includes('info the smaller count is shown to living clients too'), all.join('\n'))
})
