/**
 * The committed offsets of one group. A pure state machine. Rules as measured on Kafka 4.3.1: rows are plain facts with
 * no check of ownership or order, the last append wins, also over a transaction that ends later; a transaction's rows
 * are apart until it commits; a row expires by its own commit time while the group is active, by the time the group
 * became empty otherwise, and never while its topic is subscribed or a transaction is open on it.
 */

export interface OffsetRow {
  topic: string
  partition: number
  offset: number
  leaderEpoch: number
  metadata: string
  committedAtMs: number
}

interface StoredRow extends OffsetRow {
  /** Position in the log of offsets: decides between a plain commit and a transaction's. */
  order: number
}

export class GroupOffsets {
  readonly #rows = new Map<string, StoredRow>()
  readonly #pending = new Map<number, Map<string, StoredRow>>()
  #order = 0

  get size(): number {
    return this.#rows.size
  }

  get hasPending(): boolean {
    return this.#pending.size > 0
  }

  commit(row: OffsetRow): void {
    this.#rows.set(keyOf(row), { ...row, order: this.#order++ })
  }

  /** A row of an open transaction; applied by `end`. */
  commitPending(producerId: number, row: OffsetRow): void {
    let rows = this.#pending.get(producerId)
    if (rows === undefined) this.#pending.set(producerId, (rows = new Map<string, StoredRow>()))
    rows.set(keyOf(row), { ...row, order: this.#order++ })
  }

  /** Ends a producer's transaction: a row that was overwritten after it was appended stays as it is. */
  end(producerId: number, commit: boolean): void {
    const rows = this.#pending.get(producerId)
    this.#pending.delete(producerId)
    if (!commit || rows === undefined) return
    for (const [key, row] of rows) {
      if ((this.#rows.get(key)?.order ?? -1) < row.order) this.#rows.set(key, row)
    }
  }

  get(topic: string, partition: number): OffsetRow | undefined {
    return this.#rows.get(keyOf({ topic, partition }))
  }

  /** Whether a transaction has written this row and not ended: readers that require stable rows get 88. */
  isPending(topic: string, partition: number): boolean {
    const key = keyOf({ topic, partition })
    return Array.from(this.#pending.values()).some((rows) => rows.has(key))
  }

  /** Committed rows; a row that is only pending is not among them. */
  all(): OffsetRow[] {
    return Array.from(this.#rows.values())
  }

  delete(topic: string, partition: number): void {
    const key = keyOf({ topic, partition })
    this.#rows.delete(key)
    for (const rows of this.#pending.values()) rows.delete(key)
  }

  /** Removes what has outlived `retentionMs`. `emptySinceMs`: since when the group has no members, if it has none. */
  expire(nowMs: number, retentionMs: number, emptySinceMs: number | undefined, subscribed: ReadonlySet<string>): void {
    for (const [key, row] of this.#rows) {
      if (subscribed.has(row.topic) || this.isPending(row.topic, row.partition)) continue
      const since = Math.max(emptySinceMs ?? 0, emptySinceMs === undefined ? row.committedAtMs : 0)
      if (nowMs - since >= retentionMs) this.#rows.delete(key)
    }
  }
}

function keyOf(row: { topic: string; partition: number }): string {
  return `${row.topic}/${row.partition}`
}
