/**
 * By which layout a batch was placed. Kafka does not say, so it is read from the keys: a layout explains a record if
 * it places the record's key in the batch's partition. Records without a key fit every layout that has the partition.
 */

export interface Countable {
  readonly epoch: number
  readonly count: number
}

export interface Explanation {
  /** Epochs that explain every record of the batch, ascending. Empty: mixed, or placed by no rule we know. */
  readonly epochs: readonly number[]
  /** The oldest layout that a record certainly needs: per record the newest epoch that explains it, of these the least. */
  readonly age: number
}

/**
 * `layouts` ascending, not empty; `hashes`: one non-negative key hash per keyed record (place = hash mod count), or
 * undefined where the topic's partitioner is not known: then `servedEpoch` (the layout last shown to the instance)
 * decides. A record that nothing explains makes the batch as old as the oldest layout.
 * Returns undefined if no layout has the partition: it comes from somebody with a newer view.
 */
export function explain(
  layouts: readonly Countable[],
  partition: number,
  hashes: readonly number[] | undefined,
  servedEpoch?: number,
): Explanation | undefined {
  const having = layouts.filter((layout) => partition < layout.count)
  const newest = having.at(-1)
  const oldest = layouts[0]
  if (newest === undefined || oldest === undefined) return undefined
  if (hashes === undefined) {
    const served = having.find((layout) => layout.epoch === servedEpoch) ?? having[0] ?? newest
    return { epochs: [served.epoch], age: served.epoch }
  }
  let epochs = having.map((layout) => layout.epoch)
  let age = newest.epoch
  for (const hash of hashes) {
    const explaining = having.filter((layout) => hash % layout.count === partition).map((layout) => layout.epoch)
    epochs = epochs.filter((epoch) => explaining.includes(epoch))
    age = Math.min(age, explaining.at(-1) ?? oldest.epoch)
  }
  return { epochs, age }
}
