/** Scenarios about consumer groups: joining, leaving, rebalancing, committing and resuming. */
import assert from 'node:assert/strict'
import type { ClientEvent, Run } from '../client.ts'
import { held, isEvent } from './observe.ts'
import type { Route } from './route.ts'

const partitions = 4

/** The group scenario with the client's default assignor, another one, or the new group protocol. */
export function groups(how: { assignor?: string; protocol?: string }): (route: Route) => Promise<unknown> {
  return (route) => rebalance(route, how)
}

/**
 * A reads alone; B joins, both share; B leaves, A has all again and stops; the committed offsets are the ends; C goes on
 * from there and sees nothing twice.
 */
async function rebalance(route: Route, how: { assignor?: string; protocol?: string }): Promise<unknown> {
  const name = how.assignor ?? how.protocol ?? 'default'
  const topic = route.own(`group-${name}`)
  const group = route.own(`group-${name}`)
  await route.createTopic(topic, partitions)
  const member = { cmd: 'consume' as const, topics: [topic], group, ...how }
  const produced: ClientEvent[] = []
  const produce = async (count: number) => {
    produced.push(...(await route.produce(topic, { count, start: produced.length, partitions, size: 40 })))
  }
  const ownedBy = (run: Run, wanted: (count: number) => boolean) => (): boolean => wanted(held(run.events).size)

  await produce(400)
  const a = route.start({ ...member, member: 'A', commit: 'batch' })
  await a.until('all partitions and records', (events) => held(events).size === partitions && distinct(events) === 400)
  const b = route.start({ ...member, member: 'B', commit: 'batch' })
  const share = (): boolean => {
    const [mine, yours] = [held(a.events), held(b.events)]
    return (
      mine.size > 0 &&
      yours.size > 0 &&
      new Set([...mine, ...yours]).size === partitions &&
      mine.size + yours.size === partitions
    )
  }
  await Promise.all([a.until('a share', share), b.until('a share', share)])
  const shares = [held(a.events).size, held(b.events).size].sort()
  await produce(400)
  const both = (): boolean => distinct([...a.events, ...b.events]) === 800
  await Promise.all([a.until('800 records', both), b.until('800 records', both)])
  await b.stop()
  await a.until(
    'all partitions again',
    ownedBy(a, (count) => count === partitions),
  )
  await produce(100)
  await a.until('900 records', () => distinct([...a.events, ...b.events]) === 900)
  await a.stop()
  const offsets = await route.admin('groupOffsets', { group, topic })
  await produce(40)
  const resumed = await route.consume(topic, { group, count: 40, commit: 'end', member: 'C', ...how })
  assert.deepEqual(
    resumed.map((event) => event.sequence).sort((x, y) => Number(x) - Number(y)),
    Array.from({ length: 40 }, (_, index) => 900 + index),
    'C must go on exactly where the group had committed',
  )
  const committed = offsets.find(isEvent('result'))?.result
  assert.deepEqual(
    committed,
    Array.from({ length: partitions }, (_, partition) => [partition, 225]),
  )
  return { shares, committed, resumed: resumed.length }
}

function distinct(events: readonly ClientEvent[]): number {
  const seen = new Set<string>()
  for (const { event, partition, offset } of events) if (event === 'delivered') seen.add(`${partition}-${offset}`)
  return seen.size
}
