/**
 * Headgate's own connections without a permission that they need, on a broker with a real authorizer: what is refused is
 * said with what is missing, nothing is half done, topics without layouts are served, and it goes on once it is allowed.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { canRunKafka } from '../../../scripts/kafka/artifacts.ts'
import { type KafkaCluster, startKafka } from '../../../scripts/kafka/cluster.ts'
import { freePorts } from '../../../scripts/kafka/ports.ts'
import type { ClusterClient } from '../../../src/cluster/cluster-client.ts'
import { configSchema } from '../../../src/config/schema.ts'
import type { ApiAnswer } from '../../../src/features/layouts/control/api.ts'
import { type RunningProxy, startProxy } from '../../../src/lifecycle/proxy.ts'
import { apiKeys } from '../../../src/protocol/api-table.ts'
import { codec } from '../../../src/protocol/codecs.ts'
import type { FetchResponse } from '../../../src/protocol/generated/01-fetch.ts'
import type { JoinGroupResponse } from '../../../src/protocol/generated/11-join-group.ts'
import type { ProduceResponse } from '../../../src/protocol/generated/00-produce.ts'
import { buildBatch } from '../../../src/records/build.ts'
import { nodeRuntime } from '../../../src/runtime/node-runtime.ts'
import { RawClient } from '../../support/raw-client.ts'
import { RecordingLog, RecordingMeters } from '../../support/telemetry.ts'
import { clientOf } from './client.ts'

const TOPIC = 'orders'
const GROUP = 'readers'
const patienceMs = 60_000

const resources = { topic: 2, group: 3, cluster: 4 } as const
const operations = { all: 2, create: 5, alter: 7, describe: 8 } as const
const permissions = { deny: 2, allow: 3 } as const
const LITERAL = 3
/** Who connects without authentication: the clients of this test, our own connections and the broker itself. */
const principal = 'User:ANONYMOUS'

type Resource = readonly [kind: keyof typeof resources, name: string]
const clusterItself: Resource = ['cluster', 'kafka-cluster']

let kafka: KafkaCluster
let direct: ClusterClient
let proxy: RunningProxy
let bootstrap = ''
const log = new RecordingLog()

/** Everything but this one operation is allowed on the resource. */
async function deny([kind, resourceName]: Resource, operation: keyof typeof operations): Promise<void> {
  const rule = { resourceType: resources[kind], resourceName, resourcePatternType: LITERAL, principal, host: '*' }
  // Where a resource has a rule, whatever no rule allows is refused.
  const creations = [
    { ...rule, operation: operations.all, permissionType: permissions.allow },
    { ...rule, operation: operations[operation], permissionType: permissions.deny },
  ]
  const { results } = await direct.ask({
    codec: codec(apiKeys.CreateAcls),
    timeoutMs: 10_000,
    build: () => ({ creations }),
  })
  assert.ok(
    results.every(({ errorCode }) => errorCode === 0),
    JSON.stringify(results),
  )
}

async function allow([kind, resourceNameFilter]: Resource): Promise<void> {
  const filter = { resourceTypeFilter: resources[kind], resourceNameFilter, patternTypeFilter: LITERAL }
  const denied = { principalFilter: null, hostFilter: null, operation: 1, permissionType: permissions.deny }
  await direct.ask({
    codec: codec(apiKeys.DeleteAcls),
    timeoutMs: 10_000,
    build: () => ({ filters: [{ ...filter, ...denied }] }),
  })
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = Date.now() + patienceMs; !(await holds()); await delay(50)) {
    const told = () => JSON.stringify([proxy.readiness(), log.lines.slice(-10)])
    assert.ok(Date.now() < untilMs, `not within ${patienceMs} ms: ${what}; ${told()}`)
  }
}

const warned = (pattern: RegExp): boolean =>
  log.lines.some(({ level, message }) => level === 'warn' && pattern.test(message))

async function idOf(topic: string): Promise<string> {
  const [found] = await direct.describeTopics([topic])
  return found?.topicId ?? ''
}

/** Writes a record by topic id. @returns the error code */
async function produce(client: RawClient, topicId: string, partition: number): Promise<number> {
  const records = buildBatch({ records: [{ key: Buffer.from('k'), value: Buffer.from('v') }] })
  const topicData = [{ topicId, partitionData: [{ index: partition, records }] }]
  const request = { transactionalId: null, acks: -1, timeoutMs: 10_000, topicData }
  const { responses } = (await client.call(apiKeys.Produce, 13, request, 'p')) as ProduceResponse
  return responses[0]?.partitionResponses[0]?.errorCode ?? -1
}

/** How many bytes a Fetch of the partition's beginning brings. */
async function fetch(client: RawClient, topicId: string, partition: number): Promise<number> {
  const wanted = { partition, fetchOffset: 0, currentLeaderEpoch: -1, lastFetchedEpoch: -1, logStartOffset: -1 }
  const limits = { replicaId: -1, maxWaitMs: 500, minBytes: 1, maxBytes: 1e6, isolationLevel: 0 }
  const session = { sessionId: 0, sessionEpoch: -1, forgottenTopicsData: [], rackId: '' }
  const topics = [{ topicId, partitions: [{ ...wanted, partitionMaxBytes: 1e6 }] }]
  const answer = (await client.call(apiKeys.Fetch, 13, { ...limits, ...session, topics }, 'c')) as FetchResponse
  return answer.responses[0]?.partitions[0]?.records?.length ?? 0
}

/** Subscription version 0 of one topic. */
function subscription(topic: string): Buffer {
  const bytes = Buffer.alloc(2 + 4 + 2 + topic.length + 4)
  bytes.writeInt32BE(1, 2)
  bytes.writeInt16BE(topic.length, 6)
  bytes.write(topic, 8)
  bytes.writeInt32BE(-1, 8 + topic.length)
  return bytes
}

/** A member that never asks for its group's commits, which its user may not read. */
async function join(client: RawClient): Promise<{ memberId: string; generationId: number }> {
  const protocols = [{ name: 'range', metadata: subscription(TOPIC) }]
  const timing = { sessionTimeoutMs: 30_000, rebalanceTimeoutMs: 30_000 }
  const asked = { groupId: GROUP, memberId: '', protocolType: 'consumer', protocols, ...timing }
  const { memberId, generationId, errorCode } = (await client.call(
    apiKeys.JoinGroup,
    3,
    asked,
    'c',
  )) as JoinGroupResponse
  assert.equal(errorCode, 0)
  const assignments = [{ memberId, assignment: Buffer.alloc(0) }]
  await client.call(apiKeys.SyncGroup, 2, { groupId: GROUP, generationId, memberId, assignments }, 'c')
  return { memberId, generationId }
}

function failureOf(answer: ApiAnswer | undefined): string {
  return answer === undefined || answer.ok ? JSON.stringify(answer) : `${answer.code} ${answer.message}`
}

function isSealed(): boolean {
  const feature = proxy.layoutParts?.feature
  return feature?.topics.find(TOPIC, '')?.view()?.topic.layouts[1]?.seal !== undefined
}

const expand = (to: number) => proxy.layouts?.change(TOPIC, 'expand', { to }) as Promise<ApiAnswer>

describe('our own connections without a permission', { skip: !canRunKafka() }, () => {
  before(async () => {
    const authorizer = 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
    kafka = await startKafka({
      overrides: { 'authorizer.class.name': authorizer, 'allow.everyone.if.no.acl.found': 'true' },
    })
    direct = await clientOf(kafka.bootstrap)
    for (const [name, numPartitions] of [
      [TOPIC, 3],
      ['plain', 1],
    ] as const)
      await direct.createTopic({ name, numPartitions, replicationFactor: 1 })
    await deny(clusterItself, 'create')
    await deny(['topic', '__headgate_state'], 'create')
    const [bootstrapPort = 0, basePort = 0] = await freePorts(6)
    bootstrap = `127.0.0.1:${bootstrapPort}`
    const config = configSchema.parse({
      upstream: { bootstrap: kafka.bootstrap },
      listeners: [{ name: 'l', nodeIds: '0-3', basePort, bootstrapPort }],
      topics: { [TOPIC]: { layouts: {} } },
    })
    proxy = await startProxy(config, { runtime: await nodeRuntime(), log, meters: new RecordingMeters() })
  })
  after(async () => {
    await proxy?.close()
    direct?.close()
    await kafka?.stop()
  })

  test('to create the state topic: plain topics are served, and it goes on once that is allowed', async () => {
    const missing =
      /CreateTopics of __headgate_state failed with \w+_AUTHORIZATION_FAILED.*: allow Create on this topic/
    await until('the problem shows', () => missing.test(proxy.readiness().reasons.join()))
    assert.equal(proxy.readiness().ready, true)
    const client = await RawClient.connect(bootstrap)
    const plainId = await idOf('plain')
    assert.equal(await produce(client, plainId, 0), 0)
    assert.ok((await fetch(client, plainId, 0)) > 0)
    assert.match(failureOf(await expand(6)), /^HG_STATE_UNAVAILABLE .*CreateTopics of __headgate_state failed/)
    client.close()
    assert.equal((await direct.describeTopics(['__headgate_state'])).length, 0)
    await allow(clusterItself)
    await allow(['topic', '__headgate_state'])
    await until('the proxy acts', () => proxy.layoutParts?.state.mayAct() === true)
  })

  test('to alter a topic: the change is refused, and nothing has changed', async () => {
    let client = await RawClient.connect(bootstrap)
    assert.equal(await produce(client, await idOf(TOPIC), 0), 0)
    await deny(['topic', TOPIC], 'alter')
    const missing =
      /^HG_CHANGE_ABORTED nothing was changed: CreatePartitions of topic orders to 6 failed with TOPIC_AUTHORIZATION_FAILED.*: allow Alter on this topic/
    assert.match(failureOf(await expand(6)), missing)
    assert.equal((await direct.describeTopics([TOPIC]))[0]?.partitions.length, 3)
    await allow(['topic', TOPIC])
    // The authorizer learns of it a moment later.
    await until('the topic grows', async () => (await expand(6)).ok)
    // As every producer does: it is told to ask for Metadata, by a refusal or the end of an idle connection, and goes on.
    const topicId = await idOf(TOPIC)
    const goOn = async (): Promise<boolean> => {
      if (client.ended) client = await RawClient.connect(bootstrap)
      await client.call(apiKeys.Metadata, 12, { topics: [{ name: TOPIC }] }, 'p')
      return (await produce(client, topicId, 3)) === 0
    }
    await until('the producer goes on', () =>
      goOn().catch((error: Error) => {
        if (client.ended) return false
        throw error
      }),
    )
    await until('the change is sealed', () => isSealed())
    client.close()
  })

  test('to describe a group: its gates stay shut, and open once that is allowed', async () => {
    await deny(['group', GROUP], 'describe')
    const client = await RawClient.connect(bootstrap)
    const member = await join(client)
    const topicId = await idOf(TOPIC)
    const missing = /^\w+ of group readers failed with GROUP_AUTHORIZATION_FAILED.*: allow Describe on this group/
    await until('the problem is told', async () => (await fetch(client, topicId, 3)) > 0 || warned(missing))
    assert.equal(await fetch(client, topicId, 3), 0)
    const rows = [{ name: TOPIC, partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }] }]
    const identity = { groupId: GROUP, memberId: member.memberId, generationIdOrMemberEpoch: member.generationId }
    await client.call(apiKeys.OffsetCommit, 2, { ...identity, retentionTimeMs: -1, topics: rows }, 'c')
    await allow(['group', GROUP])
    await until('the gate opens', async () => (await fetch(client, topicId, 3)) > 0)
    client.close()
  })
})
