/**
 * Producers that a live shrink leaves with batches for hidden partitions ask for Metadata again at once, until those
 * time out. Showing such a one the full count once frees them; what it writes by it is late, and counted.
 *
 * Whether a producer was shown more before is not known any more after a restart of the proxy. Then it is taken to have
 * been if it asks again and again: those that are stuck ask 1 to 18 times a second (measured), others once in minutes.
 */
const AGAIN_MS = 2000
/** So many times in a row is again and again. */
const MANY_TIMES = 6
/** So often at most per producer and layout: what is not freed by then fails where it can be seen. */
const TIMES = 3
/** Beyond it all is forgotten: nobody is harmed by being shown the full count once more. */
const REMEMBERED = 10_000

interface Asked {
  epoch: number
  atMs: number
  /** Asked in a row, none longer after the one before than `AGAIN_MS`. */
  inRow: number
  /** Shown the full count. */
  times: number
}

export class StuckBatches {
  private asked = new Map<string, Asked>()

  /**
   * Whether this answer is to show the full count.
   * @param who the producer and the topic
   * @param hadMore it is known to have been shown more partitions before
   */
  showsAll(who: string, epoch: number, hadMore: boolean, nowMs: number): boolean {
    const last = this.asked.get(who)
    const asked = last?.epoch === epoch ? last : { epoch, atMs: -Infinity, inRow: 0, times: 0 }
    const inRow = nowMs - asked.atMs < AGAIN_MS ? asked.inRow + 1 : 1
    const showsAll = inRow >= (hadMore ? 2 : MANY_TIMES) && asked.times < TIMES
    if (this.asked.size > REMEMBERED) this.asked = new Map()
    // The answer after a full one hides again, however soon it is asked for.
    const times = asked.times + (showsAll ? 1 : 0)
    this.asked.set(who, { epoch, atMs: showsAll ? -Infinity : nowMs, inRow, times })
    return showsAll
  }
}
