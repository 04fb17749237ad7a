/**
 * Which members the group has given up, by partition. A broker gives a member up by itself (its heartbeats stopped), and
 * the member may not know for a while: what it still hands out of its buffers then is nobody's delivery, with any broker
 * and any client, and only its commits can be refused.
 */
import { assignedPartitions, type Entry, type Index } from './run-index.ts'
import { Grid } from './rule.ts'

export class GivenUp {
  readonly #index: Index
  /** By (member, partition). */
  readonly #lost = new Grid(() => false)

  constructor(index: Index) {
    this.#index = index
  }

  see({ event, client }: Entry): void {
    if (event.event !== 'assigned' && event.event !== 'revoked' && event.event !== 'lost') return
    for (const partition of assignedPartitions(this.#index, event)) {
      this.#lost.set(client, partition, event.event === 'lost')
    }
  }

  /** Whether the member holds the partition no longer, whether or not it knows. */
  has({ client, partition }: Entry): boolean {
    return this.#lost.peek(client, partition) === true
  }
}
