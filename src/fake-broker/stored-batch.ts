/** What a partition's log is made of. */

export interface StoredBatch {
  bytes: Buffer
  base: number
  last: number
  epoch: number
  producerId: number
  maxTimestamp: number
}

/** A transaction that was aborted, as consumers are told of it. */
export interface Aborted {
  producerId: number
  firstOffset: number
  /** Offset of the marker. */
  markerOffset: number
}
