/** The topics of the cluster: names, ids, partitions and who leads them. Pure state. */
import { PartitionLog } from './partition-log.ts'

export interface Partition {
  index: number
  /** Node id, or −1 while there is none. */
  leader: number
  log: PartitionLog
}

export interface Topic {
  name: string
  /** As Kafka's tools print it: base64url of 16 bytes. */
  id: string
  partitions: Partition[]
  configs: Map<string, string>
}

export class Topics {
  readonly #byName = new Map<string, Topic>()
  readonly #byId = new Map<string, Topic>()
  readonly #random: (below: number) => number

  constructor(random: (below: number) => number) {
    this.#random = random
  }

  get all(): Topic[] {
    return Array.from(this.#byName.values())
  }

  named(name: string): Topic | undefined {
    return this.#byName.get(name)
  }

  withId(id: string): Topic | undefined {
    return this.#byId.get(id)
  }

  partition(name: string, index: number): Partition | undefined {
    return this.#byName.get(name)?.partitions[index]
  }

  /** `leaders`: node ids that the partitions are dealt to in turn. */
  create(name: string, count: number, leaders: readonly number[]): Topic {
    const id = Buffer.from(Uint32Array.from({ length: 4 }, () => this.#random(2 ** 32)).buffer).toString('base64url')
    const topic: Topic = { name, id, partitions: [], configs: new Map() }
    this.#byName.set(name, topic)
    this.#byId.set(id, topic)
    this.grow(topic, count, leaders)
    return topic
  }

  grow(topic: Topic, count: number, leaders: readonly number[]): void {
    for (let index = topic.partitions.length; index < count; index++) {
      topic.partitions.push({ index, leader: leaders[index % leaders.length] ?? -1, log: new PartitionLog() })
    }
  }

  delete(topic: Topic): void {
    this.#byName.delete(topic.name)
    this.#byId.delete(topic.id)
  }
}
