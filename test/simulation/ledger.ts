/** Keeps account of what the groups still have to be given, so that a run knows when it has drained. */
import type { HistoryEvent } from '../checker/history.ts'

interface Owed {
  partition: number
  offset: number
  transaction: string | undefined
}

export class Ledger {
  readonly history: HistoryEvent[] = []
  readonly #owed = new Map<string, Owed>()
  readonly #delivered = new Set<string>()
  readonly #transactionOf = new Map<string, string>()
  readonly #trimmed = new Map<number, number>()

  record(event: HistoryEvent): void {
    this.history.push(event)
    switch (event.event) {
      case 'sent':
        if (event.transaction !== undefined)
          this.#transactionOf.set(nameOf(event), `${event.producer}/${event.transaction}`)
        break
      case 'acknowledged': {
        const name = nameOf(event)
        const { partition, offset } = event
        if (this.#delivered.has(name) || offset < (this.#trimmed.get(partition) ?? 0)) break
        this.#owed.set(name, { partition, offset, transaction: this.#transactionOf.get(name) })
        break
      }
      case 'delivered':
        this.#delivered.add(nameOf(event))
        this.#owed.delete(nameOf(event))
        break
      case 'transaction':
        if (event.outcome !== 'committed')
          this.#forgive((o) => o.transaction === `${event.producer}/${event.transaction}`)
        break
      case 'trimmed':
        this.#trimmed.set(event.partition, event.offset)
        this.#forgive((o) => o.partition === event.partition && o.offset < event.offset)
        break
      case 'truncated':
        this.#forgive((o) => o.partition === event.partition && o.offset >= event.offset)
        break
      default:
        break
    }
  }

  /** How many acknowledged records have not been given to anybody yet. */
  get open(): number {
    return this.#owed.size
  }

  #forgive(which: (owed: Owed) => boolean): void {
    for (const [name, owed] of this.#owed) if (which(owed)) this.#owed.delete(name)
  }
}

function nameOf({ producer, sequence }: { producer: string; sequence: number }): string {
  return `${producer}:${sequence}`
}
