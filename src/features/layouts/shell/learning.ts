/**
 * Which partitioner each instance uses for a topic, and the key hashes of a batch by it. Batches are opened for learning
 * until enough keyed records were seen; records that cannot be read teach nothing, and their batch is judged by the count
 * last served.
 */
import { entryEnd, magicOf, producerIdOf } from '../../../records/batch.ts'
import { openBatch } from '../../../records/read.ts'
import { RecordCursor, type RecordView } from '../../../records/record.ts'
import { visitMessages } from '../../../records/legacy.ts'
import { RecordsError } from '../../../records/errors.ts'
import type { PartitionerName } from '../../../records/hashes/partitioners.ts'
import { hashOf, learn, type Learned, partitionerOf, type PartitionerSetting, startLearning } from '../partitioners.ts'
import type { Sequenced } from '../sequence-guard.ts'

/** Keyed records after which the partitioner counts as known: a wrong candidate survives 32 pairs with 3⁻³² or less. */
const ENOUGH_PAIRS = 32
/** Batches without enough keyed records after which nothing more is hoped for. */
const MOST_BATCHES = 64
/** What a compressed batch may inflate to here: one that exceeds it is judged by the count last served. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024

/** What the guard needs of a batch's bytes. */
export interface ReadBatch {
  /** One per keyed record; undefined where keys do not tell. */
  readonly hashes: readonly number[] | undefined
  /** By which the batch is recognised when it comes back, however it is cut by then. */
  readonly mark: string
  /** The marks of its further records, of a producer that sends one request at a time without sequences. */
  readonly others: ReadonlySet<string> | undefined
  readonly sequenced: Sequenced | undefined
}

interface Pupil {
  learned: Learned
  batches: number
}

export class Learning {
  private readonly setting: PartitionerSetting
  private readonly pupils = new Map<string, Pupil>()
  private readonly cursor = new RecordCursor()

  constructor(setting: PartitionerSetting) {
    this.setting = setting
  }

  /** Whether batches of this instance have to be opened although the topic is at rest. */
  wants(instance: string): boolean {
    if (this.setting !== 'auto') return false
    const pupil = this.pupils.get(instance)
    return pupil === undefined || (pupil.learned.pairs < ENOUGH_PAIRS && pupil.batches < MOST_BATCHES)
  }

  partitioner(instance: string): PartitionerName | undefined {
    const pupil = this.pupils.get(instance)
    return pupil === undefined ? undefined : partitionerOf(pupil.learned)
  }

  forget(instance: string): void {
    this.pupils.delete(instance)
  }

  /**
   * Learns from a batch and reads what the guard needs of it.
   * @param counts of all layouts by which it may have been placed; empty: none is known, nothing is learned
   * @param isSerial it never had two requests in flight: nothing overtakes a batch that it sends again
   */
  read(
    instance: string,
    software: string,
    partition: number,
    records: Buffer,
    counts: readonly number[],
    isSerial = false,
  ): ReadBatch {
    const pupil = this.pupils.get(instance) ?? { learned: startLearning(this.setting, software), batches: 0 }
    this.pupils.set(instance, pupil)
    pupil.batches++
    const sequenced = sequenceOf(records)
    const hashes: number[] = []
    let mark = sequenced === undefined ? '' : markOf(sequenced, partition)
    const others = isSerial && sequenced === undefined ? new Set<string>() : undefined
    let isReadable = true
    try {
      // First learn from all of it, so that its own records are judged by what they teach.
      if (this.isLearning(pupil) && counts.length > 0)
        this.eachRecord(records, ({ bytes, keyStart: start, keyEnd: end }) => {
          if (start >= 0 && pupil.learned.pairs < ENOUGH_PAIRS)
            pupil.learned = learn(pupil.learned, { bytes, start, end }, partition, counts)
        })
      const name = partitionerOf(pupil.learned)
      isReadable = name !== undefined
      this.eachRecord(records, (record) => {
        if (others !== undefined) {
          if (mark === '') mark = recordMark(record)
          else others.add(recordMark(record))
        } else if (mark === '') mark = firstMark(record, records)
        const { bytes, keyStart: start, keyEnd: end } = record
        // librdkafka's default puts an empty key anywhere: it says nothing.
        if (name !== undefined && start >= 0 && !(name === 'crc32' && start === end))
          hashes.push(hashOf(name, bytes, start, end))
      })
    } catch (error) {
      if (!(error instanceof RecordsError)) throw error
      isReadable = false
    }
    return { hashes: isReadable ? hashes : undefined, mark: mark === '' ? `${partition}/?` : mark, others, sequenced }
  }

  private isLearning({ learned }: Pupil): boolean {
    return this.setting === 'auto' && learned.pairs < ENOUGH_PAIRS
  }

  private eachRecord(records: Buffer, visit: (record: RecordView) => void): void {
    const { cursor } = this
    for (let at = 0; at < records.length; ) {
      const end = entryEnd(records, at)
      if (end < 0) throw new RecordsError('HG_RECORDS_CORRUPT', 'a batch that ends early', at)
      if (magicOf(records, at) < 2) visitMessages(records, at, end, MAX_INFLATED_BYTES, visit)
      else {
        openBatch(cursor, records, at, end, MAX_INFLATED_BYTES)
        while (cursor.next()) visit(cursor)
      }
      at = end
    }
  }
}

/** Of an idempotent producer's batch. */
function sequenceOf(records: Buffer): Sequenced | undefined {
  if (records.length < 61 || magicOf(records, 0) < 2) return undefined
  const producerId = producerIdOf(records, 0)
  if (producerId < 0) return undefined
  return {
    producerId: String(producerId),
    producerEpoch: records.readInt16BE(51),
    sequence: records.readInt32BE(53),
  }
}

function markOf({ producerId, producerEpoch, sequence }: Sequenced, partition: number): string {
  return `${producerId}/${producerEpoch}/${partition}/${sequence}`
}

/** librdkafka (not idempotent) and sarama cut batches anew when they send again: the first record is what stays. */
function firstMark(record: RecordView, records: Buffer): string {
  const time = records.length < 35 || magicOf(records, 0) < 2 ? 0 : fnv(records, 27, 35)
  return `${recordMark(record)}/${time}`
}

/** kafkajs stamps records anew each time it sends them, and places them anew: key and value are all that stays. */
function recordMark({ bytes, keyStart, keyEnd, valueStart, valueEnd }: RecordView): string {
  return `${keyStart < 0 ? 'null' : fnv(bytes, keyStart, keyEnd)}/${fnv(bytes, valueStart, valueEnd)}`
}

function fnv(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193)
  return hash >>> 0
}
