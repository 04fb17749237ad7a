/** What a rule is: a name, and a judge that sees the run's events in the order of time and reports violations. */
import type { HistoryEvent } from './history.ts'
import type { Entry, Index } from './run-index.ts'

export interface Violation {
  rule: string
  message: string
  /** The events that prove it, in the order of time. */
  events: HistoryEvent[]
}

export type Report = (message: string, ...events: (HistoryEvent | undefined)[]) => void

export interface Judge {
  see(entry: Entry): void
  /** After the last event. */
  end?(): void
}

export interface Rule {
  readonly name: string
  /** What holds if nothing is reported, in one sentence. */
  readonly about: string
  judge(index: Index, report: Report): Judge
}

/** A two-level map keyed by integers, created as it is asked for. */
export class Grid<T> {
  readonly #rows = new Map<number, Map<number, T>>()
  readonly #make: () => T

  constructor(make: () => T) {
    this.#make = make
  }

  at(row: number, column: number): T {
    let columns = this.#rows.get(row)
    if (columns === undefined) this.#rows.set(row, (columns = new Map<number, T>()))
    let cell = columns.get(column)
    if (cell === undefined) columns.set(column, (cell = this.#make()))
    return cell
  }

  peek(row: number, column: number): T | undefined {
    return this.#rows.get(row)?.get(column)
  }

  set(row: number, column: number, cell: T): void {
    let columns = this.#rows.get(row)
    if (columns === undefined) this.#rows.set(row, (columns = new Map<number, T>()))
    columns.set(column, cell)
  }

  row(row: number): ReadonlyMap<number, T> {
    return this.#rows.get(row) ?? new Map<number, T>()
  }
}
