/**
 * Ids of topics that were deleted. Brokers learn of a deletion one after the other, and one that lags behind may still
 * name the old id: it must not come back on the word of one answer.
 */

/** A broker that is reachable has learned of a deletion long before. */
const STALE_MS = 30_000
/** So many answers in a row must name a deleted id until it is believed that the deletion was the mistake. */
const AGAIN_MIN = 3
/** Deleted ids that are remembered at least, and for how long all are. */
const KEPT_MAX = 10_000
const KEPT_MS = 3_600_000

export class DeletedTopics {
  private readonly ids = new Map<string, { readonly name: string; readonly atMs: number; again: number }>()

  has(topicId: string): boolean {
    return this.ids.has(topicId)
  }

  get size(): number {
    return this.ids.size
  }

  add(topicId: string, name: string, nowMs: number): void {
    this.ids.delete(topicId)
    this.ids.set(topicId, { name, atMs: nowMs, again: 0 })
    if (this.ids.size > KEPT_MAX) for (const oldest of this.ids.keys()) if (this.ids.delete(oldest)) break
  }

  /** An answer names this id. @returns whether to believe it */
  mayReturn(topicId: string, nowMs: number): boolean {
    const deleted = this.ids.get(topicId)
    if (deleted === undefined) return true
    deleted.again++
    if (deleted.again < AGAIN_MIN || nowMs - deleted.atMs < STALE_MS) return false
    this.ids.delete(topicId)
    return true
  }

  /** An answer names another id for this topic. */
  contradicted(name: string): void {
    for (const deleted of this.ids.values()) if (deleted.name === name) deleted.again = 0
  }

  /** Forgets what is old and not in the log any more. */
  prune(inLog: ReadonlySet<string>, nowMs: number): void {
    for (const [topicId, { atMs }] of this.ids)
      if (nowMs - atMs >= KEPT_MS && !inLog.has(topicId)) this.ids.delete(topicId)
  }
}
