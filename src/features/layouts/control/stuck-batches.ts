/**
 * Producers that a live shrink leaves with batches for hidden partitions ask for Metadata again at once, until those
 * time out. Showing such a one the full count once frees them; what it writes by it is late, and counted.
 */
const AGAIN_MS = 2000
/** So often at most per producer and layout: what is not freed by then fails where it can be seen. */
const TIMES = 3
/** Beyond it all is forgotten: nobody is harmed by being shown the full count once more. */
const REMEMBERED = 10_000

interface Asked {
  epoch: number
  atMs: number
  times: number
}

export class StuckBatches {
  private asked = new Map<string, Asked>()

  /**
   * Whether this answer is to show the full count.
   * @param who the producer and the topic
   * @param hadMore it was shown more partitions before: else it has no such batches
   */
  showsAll(who: string, epoch: number, hadMore: boolean, nowMs: number): boolean {
    if (!hadMore) return false
    const last = this.asked.get(who)
    const asked = last?.epoch === epoch ? last : { epoch, atMs: -Infinity, times: 0 }
    const isAgain = nowMs - asked.atMs < AGAIN_MS && asked.times < TIMES
    if (this.asked.size > REMEMBERED) this.asked = new Map()
    // The answer after a full one hides again, however soon it is asked for.
    this.asked.set(who, { epoch, atMs: isAgain ? -Infinity : nowMs, times: asked.times + (isAgain ? 1 : 0) })
    return isAgain
  }
}
