/**
 * Client instances as the guards know them: a name that means the same on every proxy, its open connections, what it was
 * shown of each topic and where it writes. Instances come with the first Metadata or Produce that matters here, and are
 * forgotten with their last connection (the guards remember what they need of those that wrote).
 */
import type { ProduceLane } from '../../../editors/produce/lane.ts'
import type { Connection } from '../../../pipeline/connection.ts'

/** What is known of one instance and one topic. */
export interface Acquaintance {
  /** Epochs that it was shown. */
  shown: readonly number[]
  /** How many partitions its last Metadata answer had; 0: none went out here. */
  count: number
  /** It asked for the topic by name. */
  isNamed: boolean
  wrote: boolean
  /** The topic's guard knows it. */
  isJoined: boolean
  /** Connections that it writes to the topic on. */
  lanes: ReadonlySet<ProduceLane>
}

export class Writer {
  readonly name: string
  readonly connections = new Set<Connection>()
  /** By topic id. */
  readonly topics = new Map<string, Acquaintance>()
  isProducer = false
  /** Port (listener and node) → open connections to it. */
  private readonly ports = new Map<string, number>()
  private crowded = 0

  constructor(name: string) {
    this.name = name
  }

  /**
   * It has two connections to one broker, so it may be several clients that go by one name: what one of them was shown
   * says nothing of the others.
   */
  get isShared(): boolean {
    return this.crowded > 0
  }

  opened(connection: Connection): void {
    this.connections.add(connection)
    const count = (this.ports.get(portOf(connection)) ?? 0) + 1
    this.ports.set(portOf(connection), count)
    if (count === 2) this.crowded++
  }

  closed(connection: Connection): void {
    if (!this.connections.delete(connection)) return
    const count = (this.ports.get(portOf(connection)) ?? 1) - 1
    if (count === 1) this.crowded--
    if (count === 0) this.ports.delete(portOf(connection))
    else this.ports.set(portOf(connection), count)
  }

  topic(topicId: string): Acquaintance {
    let known = this.topics.get(topicId)
    if (known === undefined) {
      known = { shown: noEpochs, count: 0, isNamed: false, wrote: false, isJoined: false, lanes: noLanes }
      this.topics.set(topicId, known)
    }
    return known
  }

  /** Its ApiVersions name; empty where the client does not say. */
  get software(): string {
    for (const { instance } of this.connections) if (instance !== undefined) return instance.softwareName
    return ''
  }
}

export class Writers {
  private readonly nameOf: (connection: Connection) => string
  private readonly byName = new Map<string, Writer>()
  private readonly byConnection = new Map<Connection, Writer>()

  /** @param nameOf the same for all connections of an instance, on every proxy that it may reach */
  constructor(nameOf: (connection: Connection) => string) {
    this.nameOf = nameOf
  }

  of(connection: Connection): Writer {
    const known = this.byConnection.get(connection)
    if (known !== undefined) return known
    const name = this.nameOf(connection)
    let writer = this.byName.get(name)
    if (writer === undefined) this.byName.set(name, (writer = new Writer(name)))
    if (connection.closed === undefined) {
      writer.opened(connection)
      this.byConnection.set(connection, writer)
    }
    return writer
  }

  all(): Iterable<Writer> {
    return this.byName.values()
  }

  named(name: string): Writer | undefined {
    return this.byName.get(name)
  }

  /** @returns the instance that the connection belonged to, if it is known */
  closed(connection: Connection): Writer | undefined {
    const writer = this.byConnection.get(connection)
    if (writer === undefined) return undefined
    this.byConnection.delete(connection)
    writer.closed(connection)
    if (writer.connections.size === 0) this.byName.delete(writer.name)
    return writer
  }
}

function portOf({ listener, nodeId }: Connection): string {
  return `${listener}/${nodeId}`
}

const noEpochs: readonly number[] = []
const noLanes: ReadonlySet<ProduceLane> = new Set()
