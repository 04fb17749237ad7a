/**
 * What is known of how far one group is with the partitions of one topic.
 *
 * Always what was read last, never the most that ever was: a group whose offsets were reset reads its parents again, and
 * the gates in front of the children have to shut again with it, or the replay is out of order. A gate that shuts late by
 * that costs nothing but what the reset itself costs.
 *
 * "Done up to an end" (design-layouts §5): the group committed that far, or a consumer would be given nothing more below
 * it. The latter is looked for only where the committed offset stands still, and holds for exactly that offset.
 */
import type { Done } from '../gate.ts'

/** What was found above a committed offset that did not move. */
export interface Look {
  /** The committed offset that it was looked from; undefined: the group has none. */
  readonly committed: number | undefined
  /** How far it was looked. */
  readonly until: number
  /** The first record below `until` that a consumer would be given; Infinity: there is none. */
  readonly first: number
  readonly atMs: number
}

interface Commit {
  readonly offset: number
  readonly atMs: number
}

/** A record that was in the way may have been compacted or have expired: looked for again after this. */
const LOOK_AGAIN_MS = 30_000

export class Progress {
  private committed: ReadonlyMap<number, number> | undefined
  private before: ReadonlyMap<number, number> | undefined
  private readonly looks = new Map<number, Look>()
  /** Commits that went through this proxy after the last read of all was sent. */
  private readonly commits = new Map<number, Commit>()
  /** Counts up with everything that may change what is done. */
  version = 0

  /** Whether the group's commits were read since it began or changed. */
  get isKnown(): boolean {
    return this.committed !== undefined
  }

  /** The committed offset; undefined: none, or not known. */
  offsetOf(q: number): number | undefined {
    return this.committed?.get(q)
  }

  readonly done: Done = (q, end) => {
    if (end <= 0) return true
    if (this.committed === undefined) return false
    const committed = this.committed.get(q)
    if (committed !== undefined && committed >= end) return true
    const look = this.looks.get(q)
    return look !== undefined && look.committed === committed && end <= look.until && look.first >= end
  }

  /** The group may have gone back: nothing counts until its commits are read again. */
  forget(): void {
    this.committed = undefined
    this.before = undefined
    this.looks.clear()
    this.commits.clear()
    this.version++
  }

  /** All commits of the group, as a request that was sent at `sentAtMs` found them. */
  read(committed: ReadonlyMap<number, number>, sentAtMs: number): void {
    const next = new Map(committed)
    for (const [q, commit] of this.commits) {
      if (commit.atMs >= sentAtMs) next.set(q, commit.offset)
      else this.commits.delete(q)
    }
    const isSame = this.committed !== undefined && sameEntries(this.committed, next)
    this.before = this.committed
    this.committed = next
    if (!isSame) this.version++
  }

  /** The coordinator has acknowledged a commit: it is durable, whatever read is still on its way. */
  commit(q: number, offset: number, atMs: number): void {
    if (this.committed === undefined) return
    this.commits.set(q, { offset, atMs })
    if (this.committed.get(q) === offset) return
    this.committed = new Map(this.committed).set(q, offset)
    this.version++
  }

  /** Whether it is time to look what lies between the committed offset of q, which did not move, and `until`. */
  mustLook(q: number, until: number, nowMs: number): boolean {
    if (this.committed === undefined || this.before === undefined || this.done(q, until)) return false
    const committed = this.committed.get(q)
    if (committed !== this.before.get(q)) return false
    const look = this.looks.get(q)
    return (
      look === undefined || look.committed !== committed || look.until < until || nowMs - look.atMs >= LOOK_AGAIN_MS
    )
  }

  looked(q: number, look: Look): void {
    this.looks.set(q, look)
    this.version++
  }
}

function sameEntries(a: ReadonlyMap<number, number>, b: ReadonlyMap<number, number>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value)
}
