/**
 * The topics of a Metadata answer (v0–v13), walked without decoding it: most answers name no topic that anybody asks for
 * and stay as they are; of the others only the partition lists that change are written anew.
 */
import type { Reader } from '../../protocol/reader.ts'
import { zeroUuid } from '../../protocol/uuid.ts'
import { Writer } from '../../protocol/writer.ts'
import { metadataBrokers } from './broker-list.ts'

const SMALLEST_TOPIC_BYTES = 7
const SMALLEST_PARTITION_BYTES = 15

export class TopicList {
  errorCode = 0
  /** null where a topic was asked for by an id that nobody knows. */
  name: string | null = null
  topicId = zeroUuid
  /** Highest partition number, plus one. */
  count = 0
  /** Where the topic's error code is, and where its partition list begins and ends. */
  errorAt = 0
  listAt = 0
  listEnd = 0
  private readonly reader: Reader
  private readonly version: number
  private readonly flexible: boolean
  private left: number

  /** @param reader at the start of the body */
  constructor(reader: Reader, version: number) {
    this.reader = reader
    this.version = version
    this.flexible = version >= 9
    metadataBrokers(reader, version)
    if (version >= 2) this.skipText() // cluster id
    if (version >= 1) reader.int32() // controller id
    this.left = this.size(SMALLEST_TOPIC_BYTES)
  }

  /** Goes to the next topic; false after the last. @throws ProtocolError */
  next(): boolean {
    if (this.left <= 0) return false
    this.left--
    const { reader, version } = this
    this.errorAt = reader.at
    this.errorCode = reader.int16()
    if (version >= 12) this.name = reader.compactNullableString()
    else this.name = this.flexible ? reader.compactString() : reader.string()
    this.topicId = version >= 10 ? reader.uuid() : zeroUuid
    if (version >= 1) reader.bool() // internal
    this.listAt = reader.at
    this.count = 0
    for (let left = this.size(SMALLEST_PARTITION_BYTES); left > 0; left--)
      this.count = Math.max(this.count, this.partition() + 1)
    this.listEnd = reader.at
    if (version >= 8) reader.int32() // authorized operations
    if (this.flexible) reader.skipTags()
    return true
  }

  /** Steps over a partition. @returns its number */
  private partition(): number {
    const { reader, version } = this
    reader.int16() // error
    const index = reader.int32()
    reader.skip(version >= 7 ? 8 : 4) // leader, leader epoch
    for (let lists = version >= 5 ? 3 : 2; lists > 0; lists--) reader.skip(4 * this.size(4)) // replicas, in sync, offline
    if (this.flexible) reader.skipTags()
    return index
  }

  /** The current topic's partitions below `count`, as a list of its own. */
  partitionsBelow(count: number): Buffer {
    const { reader } = this
    const end = reader.at
    reader.at = this.listAt
    const kept: Buffer[] = []
    for (let left = this.size(SMALLEST_PARTITION_BYTES); left > 0; left--) {
      const from = reader.at
      if (this.partition() < count) kept.push(reader.buffer.subarray(from, reader.at))
    }
    reader.at = end
    const writer = new Writer(16 + kept.reduce((sum, bytes) => sum + bytes.length, 0))
    if (this.flexible) writer.uvarint(kept.length + 1)
    else writer.int32(kept.length)
    for (const bytes of kept) writer.raw(bytes)
    return writer.finish()
  }

  private size(smallest: number): number {
    return this.flexible ? this.reader.compactCount(smallest) : this.reader.count(smallest)
  }

  private skipText(): void {
    if (this.flexible) this.reader.compactNullableString()
    else this.reader.nullableString()
  }
}
