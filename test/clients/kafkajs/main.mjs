/** Client program for kafkajs. See ../README.md. */
import kafkajs from 'kafkajs'
import { delay, deliveredFields, emitAcknowledged, errorFields, sendAll, serve } from '../js/program.mjs'

const { CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = kafkajs
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }

function kafka({ bootstrap, clientId = 'matrix-kafkajs' }) {
  return new Kafka({
    brokers: bootstrap.split(','),
    clientId,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, retries: 8 },
  })
}

function metadataAge({ metadataMs }) {
  return metadataMs === undefined ? {} : { metadataMaxAge: metadataMs }
}

async function produce(command, emit) {
  const { topic, codec = 'none', acks = -1, idempotent = false, transactionalId } = command
  const producer = kafka(command).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: idempotent || transactionalId !== undefined,
    ...metadataAge(command),
    ...(transactionalId === undefined ? {} : { transactionalId, maxInFlightRequests: 1 }),
  })
  await producer.connect()
  const send = async (via, batch, transaction) => {
    const messages = batch.map(({ key, value, partition, headers, timestamp }) => ({
      key,
      value,
      ...(partition === undefined ? {} : { partition }),
      headers: Object.fromEntries(headers),
      ...(timestamp === undefined ? {} : { timestamp: String(timestamp) }),
    }))
    const answers = await via.send({ topic, messages, acks, compression: codecs[codec] })
    const starts = answers.map((one) => [one.partition, Number(one.baseOffset)])
    emitAcknowledged(command, emit, batch, starts, transaction)
  }
  try {
    await sendAll(command, emit, { producer, begin: () => producer.transaction(), send })
  } finally {
    await producer.disconnect()
  }
}

async function consume(command, emit) {
  const { topics, group, member = command.id, count = 0, commit = 'none', workMs = 0, sessionMs = 10_000 } = command
  const consumer = kafka(command).consumer({
    groupId: group,
    sessionTimeout: sessionMs,
    heartbeatInterval: Math.min(1000, sessionMs / 3),
    readUncommitted: command.isolation !== 'read_committed',
    maxWaitTimeInMs: 500,
    ...metadataAge(command),
  })
  const finished = new Promise((resolve) => (command.onStop = resolve))
  const position = new Map()
  let held = []
  let rebalances = 0
  const commitAll = async () => {
    const offsets = [...position.values()]
    position.clear()
    if (offsets.length === 0) return
    await consumer.commitOffsets(offsets.map((one) => ({ ...one, offset: String(one.offset) })))
    for (const one of offsets) emit('committed', { member, group, ...one })
  }
  // The client shows where it stands with each batch only.
  const last = new Map()
  const tell = () => {
    for (const [topic, partition] of held) {
      const [end = -1, lag = -1] = last.get(`${topic}-${partition}`) ?? []
      emit('position', { member, group, topic, partition, position: -1, end, lag })
    }
  }
  const teller = command.positionsMs > 0 ? setInterval(tell, command.positionsMs) : undefined
  const partitions = (assignment) =>
    Object.entries(assignment).flatMap(([topic, list]) => list.map((partition) => [topic, partition]))
  // What was not committed before it joins again is delivered again, here or to another member. Joining may also come
  // beside a batch, or end one by an error.
  const moved = () => {
    rebalances++
    position.clear()
  }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    moved()
    if (held.length > 0) emit('revoked', { member, group, partitions: held })
    held = partitions(payload.memberAssignment)
    emit('assigned', { member, group, partitions: held })
  })
  consumer.on(consumer.events.REBALANCING, () => {
    moved()
    emit('revoked', { member, group, partitions: held })
    held = []
  })
  consumer.on(consumer.events.CRASH, ({ payload }) => emit('error', errorFields(payload.error)))
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  let seen = 0
  await consumer.run({
    autoCommit: commit === 'auto',
    autoCommitInterval: 1000,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
      // kafkajs rebalances beside it: what is committed after that goes under the new generation, behind what that began with.
      const before = rebalances
      last.set(`${batch.topic}-${batch.partition}`, [Number(batch.highWatermark), Number(batch.offsetLag())])
      for (const message of batch.messages) {
        if (!isRunning() || isStale() || command.stopped) return
        const headers = Object.entries(message.headers ?? {})
        const fields = deliveredFields({ topic: batch.topic, partition: batch.partition, ...message, headers })
        emit('delivered', { member, group, ...fields })
        if (workMs > 0) await delay(workMs)
        if (rebalances !== before) return position.clear()
        const { topic, partition, offset } = fields
        emit('done', { member, group, topic, partition, offset })
        position.set(`${topic}-${partition}`, { topic, partition, offset: offset + 1 })
        resolveOffset(message.offset)
        if (commit === 'record') await commitAll()
        if (++seen === count) return command.onStop((command.stopped = true))
        if (workMs > 0) await heartbeat()
      }
      if (rebalances !== before) return position.clear()
      if (commit === 'batch') await commitAll()
      await heartbeat()
    },
  })
  await finished
  clearInterval(teller)
  try {
    if (commit === 'end' || commit === 'batch') await commitAll()
  } finally {
    await consumer.disconnect()
    emit('revoked', { member, group, partitions: held })
  }
}

const operations = {
  createTopic: (admin, { topic, partitions }) =>
    admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: false }),
  deleteTopic: (admin, { topic }) => admin.deleteTopics({ topics: [topic] }),
  addPartitions: (admin, { topic, partitions }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] }),
  describeTopic: async (admin, { topic }) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics.map(({ name, partitions }) => ({ name, partitions: partitions.map((one) => one.partitionId).sort() }))
  },
  listTopics: async (admin) => (await admin.listTopics()).sort(),
  describeConfigs: async (admin, { topic }) => {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const { resources: answers } = await admin.describeConfigs({ resources, includeSynonyms: false })
    return answers[0].configEntries.map(({ configName, configValue }) => [configName, configValue]).sort()
  },
  alterConfigs: (admin, { topic, configs }) => {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    return admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }] })
  },
  describeCluster: async (admin) => {
    const { brokers, clusterId } = await admin.describeCluster()
    return { brokers, clusterId }
  },
  listGroups: async (admin) => (await admin.listGroups()).groups.map((one) => one.groupId).sort(),
  describeGroup: async (admin, { group }) => {
    const { groups } = await admin.describeGroups([group])
    return groups.map(({ errorCode, groupId, state, members }) => [groupId, errorCode, state, members.length])
  },
  deleteGroup: (admin, { group }) => admin.deleteGroups([group]),
  groupOffsets: async (admin, { group, topic }) => {
    const [answer] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    return answer.partitions.map(({ partition, offset }) => [partition, Number(offset)]).sort((a, b) => a[0] - b[0])
  },
  endOffsets: async (admin, { topic }) => {
    const answer = await admin.fetchTopicOffsets(topic)
    return answer.map(({ partition, high }) => [partition, Number(high)]).sort((a, b) => a[0] - b[0])
  },
}

async function admin(command, emit) {
  const client = kafka(command).admin({ retry: { retries: 2 } })
  await client.connect()
  try {
    const result = await operations[command.op](client, command)
    emit('result', { op: command.op, result: result ?? null })
  } finally {
    await client.disconnect()
  }
}

await serve({ produce, consume, admin })
