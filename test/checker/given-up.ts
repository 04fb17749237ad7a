/**
 * Which members the group has given up, by partition. A broker gives a member up by itself (its heartbeats stopped), and
 * the member may not know for a while: what it still hands out of its buffers then is nobody's delivery, with any broker
 * and any client, and only its commits can be refused. Nor is an assignment its own that it reads late: one of the
 * generation in which it was given up, or of an earlier one.
 */
import { assignedPartitions, type Entry, type Index } from './run-index.ts'
import { Grid } from './rule.ts'

export class GivenUp {
  readonly #index: Index
  /** By (member, partition). */
  readonly #lost = new Grid(() => ({ isLost: false, generation: -1 }))

  constructor(index: Index) {
    this.#index = index
  }

  see({ event, client }: Entry): void {
    if (event.event !== 'assigned' && event.event !== 'lost') return
    for (const partition of assignedPartitions(this.#index, event)) {
      const state = this.#lost.at(client, partition)
      if (event.event === 'lost') Object.assign(state, { isLost: true, generation: event.generation ?? -1 })
      else if (isNewer(event.generation, state.generation)) state.isLost = false
    }
  }

  /** Whether the member holds the partition no longer, whether or not it knows. */
  has({ client, partition }: Entry): boolean {
    return this.#lost.peek(client, partition)?.isLost === true
  }
}

/** An assignment without a generation is taken for a new one. */
function isNewer(generation: number | undefined, lostIn: number): boolean {
  return generation === undefined || generation > lostIn
}
