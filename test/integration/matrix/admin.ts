/** The scenario of admin calls, good ones and ones that brokers refuse. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Route } from './route.ts'

/** Calls in order; what each answers, with the route's own names and addresses taken out. */
export async function adminCalls(route: Route): Promise<unknown> {
  const topic = route.own('admin')
  const group = route.own('admin')
  const calls: [op: string, fields: Record<string, unknown>][] = [
    ['createTopic', { topic, partitions: 3 }],
    ['createTopic', { topic, partitions: 3 }],
    ['createTopic', { topic: route.own('none at all'), partitions: 1 }],
    ['describeTopic', { topic }],
    ['addPartitions', { topic, partitions: 5 }],
    ['addPartitions', { topic, partitions: 2 }],
    ['describeTopic', { topic }],
    ['alterConfigs', { topic, configs: { 'retention.ms': '86400000' } }],
    ['alterConfigs', { topic, configs: { 'retention.ms': 'for ever' } }],
    ['describeConfigs', { topic }],
    ['listTopics', {}],
    ['describeCluster', {}],
    ['endOffsets', { topic }],
    ['listGroups', {}],
    ['describeGroup', { group }],
    ['groupOffsets', { group, topic }],
    ['deleteGroup', { group }],
    ['deleteTopic', { topic }],
    ['deleteTopic', { topic: route.own('unknown') }],
    ['describeTopic', { topic: route.own('unknown') }],
  ]
  const answers = []
  for (const [op, fields] of calls) {
    if (route.abilities.lacks?.includes(op) === true) continue
    if (op === 'listGroups') await useGroup(route, topic, group)
    answers.push([op, await settled(route, op, fields, answers.length)])
  }
  const [first, again] = answers.filter(([op]) => op === 'createTopic')
  assert.notDeepEqual(first, again, 'creating a topic twice must be refused')
  return answers
}

/** Brokers show a change a moment after they have acknowledged it: these two are asked until they show it. */
async function settled(route: Route, op: string, fields: Record<string, unknown>, step: number): Promise<unknown> {
  const shows =
    op === 'describeConfigs' ? '86400000' : op === 'describeTopic' ? (step > 4 ? '[0,1,2,3,4]' : '[0,1,2]') : ''
  for (let attempt = 0; ; attempt++) {
    const seen = await answer(route, op, fields)
    if (fields['topic'] !== route.own('admin') || attempt === 600 || JSON.stringify(seen).includes(shows)) return seen
    await delay(50)
  }
}

/** A group needs a committed offset to exist. */
async function useGroup(route: Route, topic: string, group: string): Promise<void> {
  await route.produce(topic, { count: 5, partitions: 5 })
  await route.consume(topic, { group, count: 5, commit: 'end' })
}

async function answer(route: Route, op: string, fields: Record<string, unknown>): Promise<unknown> {
  const events = await route.admin(op, fields)
  const { event, code, result } = events[0] ?? {}
  if (event === 'error') return { code }
  if (op === 'describeCluster') return cluster(route, result)
  // Other tests share the broker: of lists only what is ours.
  if (op === 'listTopics' || op === 'listGroups') {
    const mine = (result as string[]).filter((name) => route.plain(name) === 'admin')
    return mine.map((name) => route.plain(name))
  }
  return JSON.parse(route.plain(JSON.stringify(result)))
}

/** Brokers must be told at the route's own address; what is left is compared. */
function cluster(route: Route, result: unknown): unknown {
  const { brokers, clusterId } = result as {
    brokers: { nodeId: number; host: string; port: number }[]
    clusterId?: string
  }
  for (const { nodeId, host, port } of brokers) {
    assert.equal(`${host}:${port}`, route.addressOf(nodeId), `address of node ${nodeId}`)
  }
  return { clusterId, nodeIds: brokers.map(({ nodeId }) => nodeId) }
}
