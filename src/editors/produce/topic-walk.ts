/**
 * The topics that a Produce request names, found by stepping over lengths, without decoding it or allocating anything.
 * The bytes at hand may be only the beginning of the request: `isComplete` says whether every topic was seen.
 */
const UUID_BYTES = 16

export class TopicWalk {
  /** The topic's name (its id from v13 on) is `bytes[start, end)`. */
  start = 0
  end = 0
  /** After `next` returned false: all topics were seen. */
  isComplete = false
  private bytes: Buffer = nothing
  private version = 0
  private at = 0
  private limit = 0
  private left = 0
  private isInTopic = false

  /** Goes in front of the first topic of the body `bytes[bodyAt, limit)`. */
  open(bytes: Buffer, version: number, bodyAt: number, limit: number): void {
    this.bytes = bytes
    this.version = version
    this.at = bodyAt
    this.limit = limit
    this.isComplete = false
    this.isInTopic = false
    if (version >= 3) this.skip(this.nullableLength(2))
    this.skip(2 + 4) // acks, time-out
    this.left = this.count()
  }

  /** Goes to the next topic; false after the last, or where the bytes at hand end or make no sense. */
  next(): boolean {
    if (this.isInTopic) this.skipPartitions()
    if (this.left <= 0 || this.at > this.limit) {
      this.isComplete = this.left === 0 && this.at <= this.limit
      return false
    }
    this.left--
    const length = this.version >= 13 ? UUID_BYTES : this.nullableLength(2)
    this.start = this.at
    this.skip(length)
    this.end = this.at
    // Behind the last topic nothing of interest follows.
    this.isInTopic = this.left > 0
    if (this.at <= this.limit) return true
    this.left = -1
    return false
  }

  private skipPartitions(): void {
    const flexible = this.version >= 9
    for (let left = this.count(); left > 0 && this.at <= this.limit; left--) {
      this.skip(4)
      this.skip(this.nullableLength(4))
      if (flexible) this.skipTags()
    }
    if (flexible) this.skipTags()
  }

  private skipTags(): void {
    for (let left = this.uvarint(); left > 0 && this.at <= this.limit; left--) {
      this.uvarint()
      this.skip(this.uvarint())
    }
  }

  /** The number of elements of an array. */
  private count(): number {
    return Math.max(0, this.version >= 9 ? this.uvarint() - 1 : this.fixed(4))
  }

  /** The length of a string (2) or bytes (4): null counts as empty. */
  private nullableLength(fixedBytes: 2 | 4): number {
    return Math.max(0, this.version >= 9 ? this.uvarint() - 1 : this.fixed(fixedBytes))
  }

  private fixed(size: 2 | 4): number {
    const from = this.at
    this.at += size
    if (this.at > this.limit) return 0
    return size === 2 ? this.bytes.readInt16BE(from) : this.bytes.readInt32BE(from)
  }

  private uvarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      if (this.at >= this.limit) break
      const byte = this.bytes[this.at++] ?? 0
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    this.at = this.limit + 1
    return 0
  }

  private skip(bytes: number): void {
    this.at += bytes
  }
}

const nothing = Buffer.alloc(0)
