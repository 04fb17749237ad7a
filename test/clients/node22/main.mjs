/** Client program for @platformatic/kafka. See ../README.md. */
import { Admin, Consumer, Producer, stringSerializers } from '@platformatic/kafka'
import { delay, deliveredFields, emitAcknowledged, errorFields, sendAll, serve } from '../js/program.mjs'

const topicResource = 2
/** How long commits may fail before a member gives up: longer than a broker needs to come back. */
const patienceMs = 60_000
/** With these a commit fails that may go well later: the coordinator moves, the group rebalances, the connection broke. */
const passing = new Set([7, 14, 15, 16, 22, 25, 27, 'PLT_KFK_NETWORK', 'PLT_KFK_MULTIPLE'])

function passes(error) {
  return passing.has(errorFields(error).code)
}

function settings({ bootstrap, clientId = 'matrix-platformatic' }) {
  return { bootstrapBrokers: bootstrap.split(','), clientId, retryDelay: 200 }
}

async function produce(command, emit) {
  const { topic, codec = 'none', acks = -1, idempotent = false, transactionalId } = command
  const producer = new Producer({
    ...settings(command),
    idempotent: idempotent || transactionalId !== undefined,
    ...(transactionalId === undefined ? {} : { transactionalId }),
    serializers: { key: stringSerializers.key, headerKey: stringSerializers.headerKey },
    autocreateTopics: false,
    metadataMaxAge: command.metadataMs ?? 5000,
  })
  const send = async (via, batch, transaction) => {
    const messages = batch.map(({ key, value, partition, headers, timestamp }) => ({
      topic,
      ...(key === null ? {} : { key }),
      value,
      ...(partition === undefined ? {} : { partition }),
      headers: new Map(headers),
      ...(timestamp === undefined ? {} : { timestamp: BigInt(timestamp) }),
    }))
    const options = idempotent || transaction !== undefined ? {} : { acks }
    const { offsets = [] } = await via.send({ messages, compression: codec, ...options })
    const starts = offsets.map((one) => [one.partition, Number(one.offset)])
    emitAcknowledged(command, emit, batch, starts, transaction)
  }
  try {
    await sendAll(command, emit, { producer, begin: () => producer.beginTransaction(), send })
  } finally {
    await producer.close()
  }
}

async function consume(command, emit) {
  const { topics, group, member = command.id, count = 0, commit = 'none', workMs = 0, sessionMs = 10_000 } = command
  const classic = { sessionTimeout: sessionMs, heartbeatInterval: 1000, rebalanceTimeout: 20_000 }
  const consumer = new Consumer({
    ...settings(command),
    groupId: group,
    ...(command.protocol === 'consumer' ? { groupProtocol: 'consumer' } : classic),
    ...(command.instanceId === undefined ? {} : { groupInstanceId: command.instanceId }),
    autocommit: commit === 'auto' ? 1000 : false,
    isolationLevel: command.isolation === 'read_committed' ? 1 : 0,
    maxWaitTime: 500,
    ...(command.metadataMs === undefined ? {} : { metadataMaxAge: command.metadataMs }),
    // A fetch that is larger than this is answered with its first batch only.
    maxBytes: 8 << 20,
    highWaterMark: 1024,
  })
  const position = new Map()
  let held = []
  let revocations = 0
  let failingSince
  const commitAll = async (isLast = false) => {
    const offsets = [...position]
    const before = revocations
    position.clear()
    if (offsets.length === 0) return
    try {
      const rows = offsets.map(([, one]) => ({ ...one, offset: BigInt(one.offset), leaderEpoch: -1 }))
      await consumer.commit({ offsets: rows })
    } catch (error) {
      // It may go well later: the offsets go out with the next commit, if the partitions are still this member's.
      failingSince ??= Date.now()
      if (isLast || !passes(error) || Date.now() - failingSince > patienceMs) throw error
      emit('error', errorFields(error))
      if (revocations === before) for (const [place, one] of offsets) if (!position.has(place)) position.set(place, one)
      return
    }
    failingSince = undefined
    for (const [, one] of offsets) emit('committed', { member, group, ...one })
  }
  const revoke = () => {
    revocations++
    emit('revoked', { member, group, partitions: held })
    held = []
    position.clear()
  }
  const current = () =>
    (consumer.assignments ?? []).flatMap(({ topic, partitions }) => partitions.map((partition) => [topic, partition]))
  if (command.protocol === 'consumer') {
    // The new protocol has no event that names partitions: compare after each heartbeat.
    consumer.on('consumer:heartbeat:end', () => {
      const [before, after] = [new Set(held.map(String)), current()]
      const now = new Set(after.map(String))
      const gone = held.filter((one) => !now.has(String(one)))
      const come = after.filter((one) => !before.has(String(one)))
      held = after
      for (const [topic, partition] of gone) position.delete(`${topic}-${partition}`)
      if (gone.length > 0) {
        revocations++
        emit('revoked', { member, group, partitions: gone })
      }
      if (come.length > 0) emit('assigned', { member, group, partitions: come })
    })
  } else {
    consumer.on('consumer:group:join', () => {
      if (held.length > 0) revoke()
      held = current()
      emit('assigned', { member, group, partitions: held })
    })
    consumer.on('consumer:group:rebalance', revoke)
  }
  const stream = await consumer.consume({ topics, mode: 'committed', fallbackMode: 'earliest' })
  const tell = async () => {
    const lags = await consumer.getLag({ topics })
    for (const [topic, partition] of held) {
      const position = Number(stream.offsetsToFetch.get(`${topic}:${partition}`) ?? -1)
      const lag = Number(lags.get(topic)?.[partition] ?? -1)
      emit('position', { member, group, topic, partition, position, end: -1, lag })
    }
  }
  const told = (error) => emit('error', errorFields(error))
  const teller = command.positionsMs > 0 ? setInterval(() => tell().catch(told), command.positionsMs) : undefined
  command.onStop = () => stream.destroy()
  if (command.stopped) stream.destroy()
  let seen = 0
  try {
    for await (const message of stream) {
      if (command.stopped) break
      const { topic, partition, offset, key, value, timestamp } = message
      const headers = [...message.headers].map(([name, content]) => [name.toString(), content])
      const empty = key == null || key.length === 0 ? null : key
      emit('delivered', {
        member,
        group,
        ...deliveredFields({ topic, partition, offset, key: empty, value, headers, timestamp }),
      })
      if (workMs > 0) await delay(workMs)
      emit('done', { member, group, topic, partition, offset: Number(offset) })
      position.set(`${topic}-${partition}`, { topic, partition, offset: Number(offset) + 1 })
      seen++
      if (commit === 'record' || (commit === 'batch' && stream.readableLength === 0)) await commitAll()
      if (seen === count) break
    }
  } catch (error) {
    if (!command.stopped) throw error
  } finally {
    clearInterval(teller)
  }
  try {
    if (commit === 'end' || commit === 'batch') await commitAll(true)
  } finally {
    await consumer.close(true)
    revoke()
  }
}

const sorted = (pairs) => pairs.sort((a, b) => a[0] - b[0])

async function partitionsOf(admin, topic) {
  const metadata = await admin.metadata({ topics: [topic] })
  return [...metadata.topics.get(topic).partitions.keys()]
}

const operations = {
  createTopic: async (admin, { topic, partitions }) => void (await admin.createTopics({ topics: [topic], partitions })),
  deleteTopic: (admin, { topic }) => admin.deleteTopics({ topics: [topic] }),
  addPartitions: (admin, { topic, partitions }) =>
    admin.createPartitions({ topics: [{ name: topic, count: partitions, assignments: null }] }),
  describeTopic: async (admin, { topic }) => [{ name: topic, partitions: await partitionsOf(admin, topic) }],
  listTopics: async (admin) => (await admin.listTopics({ includeInternals: true })).sort(),
  describeConfigs: async (admin, { topic }) => {
    const resources = [{ resourceType: topicResource, resourceName: topic, configurationKeys: null }]
    const [answer] = await admin.describeConfigs({ resources })
    return answer.configs.map(({ name, value }) => [name, value]).sort()
  },
  alterConfigs: (admin, { topic, configs }) => {
    const changes = Object.entries(configs).map(([name, value]) => ({ name, value, configOperation: 0 }))
    const resources = [{ resourceType: topicResource, resourceName: topic, configs: changes }]
    return admin.incrementalAlterConfigs({ resources })
  },
  describeCluster: async (admin) => {
    const { id, brokers } = await admin.metadata({ topics: [] })
    return { clusterId: id, brokers: [...brokers].map(([nodeId, { host, port }]) => ({ nodeId, host, port })) }
  },
  listGroups: async (admin) => [...(await admin.listGroups()).keys()].sort(),
  describeGroup: async (admin, { group }) => {
    const groups = await admin.describeGroups({ groups: [group] })
    return [...groups.values()].map(({ id, state, members }) => [id, state, members.size])
  },
  deleteGroup: (admin, { group }) => admin.deleteGroups({ groups: [group] }),
  groupOffsets: async (admin, { group, topic }) => {
    const [answer] = await admin.listConsumerGroupOffsets({ groups: [group] })
    const mine = answer.topics.filter((one) => one.name === topic)
    return sorted(mine.flatMap((one) => one.partitions.map((p) => [p.partitionIndex, Number(p.committedOffset)])))
  },
  endOffsets: async (admin, { topic }) => {
    const partitions = (await partitionsOf(admin, topic)).map((partitionIndex) => ({ partitionIndex, timestamp: -1n }))
    const [answer] = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
    return sorted(answer.partitions.map((one) => [one.partitionIndex, Number(one.offset)]))
  },
}

async function admin(command, emit) {
  const client = new Admin({ ...settings(command), retries: 2 })
  try {
    const result = await operations[command.op](client, command)
    emit('result', { op: command.op, result: result ?? null })
  } finally {
    await client.close()
  }
}

process.on('uncaughtException', (error) => console.error('uncaught', errorFields(error), error.stack))
await serve({ produce, consume, admin })
