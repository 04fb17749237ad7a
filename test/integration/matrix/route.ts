/** One way to the broker (direct, proxied) as the scenarios see it: a client program, an address and names of its own. */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientEvent, ClientProgram, Command, Run } from '../client.ts'
import type { Abilities } from './families.ts'
import { acknowledgedOf, isEvent } from './observe.ts'

/** An address of the cluster. */
export interface Way {
  readonly name: 'direct' | 'proxied'
  readonly bootstrap: string
  readonly addressOf: (nodeId: number) => string
}

export class Route {
  readonly name: Way['name']
  readonly abilities: Abilities
  readonly bootstrap: string
  readonly #client: ClientProgram
  readonly #prefix: string
  readonly #addressOf: (nodeId: number) => string

  constructor(client: ClientProgram, abilities: Abilities, prefix: string, { name, bootstrap, addressOf }: Way) {
    this.name = name
    this.bootstrap = bootstrap
    this.abilities = abilities
    this.#client = client
    this.#prefix = `${prefix}.${name}`
    this.#addressOf = addressOf
  }

  /** Where clients on this route must be told that the broker is. */
  addressOf(nodeId: number): string {
    return this.#addressOf(nodeId)
  }

  /** A topic, group or transactional id that no other test uses. */
  own(name: string): string {
    return `${this.#prefix}.${name}`
  }

  /** The name without what makes it this route's own. */
  plain(text: string): string {
    return text.replaceAll(`${this.#prefix}.`, '')
  }

  start(command: Omit<Command, 'bootstrap'> & Pick<Command, 'cmd'>): Run {
    return this.#client.start({ bootstrap: this.bootstrap, ...command })
  }

  run(command: Omit<Command, 'bootstrap'> & Pick<Command, 'cmd'>): Promise<readonly ClientEvent[]> {
    return this.start(command).ended()
  }

  /**
   * Creates a topic and waits until the leaders serve it. Else the first batch of an idempotent producer may be refused
   * and a later one taken: a broker that knows nothing of a producer accepts any sequence, and the first never gets in.
   */
  async createTopic(topic: string, partitions: number): Promise<void> {
    const created = await this.admin('createTopic', { topic, partitions })
    if (created.at(-1)?.ok !== true) throw new Error(`could not create ${topic}: ${JSON.stringify(created)}`)
    for (let attempt = 0; ; attempt++) {
      const answer = await this.admin('endOffsets', { topic })
      const offsets = answer.find(isEvent('result'))?.result
      if (Array.isArray(offsets) && offsets.length === partitions) return
      if (attempt === 600) throw new Error(`${topic} is not served: ${JSON.stringify(answer)}`)
      await delay(50)
    }
  }

  /** Produces and gives the acknowledged records. */
  async produce(topic: string, fields: Record<string, unknown>): Promise<ClientEvent[]> {
    return acknowledgedOf(await this.run({ cmd: 'produce', topic, ...fields }))
  }

  /** Consumes `count` records of a topic in a group and gives what was delivered. */
  async consume(
    topic: string,
    fields: { group: string; count: number; [field: string]: unknown },
  ): Promise<ClientEvent[]> {
    const events = await this.run({ cmd: 'consume', topics: [topic], ...fields })
    return events.filter(isEvent('delivered'))
  }

  admin(op: string, fields: Record<string, unknown> = {}): Promise<readonly ClientEvent[]> {
    return this.run({ cmd: 'admin', op, ...fields })
  }
}
