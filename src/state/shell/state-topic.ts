/**
 * The topic of the state log: created where it is missing, and checked before it is used. Compaction alone may remove
 * records, and not before a reader that fell behind had an hour: any other setting would lose what was decided.
 * Nothing is ever changed about a topic that exists.
 */
import { ClusterError } from '../../cluster/cluster-error.ts'
import type { ClusterClient } from '../../cluster/cluster-client.ts'
import type { TopicDescription } from '../../cluster/cluster.ts'
import { pause } from '../../cluster/retried.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Log } from '../../telemetry/log.ts'
import { StateError } from '../errors.ts'

/** Shortest time that a record stays before compaction may remove it, in milliseconds. */
const compactionLagMs = 3_600_000
const replicasMax = 3
/** How often Metadata is asked for a topic that was just made. */
const appearsSteps = 20
const appearsStepMs = 100

const settings = [
  { name: 'cleanup.policy', value: 'compact' },
  { name: 'min.compaction.lag.ms', value: String(compactionLagMs) },
  // only closed segments are compacted: without these the log would grow to a gigabyte, or for a week, first
  { name: 'segment.ms', value: String(24 * 3_600_000) },
  { name: 'segment.bytes', value: String(16 * 1024 * 1024) },
]

/**
 * Makes sure that the topic exists and is fit for the state log.
 * @returns its topic id
 * @throws StateError HG_STATE_TOPIC where a setting is wrong, ClusterError where the cluster cannot be asked or refuses
 */
export async function prepareStateTopic(
  runtime: Runtime,
  cluster: ClusterClient,
  log: Log,
  name: string,
): Promise<string> {
  const [found] = await cluster.describeTopics([name])
  const topic = found ?? (await create(runtime, cluster, log, name))
  const names = [...settings.map((setting) => setting.name), 'min.insync.replicas']
  check(topic, await cluster.topicSettings(name, names))
  return topic.topicId
}

async function create(runtime: Runtime, cluster: ClusterClient, log: Log, name: string): Promise<TopicDescription> {
  const asked = { name, numPartitions: 1, configs: settings }
  try {
    await cluster.createTopic({ ...asked, replicationFactor: -1 })
    log.info({ topic: name }, 'state topic created')
  } catch (error) {
    const errorCode = error instanceof ClusterError ? error.errorCode : 0
    if (errorCode === errorCodes.INVALID_REPLICATION_FACTOR) {
      // brokers before 2.4 do not know "the cluster's default"
      const replicationFactor = Math.min(replicasMax, cluster.brokerCount)
      await cluster.createTopic({ ...asked, replicationFactor })
      log.info({ topic: name, replicationFactor }, 'state topic created')
    } else if (errorCode !== errorCodes.TOPIC_ALREADY_EXISTS) throw error
  }
  for (let step = 0; step < appearsSteps; step++) {
    const [topic] = await cluster.describeTopics([name])
    if (topic !== undefined) return topic
    await pause(runtime, appearsStepMs)
  }
  throw new StateError('HG_STATE_TOPIC', `the topic ${name} was created, but Metadata does not show it yet`)
}

function check({ name, partitions }: TopicDescription, found: ReadonlyMap<string, string>): void {
  if (partitions.length !== 1) {
    throw new StateError(
      'HG_STATE_TOPIC',
      `the topic ${name} has ${partitions.length} partitions and must have 1, since its order decides: finish changes of partition counts, then stop all proxies and delete it; they make it anew, and what was decided is lost`,
    )
  }
  const policy = found.get('cleanup.policy') ?? 'delete'
  if (policy !== 'compact') {
    throw wrongSetting(name, 'cleanup.policy', policy, 'compact', 'or what was decided gets lost')
  }
  const lag = found.get('min.compaction.lag.ms') ?? '0'
  if (Number(lag) < compactionLagMs) {
    throw wrongSetting(name, 'min.compaction.lag.ms', lag, String(compactionLagMs), 'or slow readers miss records')
  }
}

function wrongSetting(topic: string, setting: string, found: string, needed: string, why: string): StateError {
  return new StateError(
    'HG_STATE_TOPIC',
    `the topic ${topic} has ${setting}=${found} and must have ${needed}, ${why}: kafka-configs --alter --topic ${topic} --add-config ${setting}=${needed}`,
  )
}
