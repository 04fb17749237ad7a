/** The broker of a test run: the one that `$KAFKA_BOOTSTRAP` names (npm test starts it once), else one of our own. */
import { type KafkaCluster, startKafka } from '../../scripts/kafka/cluster.ts'

export interface SharedKafka {
  readonly bootstrap: string
  /** Ends the broker if it is our own. */
  stop(): Promise<void>
}

/** One Kafka node that the whole run may share: tests use topics and groups of their own. */
export async function sharedKafka(): Promise<SharedKafka> {
  const bootstrap = process.env['KAFKA_BOOTSTRAP']
  if (bootstrap !== undefined) return { bootstrap, stop: async () => {} }
  const cluster: KafkaCluster = await startKafka()
  return { bootstrap: cluster.bootstrap, stop: () => cluster.stop() }
}
