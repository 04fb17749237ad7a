/** The configuration of one Kafka node (KRaft, broker and controller in one), small and quick for tests. */

export interface NodeAddress {
  readonly id: number
  readonly port: number
  readonly controllerPort: number
}

/** One more port that the broker listens on, with the port that it tells clients who came that way. */
export interface ExtraListener {
  readonly port: number
  readonly advertisedPort: number
}

export interface NodeSettings {
  readonly id: number
  /** All nodes of the cluster: each is a voter. */
  readonly nodes: readonly NodeAddress[]
  readonly dataFolder: string
  readonly listeners?: readonly ExtraListener[]
  readonly overrides: Readonly<Record<string, string>>
}

/** `server.properties` of a node; `overrides` win. */
export function nodeProperties({ id, nodes, dataFolder, listeners = [], overrides }: NodeSettings): string {
  const self = nodes.find((node) => node.id === id)
  if (self === undefined) throw new Error(`node ${id} is not in the cluster`)
  const replicas = String(Math.min(3, nodes.length))
  const inSync = nodes.length >= 3 ? '2' : '1'
  const extra = listeners.map(({ port, advertisedPort }, index) => ({ name: `EXTRA${index}`, port, advertisedPort }))
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': String(id),
    'controller.quorum.voters': nodes.map((node) => `${node.id}@127.0.0.1:${node.controllerPort}`).join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: [
      `PLAINTEXT://127.0.0.1:${self.port}`,
      `CONTROLLER://127.0.0.1:${self.controllerPort}`,
      ...extra.map(({ name, port }) => `${name}://127.0.0.1:${port}`),
    ].join(','),
    'advertised.listeners': [
      `PLAINTEXT://127.0.0.1:${self.port}`,
      ...extra.map(({ name, advertisedPort }) => `${name}://127.0.0.1:${advertisedPort}`),
    ].join(','),
    'listener.security.protocol.map': ['PLAINTEXT', 'CONTROLLER', ...extra.map(({ name }) => name)]
      .map((name) => `${name}:PLAINTEXT`)
      .join(','),
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': dataFolder,
    'auto.create.topics.enable': 'false',
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'offsets.topic.num.partitions': '4',
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.num.partitions': '4',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.num.partitions': '2',
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    // A killed node may register again only when its session has run out.
    'broker.session.timeout.ms': '6000',
    'broker.heartbeat.interval.ms': '1000',
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '1000',
    'group.consumer.min.session.timeout.ms': '1000',
    'group.consumer.heartbeat.interval.ms': '1000',
    'group.consumer.min.heartbeat.interval.ms': '200',
    'group.share.min.heartbeat.interval.ms': '200',
    'group.share.heartbeat.interval.ms': '1000',
    // Tests write records with timestamps of years ago, which the first retention pass (30 s after the start) would delete.
    'log.retention.ms': '-1',
    // The cleaner allocates its whole map at start: 128 MiB by default.
    'log.cleaner.dedupe.buffer.size': String(8 << 20),
    'log.index.size.max.bytes': String(1 << 20),
    'num.network.threads': '2',
    'num.io.threads': '4',
    'background.threads': '2',
    ...overrides,
  }
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}
