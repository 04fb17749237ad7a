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
  /** The newest layout that some record may need: an older one may explain it too, but not one between them. */
  readonly need: number
}

/**
 * The start of the unbroken run of layouts that ends with the newest explaining one. `layouts` and `epochs` ascending;
 * with a gap below it, its producer may have used the layout in the gap, so what looks old may be new.
 */
export function sinceWhen(layouts: readonly Countable[], epochs: readonly number[]): number {
  const newest = epochs.at(-1) ?? 0
  const gap = layouts.findLast((layout) => layout.epoch < newest && !epochs.includes(layout.epoch))
  return epochs.find((epoch) => epoch > (gap?.epoch ?? -1)) ?? newest
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
    return { epochs: [served.epoch], age: served.epoch, need: served.epoch }
  }
  let epochs = having.map((layout) => layout.epoch)
  let age = newest.epoch
  let need = oldest.epoch
  for (const hash of hashes) {
    const explaining = having.filter((layout) => hash % layout.count === partition).map((layout) => layout.epoch)
    epochs = epochs.filter((epoch) => explaining.includes(epoch))
    age = Math.min(age, explaining.at(-1) ?? oldest.epoch)
    need = Math.max(need, sinceWhen(layouts, explaining))
  }
  return { epochs, age, need }
}
