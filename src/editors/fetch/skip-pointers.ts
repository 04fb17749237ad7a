/**
 * How far a partition was read for a client beyond what it knows. A client never moves over records that were withheld
 * at the end of an answer: it asks again where its last batch (most families) or its last record (kafkajs, sarama)
 * ended. A pointer says "from exactly this offset on, nothing of yours comes before that one".
 *
 * Invariant: a pointer serves only a Fetch at exactly its offset; any other offset (seek, reset) drops it.
 */
export interface SkipPointer {
  /** The offset that the client will ask for. */
  readonly offset: number
  /** Where to read on. */
  readonly scanEnd: number
  /** Leader epoch of the last batch before `scanEnd`; −1 if unknown. Lets the broker notice a truncated log (KIP-595). */
  readonly epoch: number
}

export class SkipPointers {
  private readonly byPartition = new Map<string, readonly SkipPointer[]>()
  private turns = 0

  /**
   * Counts up with each call: at which partition an answer of limited size begins (brokers fill answers in the order of
   * the request, so that the first partitions would starve the others).
   */
  turn(): number {
    this.turns = (this.turns + 1) % 0x1000_0000
    return this.turns
  }

  /** @param partition `PartitionRead.key`: topic, partition and isolation level */
  find(partition: string, offset: number): SkipPointer | undefined {
    const pointers = this.byPartition.get(partition)
    if (pointers === undefined) return undefined
    const found = pointers.find((pointer) => pointer.offset === offset)
    if (found === undefined) this.byPartition.delete(partition)
    return found
  }

  /** What is known after an answer; everything from before is dropped. */
  replace(partition: string, pointers: readonly SkipPointer[]): void {
    const useful = pointers.filter((pointer) => pointer.scanEnd > pointer.offset)
    if (useful.length === 0) this.byPartition.delete(partition)
    else this.byPartition.set(partition, useful)
  }
}
