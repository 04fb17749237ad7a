import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitedProxies } from '../../../../../src/features/layouts/control/waiting.ts'
import { LayoutsRig, teach } from '../../../../support/layouts-rig.ts'

/** Two proxies, and a producer at the second one, which has written by 3 partitions. */
async function started() {
  const rig = await LayoutsRig.start({ proxies: 2 })
  const client = await rig.client(1, 'producer')
  await client.count()
  await teach(rig, client, 3)
  return { rig, client }
}

/** Tells the second proxy to stop, in good order. */
async function stop(rig: LayoutsRig, deadlineMs = 5000): Promise<void> {
  const proxy = rig.proxies[1]?.proxy ?? assert.fail()
  await rig.settled(proxy.drain(deadlineMs))
  await rig.settled(proxy.close())
  await rig.until(() => rig.guard().view?.fleet.members !== undefined, 'the fleet is known')
}

/** Expands, and says how long the seal took. */
async function sealedAfterMs(rig: LayoutsRig): Promise<number> {
  const outcome = rig.expand(6)
  await rig.until(() => rig.topic()?.layouts.length === 2, 'the new layout is open')
  await rig.settled(outcome)
  const openMs = rig.runtime.now()
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed', 200_000)
  return rig.runtime.now() - openMs
}

function waited(rig: LayoutsRig): string[] {
  const { view, times } = rig.guard()
  const layout = view?.topic.layouts[1]
  if (view === undefined || layout === undefined) return []
  return waitedProxies(view, layout, rig.runtime.wallNow(), times).map(({ why }) => why)
}

test('leaving: a client of a proxy that stopped writes through another one: the change waits a moment, not for two minutes', async () => {
  const { rig } = await started()
  await stop(rig)
  const again = await rig.client(0, 'producer')
  await again.count()
  const sent = again.produce(0, ['x'], 'v')
  await rig.until(() => sent.result() !== undefined, 'it is acknowledged')
  const outcome = rig.expand(6)
  await rig.until(() => rig.topic()?.layouts.length === 2, 'the new layout is open')
  assert.equal(await again.count(), 6)
  await rig.settled(outcome)
  await rig.until(() => rig.topic()?.layouts[1]?.seal !== undefined, 'the change is sealed', 15_000)
  assert.deepEqual(rig.topic()?.layouts[1]?.seal?.gaveUp, [])
  await rig.stop()
})

test('leaving: a client that is seen nowhere is waited for as one that left, and named', async () => {
  const { rig } = await started()
  await stop(rig)
  const sealed = sealedAfterMs(rig)
  await rig.until(() => waited(rig).length > 0 && waited(rig)[0]?.includes('not seen') === true, 'it is named')
  assert.match(waited(rig)[0] ?? '', /its clients were not seen elsewhere yet: \S*producer$/)
  assert.ok((await sealed) > 100_000)
  assert.equal(rig.topic()?.layouts[1]?.seal?.gaveUp.length, 1)
  await rig.stop()
})

test('leaving: a proxy that nobody wrote through is not waited for', async () => {
  const rig = await LayoutsRig.start({ proxies: 2 })
  await stop(rig)
  assert.ok((await sealedAfterMs(rig)) < 2000)
  await rig.stop()
})

test('leaving: a batch that was unanswered when its connection was closed leaves nothing to vouch for', async () => {
  const { rig, client } = await started()
  rig.broker.cluster.controls.add(0, ({ clientId }) => (clientId === 'producer' ? { swallow: true } : undefined))
  client.produce(0, ['x'], 'v')
  await rig.pause(100)
  await stop(rig, 500)
  const sealed = sealedAfterMs(rig)
  await rig.until(() => waited(rig).length > 0, 'it is waited for')
  await rig.until(() => waited(rig)[0] === 'stopped with batches unanswered, before it voted', 'and it is said why')
  assert.ok((await sealed) > 100_000)
  await rig.stop()
})

test('leaving: it is news, not a warning', async () => {
  const { rig } = await started()
  await stop(rig)
  await rig.until(
    () => rig.proxies[0]?.log.lines.some(({ message }) => message === 'proxy left the fleet') === true,
    'news',
  )
  const warnings = rig.proxies.flatMap(({ log }) => log.lines.filter(({ level }) => level === 'warn'))
  assert.deepEqual(warnings, [])
  await rig.stop()
})
